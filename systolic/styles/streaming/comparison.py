"""The comparison of foldings from several searches: as JSON, as a table, and as a page with pictures."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

from boards.board import Board
from boards.facts import Clock
from systolic.report.page import page
from systolic.report.tables import Cell
from systolic.styles.comparison import Comparison, ComparisonRow
from systolic.styles.streaming.mapping import StreamingMapping
from systolic.styles.streaming.report import bits_text, ddr_text, fullest

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class StreamingComparison(Comparison[StreamingMapping]):
    """A comparison of foldings of one network. Each row is a search method, or the file of a saved folding.

    Attributes:
        board: The board of all foldings.
        clock: The target clock of all foldings.
        fps: The requested frames per second; None if each search looked for the highest rate.
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
        "µJ per frame",
        "fullest",
        "cost",
        "s",
        "",
    )

    def reaches(self, mapping: StreamingMapping) -> bool:
        """Return whether a folding's modelled rate is at least the requested frames per second."""
        return self.fps is None or mapping.frames_per_second >= self.fps

    def mapping_of(self, search: str) -> StreamingMapping:
        """Return the folding that the search method ``search`` found; raise its error if it found none."""
        (row,) = (row for row in self.rows if row.asked == search)
        if row.error is not None:
            raise row.error.at(f"{search} found no folding to save")
        assert row.mapping is not None
        return row.mapping

    def values(self) -> dict[str, Any]:
        """Return all compared foldings as a JSON object."""
        return {
            "network": self.network,
            "board": self.board.name,
            "clock_mhz": self.clock.mhz,
            "clock_link": "target",
            "foldings": [self._row_values(row) for row in self.rows],
        }

    def _row_values(self, row: ComparisonRow[StreamingMapping]) -> dict[str, Any]:
        if row.mapping is None:
            return {"search": row.asked, "reason": row.first_line}
        values = row.mapping.values()
        for name in ("network", "board", "clock_mhz", "clock_link"):
            del values[name]
        return {"search": row.asked, **values, "reached": self.reaches(row.mapping)}

    def cells(self) -> list[list[Cell]]:
        """Return the rows of the table, one per search method; ``head`` has the column titles."""
        return [self._cells_of(row) for row in self.rows]

    def _cells_of(self, row: ComparisonRow[StreamingMapping]) -> list[Cell]:
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
        """The text below the table: the requested rate, the board's resources, the columns' meaning, the bits."""
        total = self.board.resources
        asked = "the highest rate" if self.fps is None else f"{self.fps:g} frames/s with the fewest resources"
        return (
            f"Requested: {asked}. {self.board.title} has {total.lut:,} LUT, {total.dsp} DSP, {2 * total.bram36} BRAM18 "
            f"and {total.uram} URAM. Frame rates are modelled at {self.clock.mhz:g} MHz (target). Resources are "
            "estimated, including FIFOs; generating a design sizes its FIFOs from a trace. Fullest: the resource with "
            "the largest share of the board, at most 100% if the folding fits. Cost: the sum of the shares of LUT, "
            "DSP, BRAM18 and URAM, which the search minimises."
        ) + "".join(f"{bits_text(m.folded.folding.graph)}{ddr_text(m)}" for _, m in self.found[:1])

    def pictures(self) -> list[Figure]:
        """Return bar charts of rates, resources and block cycles per search; () for a single row."""
        from systolic.report.figures import bars  # here, because importing matplotlib is slow
        from systolic.styles.streaming.figures import cycles_by_search, shares

        if len(self.rows) == 1:
            return []
        rates = [(search, mapping.frames_per_second) for search, mapping in self.found]
        return [bars(rates, "frames/s (modelled)"), shares(self.found), cycles_by_search(self.found)]

    def html(self) -> str:
        """Return the HTML that compares the rows. A single folding is also shown block by block."""
        alone = [mapping._repr_html_() for _, mapping in self.found] if len(self.rows) == 1 else []
        return "".join((super().html(), *alone))

    def page(self) -> str:
        """Return the comparison as one self-contained HTML file."""
        parts = [self.html()]
        if len(self.rows) > 1:
            parts += [f"<h2>{escape(search)}</h2>{mapping._repr_html_()}" for search, mapping in self.found]
        return page(f"{self.network} as a streaming pipeline on {self.board.title}", *parts)
