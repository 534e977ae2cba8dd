"""A schedule with its modelled cycles, estimated resources and energy, and its JSON object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from boards.board import Board
from boards.facts import Clock
from cnn.quantized import QuantizedNetwork
from contract.geometry import as_stored
from scheduler.hardware.ddr import DdrRate, DdrTiming, ddr_timing
from scheduler.hardware.energy import SOURCE as ENERGY_SOURCE
from scheduler.hardware.energy import Activity, Energy, energy
from scheduler.systolic.area.logic import SOURCE, Fabric
from scheduler.systolic.area.placement import Placement
from scheduler.systolic.area.resources import Usage, built, fabric, fifo_table
from scheduler.systolic.baselines import Baseline
from scheduler.systolic.baselines import baselines as baselines_of
from scheduler.systolic.model.cost import Cost, LayerCost, cost
from scheduler.systolic.model.cycles import PARTS
from scheduler.systolic.model.energy import layer_activity
from scheduler.systolic.schedule import SystolicSchedule
from scheduler.systolic.search.runner_up import runners_up as runners_up_of
from scheduler.systolic.search.search import Proof
from systolic.styles.ddr_profiles import ProfileRate, profile_rates, profile_values


@dataclass(frozen=True)
class HeldRate:
    """A requested frame rate, and the board's lowest clock at which the schedule reaches it.

    Attributes:
        frames_per_second: The requested rate.
        from_mhz: The lowest clock in MHz at which the modelled rate is at least the requested one.
    """

    frames_per_second: float
    from_mhz: float

    def __str__(self) -> str:
        return f"holds {self.frames_per_second:g} frames/s from {self.from_mhz:g} MHz on, modelled"


@dataclass(frozen=True, eq=False)
class PricedSchedule:
    """A schedule on one board, with its modelled cycles, DDR traffic, estimated resources and energy.

    Attributes:
        board: The board.
        clock: The target clock.
        schedule: The array, and the tiling of each layer.
        cost: The modelled cycles and DDR traffic.
        usage: The estimated resources.
        placement: The primitives of the buffers, which are counted in ``usage``.
        proof: The record of the search that proves the schedule the best; None if no search found it.
        holds: The requested rate and the lowest clock for it; None if no rate was requested.
    """

    board: Board
    clock: Clock
    schedule: SystolicSchedule
    cost: Cost
    usage: Usage
    placement: Placement
    proof: Proof | None = None
    holds: HeldRate | None = None

    @property
    def network(self) -> QuantizedNetwork:
        return self.schedule.network

    @property
    def batch(self) -> int:
        """The number of frames that share each load of the weights."""
        return self.schedule.batch

    @property
    def fits(self) -> bool:
        """Return whether the estimated resources are within the board's resources."""
        return self.usage.fits(self.board)

    @property
    def clock_mhz(self) -> float:
        return self.cost.ddr.clock_mhz

    @property
    def frames_per_second(self) -> float:
        """The modelled frames per second at the target clock."""
        return self.cost.frames_per_second

    @cached_property
    def ddr_profiles(self) -> tuple[ProfileRate, ...]:
        """The modelled rate of this schedule at each DDR profile of the board."""
        return profile_rates(self.board, self._rate_at)

    def _rate_at(self, share: float) -> float:
        ddr = self._ddr_at(share)
        return self.frames_per_second if ddr.rate == self.cost.ddr.rate else cost(self.schedule, ddr).frames_per_second

    def _ddr_at(self, share: float) -> DdrTiming:
        return ddr_timing(self.board, self.clock_mhz, DdrRate(self.cost.ddr.rate.gbps, share))

    @property
    def cycles_per_frame(self) -> int:
        """The modelled cycles per frame."""
        return self.cost.cycles_per_frame

    @property
    def title(self) -> str:
        batch = f", batches of {self.batch} frames" if self.batch > 1 else ""
        clock = f"{self.clock_mhz:g} MHz (target)"
        return f"{self.network.name} on {self.board.title}, {self.schedule.array} at {clock}{batch}"

    @cached_property
    def fabric(self) -> Fabric:
        """The estimated LUTs and flip-flops of the array."""
        return fabric(self.schedule.array)

    @cached_property
    def baselines(self) -> tuple[Baseline, ...]:
        """Other schedules to compare with, such as SCALE-Sim's, modelled with the same MACs per cycle."""
        return self._baselines_at(self.cost.ddr)

    def _baselines_at(self, ddr: DdrTiming) -> tuple[Baseline, ...]:
        return baselines_of(self.schedule.workload, self.schedule.array, ddr)

    @cached_property
    def baseline_profiles(self) -> Mapping[str, tuple[ProfileRate, ...]]:
        """The modelled rate of each baseline at each DDR profile of the board, by the baseline's name."""

        def rates(number: int) -> tuple[ProfileRate, ...]:
            return profile_rates(
                self.board,
                lambda share: self.clock_mhz * 1e6 / self._baselines_at(self._ddr_at(share))[number].cycles,
            )

        return {baseline.name: rates(number) for number, baseline in enumerate(self.baselines)}

    @cached_property
    def runners_up(self) -> tuple[str, ...]:
        """For each layer a line with the second-best tiling on the same array, and how much worse it is."""
        return runners_up_of(self.schedule, self.cost)

    @cached_property
    def layer_activities(self) -> tuple[Activity, ...]:
        """The DSP, memory and DDR activity of each layer in one frame, from which energy is estimated."""
        pairs = zip(self.schedule.layers, self.cost.layers, strict=True)
        return tuple(layer_activity(*pair, self.placement, self.usage).times(1 / self.batch) for pair in pairs)

    @property
    def layer_energies(self) -> tuple[Energy, ...]:
        """The estimated energy of each layer for one frame."""
        return tuple(energy(activity, self.board.family) for activity in self.layer_activities)

    @property
    def energy(self) -> Energy:
        """The estimated energy of one frame in all layers, with bounds."""
        return energy(sum(self.layer_activities, Activity()), self.board.family)

    def values(self) -> dict[str, Any]:
        """Return the schedule's cycles, rate, traffic, resources and layers as a JSON object.

        The cycles, latency and DDR bytes are for a whole batch, unless a key ends with ``per_frame``.
        """
        return {
            "network": self.network.name,
            "batch": self.batch,
            "cycles_per_frame": self.cycles_per_frame,
            "ddr_bytes_per_frame": self.cost.bytes_per_frame,
            "board": self.board.name,
            "clock_mhz": self.clock_mhz,
            "clock_link": "target",
            "ddr": asdict(self.cost.ddr.rate),
            **profile_values(self.board, self.cost.ddr.rate, self.ddr_profiles),
            "array": as_stored(self.schedule.array),
            "cycles": self.cost.cycles,
            "frames_per_second": self.frames_per_second,
            "latency_ms": self.cost.cycles / self.clock_mhz / 1e3,
            "ddr_bytes": asdict(self.cost.traffic),
            "ddr_gbps": self.cost.bytes_per_frame * self.frames_per_second / 1e9,
            "energy": {**self.energy.values(), "source": ENERGY_SOURCE},
            "usage": asdict(self.usage),
            "placement": {buffer.name: self.placement[buffer.name] for buffer in built(self.schedule.array)},
            "fabric": {**asdict(self.fabric), "source": SOURCE},
            "fifos": [row.values() for row in fifo_table(self.schedule.array)],
            "source": "modelled",
            "proof": asdict(self.proof) if self.proof else None,
            "holds": asdict(self.holds) if self.holds else None,
            "layers": [
                {**self._layer_values(layer, why), "energy": joules.values()}
                for layer, why, joules in zip(self.cost.layers, self.runners_up, self.layer_energies, strict=True)
            ],
            "baselines": [
                {
                    "name": baseline.name,
                    "source": baseline.source,
                    "cycles": baseline.cycles,
                    "ddr_bytes": baseline.bytes,
                    "weights_on_chip": baseline.on_chip,
                }
                for baseline in self.baselines
            ],
        }

    def _layer_values(self, layer: LayerCost, why: str) -> dict[str, Any]:
        return {
            "name": layer.shape.name,
            "order": layer.tiling.order,
            "column_tiles": layer.tiling.columns.count,
            "tile_columns": layer.tiling.columns.width,
            "overlap": layer.tiling.overlap,
            "on_chip": layer.tiling.on_chip,
            "cycles": layer.total,
            "parts": {name: int(getattr(layer.cycles, name)) for name in PARTS},
            "efficiency": self.cost.efficiency(layer),
            "bound_by": layer.bound_by,
            "overhead": layer.overhead.part,
            "overhead_cycles": layer.overhead.cycles,
            "ddr_bytes": asdict(layer.traffic),
            "needs": asdict(layer.needs),
            "runner_up": why,
        }
