"""What several folders made of the same wish: values, and lines for a table."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from boards.board import load
from scheduler.streaming.area.total import converter_count, fifo_bits
from scheduler.streaming.result import FoldingResult
from systolic.report.tables import Cell, table


@dataclass(frozen=True, eq=False)
class Row:
    """found: None where the folder found nothing, for ``reason``."""

    folder: str
    found: FoldingResult | None
    reason: str = ""

    @property
    def converters(self) -> int | None:
        return None if self.found is None else converter_count(self.found.folding)

    @property
    def fifo_bits(self) -> int | None:
        return None if self.found is None else fifo_bits(self.found.folding)


@dataclass(frozen=True, eq=False)
class Comparison:
    """fps: the frame rate that was asked for, None for the highest."""

    network: str
    board: str
    clock_mhz: float
    rows: tuple[Row, ...]
    fps: float | None = None

    def values(self) -> dict[str, Any]:
        return {
            "network": self.network,
            "board": self.board,
            "clock_mhz": self.clock_mhz,
            "folders": [self._values(row) for row in self.rows],
        }

    def reaches(self, found: FoldingResult) -> bool:
        """The frame rate that was asked for."""
        return self.fps is None or found.frames_per_second(self.clock_mhz) >= self.fps

    def _values(self, row: Row) -> dict[str, Any]:
        found = row.found
        if found is None:
            return {"folder": row.folder, "reason": row.reason}
        return {
            "folder": row.folder,
            "cycles": found.cycles,
            "fps": round(found.frames_per_second(self.clock_mhz), 2),
            **asdict(found.usage),
            "converters": row.converters,
            "fifo_bits": row.fifo_bits,
            "price": found.boards,
            "reached": self.reaches(found),
            "fits": found.fits,
            "state": found.state,
            "gap": proven_gap(found),
            "seconds": round(found.seconds, 3),
        }

    def text(self) -> str:
        return f"{table(HEAD, rows_of(self))}\n\n{legend(self)}"


def proven_gap(found: FoldingResult) -> float | None:
    """None where nothing is proven, which JSON has a word for and NaN not."""
    return found.gap if math.isfinite(found.gap) else None


PROOFS = {"optimal": "proven cheapest", "given": "not searched for"}


def proof(found: FoldingResult) -> str:
    within = f"within {found.gap:.1%} of the best"
    return within if found.state == "feasible" else PROOFS.get(found.state, "nothing proven")


HEAD = ("folder", "cycles", "frames/s", "LUT", "DSP", "BRAM18", "URAM", "converters", "FIFO bits", "cost", "s", "")


def rows_of(compared: Comparison) -> list[list[Cell]]:
    """A line a folder, under HEAD."""
    return [_line(compared, row) for row in compared.rows]


def _line(compared: Comparison, row: Row) -> list[Cell]:
    found = row.found
    if found is None:
        return [row.folder, *([None] * 10), row.reason]
    used = found.usage
    return [
        row.folder,
        found.cycles,
        found.frames_per_second(compared.clock_mhz),
        used.lut,
        used.dsp,
        used.bram18,
        used.uram,
        row.converters,
        row.fifo_bits,
        found.boards,
        found.seconds,
        _verdict(compared, found),
    ]


def _verdict(compared: Comparison, found: FoldingResult) -> str:
    wrong = [] if compared.reaches(found) else ["too slow"]
    wrong += [] if found.fits else ["does not fit"]
    return ", ".join(wrong) or found.state


def legend(compared: Comparison) -> str:
    board = load(compared.board)
    have = board.resources
    asked = "the highest rate" if compared.fps is None else f"{compared.fps:g} frames/s with least resources"
    return (
        f"asked: {asked}. {board.title} has {have.lut:,} LUT, {have.dsp} DSP, {2 * have.bram36} BRAM18, "
        f"{have.uram} URAM; frames/s modelled at {compared.clock_mhz:g} MHz (target), resources estimated, "
        "cost in boards"
    )
