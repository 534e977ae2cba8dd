"""Foldings that several searches find, next to each other: as JSON, as a table, and on a page with pictures."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

from boards.board import Board
from boards.facts import Clock
from systolic.report.page import page
from systolic.report.tables import Cell
from systolic.styles.comparison import Candidate, Comparison
from systolic.styles.streaming.mapping import StreamingMapping
from systolic.styles.streaming.report import bits_text, fullest

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class StreamingComparison(Comparison[StreamingMapping]):
    """The foldings of a network by the search that found them, or by the file of a saved one.

    Attributes:
        board: The board of all of them.
        clock: The target clock of all of them.
        fps: The frame rate that was asked for; None for the highest.
    """

    board: Board
    clock: Clock
    fps: float | None = None
    head: ClassVar[tuple[str, ...]] = (
        "search",
        "cycles",
        "frames/s",
        "LUT",
        "DSP",
        "BRAM18",
        "URAM",
        "converters",
        "FIFO bits",
        "µJ a frame",
        "fullest",
        "cost",
        "s",
        "",
    )

    def reaches(self, mapping: StreamingMapping) -> bool:
        """Return whether a folding has the frame rate that was asked for."""
        return self.fps is None or mapping.frames_per_second >= self.fps

    def mapping_of(self, search: str) -> StreamingMapping:
        """Return the folding that ``search`` found, or raise its error if it found nothing."""
        (row,) = (row for row in self.rows if row.asked == search)
        if row.error is not None:
            raise row.error.at(f"{search} found nothing to save")
        assert row.mapping is not None
        return row.mapping

    def values(self) -> dict[str, Any]:
        """Return one JSON object."""
        return {
            "network": self.network,
            "board": self.board.name,
            "clock_mhz": self.clock.mhz,
            "foldings": [self._row_values(row) for row in self.rows],
        }

    def _row_values(self, row: Candidate[StreamingMapping]) -> dict[str, Any]:
        if row.mapping is None:
            return {"search": row.asked, "reason": row.first_line}
        values = row.mapping.values()
        for name in ("network", "board", "clock_mhz"):
            del values[name]
        return {"search": row.asked, **values, "reached": self.reaches(row.mapping)}

    def cells(self) -> list[list[Cell]]:
        """Return a line per search."""
        return [self._cells_of(row) for row in self.rows]

    def _cells_of(self, row: Candidate[StreamingMapping]) -> list[Cell]:
        mapping = row.mapping
        if mapping is None:
            return [row.asked, *([None] * 12), row.first_line]
        used = mapping.folded.usage
        return [
            row.asked,
            mapping.cycles_per_frame,
            mapping.frames_per_second,
            used.lut,
            used.dsp,
            used.bram18,
            used.uram,
            mapping.converters,
            mapping.fifo_bits,
            mapping.energy.total,
            fullest(mapping),
            mapping.folded.boards,
            mapping.folded.seconds,
            self._verdict(mapping),
        ]

    def _verdict(self, mapping: StreamingMapping) -> str:
        wrong = [] if self.reaches(mapping) else ["too slow"]
        wrong += [] if mapping.fits else ["does not fit"]
        return ", ".join(wrong) or mapping.folded.state

    @property
    def note(self) -> str:
        """What is the same in every row: what was asked for, the board's resources, the bits of layers."""
        total = self.board.resources
        asked = "the highest rate" if self.fps is None else f"{self.fps:g} frames/s with least resources"
        return (
            f"asked: {asked}. {self.board.title} has {total.lut:,} LUT, {total.dsp} DSP, {2 * total.bram36} BRAM18, "
            f"{total.uram} URAM; frames/s modelled at {self.clock.mhz:g} MHz (target), resources estimated, "
            "FIFOs with them, which the trace sizes when a design is generated; fullest: the resource of the largest "
            "share, at most 100% where a folding fits; cost: the shares of LUT, DSP, BRAM18 and URAM added up, which "
            "the search makes least"
        ) + "".join(bits_text(mapping.folded.folding.graph) for _, mapping in self.found[:1])

    def pictures(self) -> list[Figure]:
        """Return the rates, the resources and the cycles by search; nothing to compare if there is one search."""
        from systolic.report.figures import bars  # matplotlib takes long to import
        from systolic.styles.streaming.figures import cycles_by_search, shares

        if len(self.rows) == 1:
            return []
        rates = [(search, mapping.frames_per_second) for search, mapping in self.found]
        return [bars(rates, "frames/s (modelled)"), shares(self.found), cycles_by_search(self.found)]

    def html(self) -> str:
        """Return a part of a page: the searches next to each other; a lone one block by block."""
        alone = [mapping._repr_html_() for _, mapping in self.found] if len(self.rows) == 1 else []
        return "".join((super().html(), *alone))

    def page(self) -> str:
        """Return one self-contained HTML file."""
        parts = [self.html()]
        if len(self.rows) > 1:
            parts += [f"<h2>{escape(search)}</h2>{mapping._repr_html_()}" for search, mapping in self.found]
        return page(f"{self.network} as a streaming pipeline on {self.board.title}", *parts)
