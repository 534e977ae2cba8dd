"""The comparison of schedules, and the Pareto front: as JSON, as tables, and as pages with pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from systolic.report.page import html_table, page, picture
from systolic.report.tables import Cell, overhead_words, table
from systolic.styles.comparison import Comparison, ComparisonRow
from systolic.styles.ddr_profiles import PROFILES_HEAD, profiles_cell
from systolic.styles.systolic.mapping import SystolicMapping
from systolic.styles.systolic.report import BASELINE_NOTE, geometries_html

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class SystolicComparison(Comparison[SystolicMapping]):
    """A comparison of schedules. Each row is one requested combination of board, array, bits and batch."""

    head: ClassVar[tuple[str, ...]] = (
        "asked",
        "array",
        "MHz",
        "cycles per frame",
        "frames/s",
        PROFILES_HEAD,
        "DSP",
        "BRAM36",
        "URAM",
        "LUT",
        "µJ per frame",
        "DDR MB per frame",
        "overhead",
        "bound by, or source",
    )
    note = BASELINE_NOTE

    def values(self) -> dict[str, Any]:
        """Return all compared schedules as a JSON object."""
        return {
            "network": self.network,
            "rows": [
                {"asked": row.asked, "schedule": row.mapping.values() if row.mapping else None, "reason": row.reason}
                for row in self.rows
            ],
        }

    def cells(self) -> list[list[Cell]]:
        """Return the table's rows: one per schedule, each followed by its baselines on the same array."""
        return [line for row in self.rows for line in (_cells_of(row), *_baseline_cells(row.mapping))]

    def text(self) -> str:
        """Return the network's name, the table of schedules and its note, for a terminal."""
        head = f"{self.network}, modelled at target clocks; systolic generate checks the clock on the sources"
        return f"{head}\n\n{super().text()}"

    def pictures(self) -> list[Figure]:
        """Return one bar chart with the frame rate of each schedule and each baseline."""
        from systolic.report.figures import bars  # here, because importing matplotlib is slow

        rates: list[tuple[str, float]] = []
        pale: set[int] = set()
        for asked, mapping in self.found:
            rates.append((asked, mapping.frames_per_second))
            pale |= set(range(len(rates), len(rates) + len(mapping.baselines)))
            rates += [(baseline.name, mapping.clock_mhz * 1e6 / baseline.cycles) for baseline in mapping.baselines]
        return [bars(rates, "frames/s (modelled); pale: baselines", pale)]

    def page(self, front: Sequence[SystolicMapping] = ()) -> str:
        """Return the comparison as one self-contained HTML file, with the Pareto front if ``front`` is given."""
        mappings = [mapping for _, mapping in self.found]
        best = max(mappings, key=lambda mapping: mapping.frames_per_second, default=None)
        parts = (self.html(), geometries_html(front, best), *(mapping._repr_html_() for mapping in mappings))
        return page(f"{self.network}: schedules compared", *parts)


def _baseline_cells(mapping: SystolicMapping | None) -> list[list[Cell]]:
    if mapping is None:
        return []
    array, clock = str(mapping.schedule.array), mapping.clock_mhz
    return [
        [
            f"  {baseline.name}",
            array,
            round(clock),
            baseline.cycles,
            clock * 1e6 / baseline.cycles,
            profiles_cell(mapping.baseline_profiles[baseline.name]),
            *[None] * 5,
            baseline.bytes / 1e6,
            None,
            baseline.source,
        ]
        for baseline in mapping.baselines
    ]


def _cells_of(row: ComparisonRow[SystolicMapping]) -> list[Cell]:
    mapping = row.mapping
    if mapping is None:
        return [row.asked, "–", *[None] * 11, row.first_line]
    worst = max(mapping.cost.layers, key=lambda layer: layer.total)
    return [
        row.asked,
        str(mapping.schedule.array),
        round(mapping.clock_mhz),
        mapping.cycles_per_frame,
        mapping.frames_per_second,
        profiles_cell(mapping.ddr_profiles),
        mapping.usage.dsp,
        mapping.usage.bram36,
        mapping.usage.uram,
        mapping.usage.lut,
        mapping.energy.total,
        mapping.cost.bytes_per_frame / 1e6,
        overhead_words(worst.overhead.part, worst.overhead.cycles, worst.total),
        f"{worst.shape.name}: {worst.bound_by}",
    ]


FRONT_HEAD = (
    *("array", "cycles per frame", "frames/s", PROFILES_HEAD),
    *("DSP", "BRAM36", "URAM", "LUT", "DDR MB per frame"),
)


@dataclass(frozen=True, eq=False)
class ParetoFront:
    """The schedules that no other schedule beats in both frames/s and DSPs.

    Attributes:
        points: The schedules, all for the same board and clock, in descending order of their frame rate.
    """

    points: tuple[SystolicMapping, ...]

    @property
    def _title(self) -> str:
        """The title of the table: network, board, clock, memory and the number of schedules."""
        first = self.points[0]
        return (
            f"{first.network.name} on {first.board.title} at {first.clock_mhz:g} MHz (target), {first.cost.ddr.rate}: "
            f"{len(self.points)} schedules that no other schedule of a coarse search beats in both frames/s and DSPs"
        )

    def values(self) -> dict[str, Any]:
        """Return the schedules of the Pareto front as a JSON object.

        It is {network, board, clock_mhz, clock_link, ddr, ddr_profile, batch, source, points}. Each point is {array,
        cycles_per_frame, frames_per_second, ddr_profiles, usage, ddr_bytes_per_frame}.
        """
        of_all = ("network", "board", "clock_mhz", "clock_link", "ddr", "ddr_profile", "batch")
        of_each = ("array", "cycles_per_frame", "frames_per_second", "ddr_profiles", "usage", "ddr_bytes_per_frame")
        values = [point.values() for point in self.points]
        return {
            **{name: values[0][name] for name in of_all},
            "source": "modelled",
            "points": [{name: point[name] for name in of_each} for point in values],
        }

    def _cells(self) -> list[list[Cell]]:
        """Return the table's rows: array, cycles, rate and resources of each schedule of the front."""
        return [
            [
                str(point.schedule.array),
                point.cycles_per_frame,
                point.frames_per_second,
                profiles_cell(point.ddr_profiles),
                point.usage.dsp,
                point.usage.bram36,
                point.usage.uram,
                point.usage.lut,
                point.cost.bytes_per_frame / 1e6,
            ]
            for point in self.points
        ]

    def text(self) -> str:
        """Return the table of the front's schedules under a title, for a terminal."""
        return f"{self._title}, modelled\n\n{table(FRONT_HEAD, self._cells())}"

    __repr__ = text

    def page(self) -> str:
        """Return the Pareto front as one self-contained HTML file."""
        return page(self._title, self._repr_html_())

    def figure(self, chosen: SystolicMapping | None = None) -> Figure:
        """Draw frames/s against DSP, BRAM36 and DDR bytes, with a mark at the schedule ``chosen``."""
        from systolic.styles.systolic.figures import pareto  # here, because importing matplotlib is slow

        return pareto(self.points, chosen)

    def _repr_html_(self) -> str:
        return picture(self.figure()) + html_table(FRONT_HEAD, self._cells())
