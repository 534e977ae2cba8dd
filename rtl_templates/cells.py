"""The names of cells for constraints: the DSP cascades of the PE array, and the registers of the arguments."""

from __future__ import annotations

from rtl_templates.sources import RtlValues, signal

ARRAY = "top/accelerator/array"
"""The cell of the PE array in the IP: the wrapper has ``top``, the top module ``accelerator``."""


def argument_cells(values: RtlValues) -> tuple[str, ...]:
    """Return the pattern of each register that holds an argument which the host writes."""
    written = (argument for argument in values.arguments if argument.kind != "output")
    return tuple(f"top/control/{signal(argument.name)}_reg[*]" for argument in written)


def chain_cells(values: RtlValues) -> tuple[tuple[str, int], ...]:
    """Return each cell that holds one cascade, and its number of DSPs, row by row.

    The names come from the instances and generate blocks in pe_array, pe_row and pe_row_six. If a DSP computes six
    products, no DSPs are cascaded, and each of them is a chain of its own.
    """
    rows, columns, lanes = (range(values.number(name)) for name in ("ROWS", "COLUMNS", "LANES"))
    length = values.number("PACK_CHAIN")
    if values.number("PACK_COLUMNS") == 3:
        return tuple(
            (f"{ARRAY}/rows[{row}].threes.row/column_group[{column}].lane[{lane}].dsp", 1)
            for row in rows
            for column in columns[::3]
            for lane in lanes
        )
    return tuple(
        (f"{ARRAY}/rows[{row}].chains.row/column_group[{column}].chain[{chain}].products", length)
        for row in rows
        for column in columns[:: values.number("PACK_COLUMNS") * values.dsp_clock]
        for chain in range(len(lanes) // length)
    )
