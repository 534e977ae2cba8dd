"""Plain text tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scheduler.hardware.energy import COEFFICIENTS, Energy
from scheduler.hardware.fifos import FifoRow

Cell = str | int | float | None


def table(head: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Columns of numbers to the right, of text to the left; None is a dash."""
    cells = [[_text(cell) for cell in row] for row in rows]
    widths = [max(len(line[i]) for line in [list(head), *cells]) for i in range(len(head))]
    numeric = [all(not isinstance(row[i], str) for row in rows) for i in range(len(head))]
    lines = [_line(list(head), widths, numeric)]
    lines += [_line(row, widths, numeric) for row in cells]
    return "\n".join(lines)


ENERGY_HEAD = ("", *(f"{kind.upper()} µJ" for kind in COEFFICIENTS), "all µJ")


def energy_rows(names: Sequence[str], energies: Sequence[Energy], whole: Energy) -> list[list[Cell]]:
    """A line a layer or block under ENERGY_HEAD, and one of the frame."""
    lines = zip((*names, "frame"), (*energies, whole), strict=True)
    return [[name, *energy.kinds.values(), energy.total] for name, energy in lines]


def overhead_words(part: str, cycles: int, of_all: int) -> str:
    """The cell of a table: a part of a layer's cycles, and its share of them."""
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
    """No label steers a terminal: a question mark stands for what is no printable character."""
    return "".join(character if character.isprintable() else "?" for character in text)


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    parts = [c.rjust(w) if n else c.ljust(w) for c, w, n in zip(cells, widths, numeric, strict=True)]
    return "  ".join(parts).rstrip()


BUILT_FIFO_HEAD = ("FIFO", "number", "bits", "depth", "kind", "latency", "why so deep")


def built_fifo_rows(fifos: Iterable[FifoRow]) -> list[list[Cell]]:
    """Return a line for each of the FIFOs that are alike, under BUILT_FIFO_HEAD."""
    return [[row.name, row.count, row.bits, row.depth, row.kind, row.latency, row.reason] for row in fifos]
