"""The result of the systolic generator: all files of a design in memory, and its report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from contract.geometry import as_stored
from host.contract.systolic import SystolicManifest
from scheduler.systolic.engines.language import language_named
from systolic.files import DesignFiles
from systolic.report.clock import RateClock
from systolic.report.tables import Cell, overhead_words, table
from systolic.styles.ddr_profiles import profiles_text
from systolic.styles.plan_values import plan_values
from systolic.styles.systolic.mapping import SystolicMapping


@dataclass(frozen=True, eq=False)
class SystolicPlan:
    """A generated systolic design: all its files in memory, not written yet.

    Attributes:
        mapping: The schedule on its board.
        files: The files of the folder.
    """

    mapping: SystolicMapping
    files: DesignFiles

    @property
    def is_traced(self) -> bool:
        """Return whether the engine is in C++, so that its cycles are traced."""
        return language_named(self.mapping.schedule.array.engine).is_traced

    def values(self) -> dict[str, Any]:
        """Return the design's array and layers as the JSON object of ``plan_values``. Cycles are per batch."""
        mapping = self.mapping
        layers = [
            {
                "name": scheduled.layer.name,
                "macs": scheduled.layer.macs,
                "order": scheduled.tiling.order,
                "compute_cycles": scheduled.cycles,
                "modelled_cycles": layer.total,
                "bound_by": layer.bound_by,
                "overhead": layer.overhead.part,
                "overhead_cycles": layer.overhead.cycles,
            }
            for scheduled, layer in zip(mapping.schedule.layers, mapping.cost.layers, strict=True)
        ]
        return plan_values(
            SystolicManifest.style,
            mapping,
            mapping.cost.ddr.rate,
            mapping.cost.cycles,
            mapping.usage,
            batch=mapping.batch,
            array=as_stored(mapping.schedule.array),
            layers=layers,
        )

    def text(self, clock: RateClock | None = None) -> str:
        """Return a table with the cycles, tiles and loop order of each layer, and the totals, for a terminal.

        Args:
            clock: The clock for the frame rate, if a check found one for the sources; None for the target clock.
        """
        mapping, array = self.mapping, self.mapping.schedule.array
        rows: list[list[Cell]] = [
            [
                scheduled.layer.name,
                scheduled.layer.macs,
                layer.total,
                100 * mapping.cost.efficiency(layer),
                layer.bound_by,
                overhead_words(layer.overhead.part, layer.overhead.cycles, layer.total),
                scheduled.tiling.order,
                scheduled.row_tiles,
                scheduled.channel_tiles,
                scheduled.tiling.columns.count,
            ]
            for scheduled, layer in zip(mapping.schedule.layers, mapping.cost.layers, strict=True)
        ]
        head = (
            "layer",
            "MACs",
            "cycles",
            "PEs busy %",
            "bound by",
            "overhead",
            "order",
            "row tiles",
            "channel tiles",
            "column tiles",
        )
        batches = f" in batches of {mapping.batch} (the table has the cycles per batch)" if mapping.batch > 1 else ""
        return (
            f"{table(head, rows)}\n\n{mapping.network.name} on {mapping.board.title}: array {array}, "
            f"{mapping.usage.dsp} of {mapping.board.resources.dsp} DSPs (estimate)\n"
            f"{mapping.cycles_per_frame:,} cycles per frame modelled{batches}, "
            f"{(clock or RateClock(mapping.clock.mhz)).text(mapping.frames_per_second)}\n"
            f"{profiles_text(mapping.board, mapping.cost.ddr.rate, mapping.ddr_profiles)}"
        )

    def _repr_html_(self) -> str:
        return self.mapping._repr_html_()
