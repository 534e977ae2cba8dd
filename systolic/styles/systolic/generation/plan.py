"""A systolic design in memory, and what is told of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from systolic.files import DesignFiles
from systolic.report.tables import Cell, table
from systolic.styles.systolic.mapping import SystolicMapping


@dataclass(frozen=True, eq=False)
class SystolicPlan:
    """files: of the whole folder."""

    mapping: SystolicMapping
    files: DesignFiles

    def values(self) -> dict[str, Any]:
        """What ``systolic generate --json`` says of it: {network, board, clock_mhz, ddr, array, batch,
        layers, modelled_cycles}. Cycles are those of a batch."""
        mapping = self.mapping
        return {
            "network": mapping.network.name,
            "board": mapping.board.name,
            "clock_mhz": mapping.clock.mhz,
            "ddr": asdict(mapping.cost.ddr.rate),
            "array": asdict(mapping.schedule.array),
            "batch": mapping.batch,
            "layers": [
                {
                    "name": scheduled.layer.name,
                    "macs": scheduled.layer.macs,
                    "order": scheduled.tiling.order,
                    "compute_cycles": scheduled.cycles,
                    "modelled_cycles": layer.total,
                    "bound_by": layer.bound_by,
                }
                for scheduled, layer in zip(mapping.schedule.layers, mapping.cost.layers, strict=True)
            ],
            "modelled_cycles": mapping.cost.cycles,
        }

    def text(self) -> str:
        """A table for a terminal, a line a layer, and its sums."""
        mapping, array = self.mapping, self.mapping.schedule.array
        rows: list[list[Cell]] = [
            [
                scheduled.layer.name,
                scheduled.layer.macs,
                layer.total,
                100 * mapping.cost.efficiency(layer),
                layer.bound_by,
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
            "order",
            "row tiles",
            "channel tiles",
            "column tiles",
        )
        batches = f" in batches of {mapping.batch} (the table's are those of a batch)" if mapping.batch > 1 else ""
        return (
            f"{table(head, rows)}\n\n{mapping.network.name} on {mapping.board.title}: array {array}, "
            f"{mapping.usage.dsp} of {mapping.board.resources.dsp} DSPs (estimate), "
            f"target clock {mapping.clock.mhz:g} MHz\n"
            f"{mapping.cycles_per_frame:,} cycles a frame modelled{batches}, "
            f"{mapping.frames_per_second:.1f} frames/s at that clock"
        )

    def _repr_html_(self) -> str:
        return self.mapping._repr_html_()
