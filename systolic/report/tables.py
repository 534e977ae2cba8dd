"""Plain text tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scheduler.hardware.energy import COEFFICIENTS, Energy
from scheduler.hardware.fifos import FifoRow

Cell = str | int | float | None


def table(head: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Return a text table with numbers aligned to the right and text to the left. None is printed as a dash."""
    cells = [[_text(cell) for cell in row] for row in rows]
    widths = [max(len(line[i]) for line in [list(head), *cells]) for i in range(len(head))]
    numeric = [all(not isinstance(row[i], str) for row in rows) for i in range(len(head))]
    lines = [_line(list(head), widths, numeric)]
    lines += [_line(row, widths, numeric) for row in cells]
    return "\n".join(lines)


ENERGY_HEAD = ("", *(f"{kind.upper()} µJ" for kind in COEFFICIENTS), "all µJ")


def energy_rows(names: Sequence[str], energies: Sequence[Energy], whole: Energy) -> list[list[Cell]]:
    """Return the rows of the energy table, in µJ: one per layer or block, and the sum of a frame as the last."""
    lines = zip((*names, "frame"), (*energies, whole), strict=True)
    return [[name, *energy.kinds.values(), energy.total] for name, energy in lines]


def overhead_words(part: str, cycles: int, of_all: int) -> str:
    """Return a table cell such as "fill 12%": the name of a part of a layer's cycles, and its share of them.

    Args:
        part: The part's name.
        cycles: The cycles of the part.
        of_all: The cycles of the layer.
    """
    return f"{part} {cycles / max(1, of_all):.0%}"


def _text(cell: Cell) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return f"{cell:.2f}"
    if isinstance(cell, int):
        return f"{cell:,}"
    return printable(cell)


def printable(text: str) -> str:
    """Return the text with "?" for each unprintable character, so that a label cannot control the terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    parts = [c.rjust(w) if n else c.ljust(w) for c, w, n in zip(cells, widths, numeric, strict=True)]
    return "  ".join(parts).rstrip()


BUILT_FIFO_HEAD = ("FIFO", "number", "bits", "depth", "kind", "latency", "why so deep")


def built_fifo_rows(fifos: Iterable[FifoRow]) -> list[list[Cell]]:
    """Return the rows of the FIFO table, one per group of equal FIFOs."""
    return [[row.name, row.count, row.bits, row.depth, row.kind, row.latency, row.reason] for row in fifos]
