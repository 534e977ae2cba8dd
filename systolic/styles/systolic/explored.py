"""Schedules that were priced: values for JSON, and tables for a terminal."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from boards.board import Board
from scheduler.systolic.area.fabric import SOURCE, Fabric
from scheduler.systolic.area.placement import Placement
from scheduler.systolic.area.resources import PRIMITIVES, Usage, built
from scheduler.systolic.baselines import Baseline
from scheduler.systolic.model.cost import Cost, LayerCost
from scheduler.systolic.model.cycles import PARTS
from scheduler.systolic.schedule import SystolicSchedule
from scheduler.systolic.search.search import Proof
from systolic.report.tables import Cell, table


@dataclass(frozen=True)
class Holds:
    """A frame rate that was asked for, and the lowest clock of the board at which the schedule is modelled at it."""

    frames_per_second: float
    from_mhz: float

    def __str__(self) -> str:
        return f"holds {self.frames_per_second:g} frames/s from {self.from_mhz:g} MHz on, modelled"


@dataclass(frozen=True, eq=False)
class PricedSchedule:
    """One schedule on one board, priced. proof is None where the schedule was given. runners: a line a layer.
    placement: the primitives of the buffers, counted in usage. holds: where a rate was asked for."""

    board: Board
    schedule: SystolicSchedule
    cost: Cost
    usage: Usage
    fabric: Fabric
    baselines: tuple[Baseline, ...]
    runners: tuple[str, ...]
    proof: Proof | None
    placement: Placement
    holds: Holds | None = None

    @property
    def title(self) -> str:
        batch = f", batches of {self.schedule.batch} frames" if self.schedule.batch > 1 else ""
        network, array = self.schedule.network.name, self.schedule.array
        return f"{network} on {self.board.title}, {array} at {self.clock_mhz:g} MHz{batch}"

    @property
    def clock_mhz(self) -> float:
        return self.cost.ddr.clock_mhz

    def text(self) -> str:
        """Tables for a terminal."""
        return explored_text(self)

    def values(self) -> dict[str, Any]:
        """One JSON object. cycles, latency_ms, ddr_bytes and the layers' are those of a whole batch."""
        return {
            "network": self.schedule.network.name,
            "batch": self.schedule.batch,
            "cycles_per_frame": self.cost.cycles_per_frame,
            "ddr_bytes_per_frame": self.cost.bytes_per_frame,
            "board": self.board.name,
            "clock_mhz": self.clock_mhz,
            "array": asdict(self.schedule.array),
            "cycles": self.cost.cycles,
            "frames_per_second": self.cost.frames_per_second,
            "latency_ms": self.cost.cycles / self.clock_mhz / 1e3,
            "ddr_bytes": asdict(self.cost.traffic),
            "ddr_gbps": self.cost.bytes_per_frame * self.cost.frames_per_second / 1e9,
            "usage": asdict(self.usage),
            "placement": {b.name: self.placement[b.name] for b in built(self.schedule.array)},
            "fabric": {**asdict(self.fabric), "source": SOURCE},
            "source": "modelled",
            "proof": asdict(self.proof) if self.proof else None,
            "holds": asdict(self.holds) if self.holds else None,
            "layers": [
                _layer_values(self, layer, why) for layer, why in zip(self.cost.layers, self.runners, strict=True)
            ],
            "baselines": [
                {
                    "name": n.name,
                    "source": n.source,
                    "cycles": n.cycles,
                    "ddr_bytes": n.bytes,
                    "weights_on_chip": n.on_chip,
                }
                for n in self.baselines
            ],
        }


def _layer_values(explored: PricedSchedule, layer: LayerCost, why: str) -> dict[str, Any]:
    return {
        "name": layer.shape.name,
        "order": layer.tiling.order,
        "column_tiles": layer.tiling.columns.count,
        "tile_columns": layer.tiling.columns.width,
        "overlap": layer.tiling.overlap,
        "on_chip": layer.tiling.on_chip,
        "cycles": layer.total,
        "parts": {name: int(getattr(layer.cycles, name)) for name in PARTS},
        "efficiency": explored.cost.efficiency(layer),
        "bound_by": layer.bound_by,
        "ddr_bytes": asdict(layer.traffic),
        "needs": asdict(layer.needs),
        "runner_up": why,
    }


@dataclass(frozen=True, eq=False)
class Row:
    """What was asked, and the schedule or the sentence why there is none."""

    asked: str
    explored: PricedSchedule | None
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Comparison:
    network: str
    rows: tuple[Row, ...]

    def text(self) -> str:
        return comparison_text(self)

    def values(self) -> dict[str, Any]:
        return {
            "network": self.network,
            "rows": [
                {"asked": r.asked, "schedule": r.explored.values() if r.explored else None, "reason": r.reason}
                for r in self.rows
            ],
        }


# --- text ----------------------------------------------------------------------------------------------------------

LAYER_HEAD = ("layer", "order", "column tiles", "cycles", "PEs busy", "DDR bytes", "result", "bound by", "runner-up")


def rows_of(explored: PricedSchedule) -> list[list[Cell]]:
    """A line a layer for ``systolic.tables.table``."""
    lines: list[list[Cell]] = []
    for layer, why in zip(explored.cost.layers, explored.runners, strict=True):
        columns = f"{layer.tiling.columns.count} × {layer.tiling.columns.width}"
        lines.append(
            [
                layer.shape.name,
                layer.tiling.order,
                columns,
                layer.total,
                f"{explored.cost.efficiency(layer):.0%}",
                layer.traffic.total,
                "on chip" if layer.tiling.on_chip else "DDR",
                layer.bound_by,
                why,
            ]
        )
    return lines


def explored_text(explored: PricedSchedule) -> str:
    return "\n\n".join(
        [
            explored.title,
            table(LAYER_HEAD, rows_of(explored)),
            totals(explored),
            table(BUDGET_HEAD, budget(explored)),
            _baselines(explored),
        ]
    )


def totals(explored: PricedSchedule) -> str:
    """A few lines that sum a schedule up."""
    priced = explored.cost
    moved = priced.bytes_per_frame
    whole = f"; a batch of {priced.batch} frames: {priced.cycles:,} cycles" if priced.batch > 1 else ""
    lines = [
        f"modelled: {priced.cycles_per_frame:,} cycles a frame, {priced.frames_per_second:.1f} frames/s{whole}, "
        f"{priced.cycles / explored.clock_mhz / 1e3:.2f} ms",
        f"DDR: {moved / 1e6:.2f} MB a frame, {moved * priced.frames_per_second / 1e9:.2f} GB/s",
        f"MACs: {priced.macs / (priced.array.macs_per_cycle * priced.cycles):.1%} of what the array could do",
    ]
    held = (f"{b.name} in {PRIMITIVES[explored.placement[b.name]]}" for b in built(explored.schedule.array))
    lines.append("buffers: " + ", ".join(held))
    if explored.holds:
        lines.append(str(explored.holds))
    if explored.proof:
        proof = explored.proof
        lines.append(
            f"proven best of {proof.geometries} geometries: {proof.priced} priced ({proof.arrays:,} arrays), "
            f"{proof.ruled_out} ruled out by their bound"
        )
    return "\n".join(lines)


BUDGET_HEAD = ("resource", "used", "of", "share", "source")


def budget(explored: PricedSchedule) -> list[list[Cell]]:
    """Totals against what the board has."""
    used, have = explored.usage, explored.board.resources
    counted = "estimate: primitives by their shapes"
    rows = [("DSP", used.dsp, have.dsp, counted), ("BRAM36", used.bram36, have.bram36, counted)]
    rows += [("URAM", used.uram, have.uram, counted)] if have.uram else []
    rows += [("LUT", used.lut, have.lut, SOURCE), ("LUT as memory", used.lutram, have.lutram, counted)]
    rows += [("FF", explored.fabric.ff, have.ff, SOURCE)]
    return [[name, a, b, f"{a / b:.0%}", source] for name, a, b, source in rows]


BASELINE_HEAD = ("schedule", "cycles", "frames/s", "DDR MB", "weights on chip KiB", "source")


def baseline_rows(explored: PricedSchedule) -> list[list[Cell]]:
    """The chosen schedule and the baselines, on the same MACs."""
    clock = explored.clock_mhz * 1e6
    own = explored.cost
    rows: list[list[Cell]] = [
        ["this", own.cycles_per_frame, own.frames_per_second, own.bytes_per_frame / 1e6, None, "modelled, engine"]
    ]
    for one in explored.baselines:
        rows.append([one.name, one.cycles, clock / one.cycles, one.bytes / 1e6, one.on_chip // 1024, one.source])
    return rows


def _baselines(explored: PricedSchedule) -> str:
    return table(BASELINE_HEAD, baseline_rows(explored))


COMPARE_HEAD = (
    "asked",
    "array",
    "MHz",
    "cycles a frame",
    "frames/s",
    "DSP",
    "BRAM36",
    "URAM",
    "LUT",
    "DDR MB a frame",
    "bound by, or source",
)


def comparison_rows(comparison: Comparison) -> list[list[Cell]]:
    """What was asked for, and under each what the baselines come to on the same array."""
    return [line for row in comparison.rows for line in (_compared(row), *_baselines_beside(row.explored))]


def _baselines_beside(explored: PricedSchedule | None) -> list[list[Cell]]:
    if explored is None:
        return []
    array, clock = str(explored.schedule.array), explored.clock_mhz
    return [
        [
            f"  {one.name}",
            array,
            round(clock),
            one.cycles,
            clock * 1e6 / one.cycles,
            *[None] * 4,
            one.bytes / 1e6,
            one.source,
        ]
        for one in explored.baselines
    ]


def _compared(row: Row) -> list[Cell]:
    one = row.explored
    if one is None:
        return [row.asked, "–", *[None] * 8, row.reason.splitlines()[0]]
    worst = max(one.cost.layers, key=lambda layer: layer.total)
    return [
        row.asked,
        str(one.schedule.array),
        round(one.clock_mhz),
        one.cost.cycles_per_frame,
        one.cost.frames_per_second,
        one.usage.dsp,
        one.usage.bram36,
        one.usage.uram,
        one.usage.lut,
        one.cost.bytes_per_frame / 1e6,
        f"{worst.shape.name}: {worst.bound_by}",
    ]


def comparison_text(comparison: Comparison) -> str:
    return f"{comparison.network}, modelled\n\n{table(COMPARE_HEAD, comparison_rows(comparison))}"
