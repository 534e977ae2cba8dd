"""Compare RTL engines' cycles, counted under Verilator, with the model: python -m benchmarks.cycles

``python -m benchmarks.cycles`` prints the recorded cycles of each layer, next to the current model's. ``python -m
benchmarks.cycles NAME …`` executes these cases again and records them in tests/golden/cycles.json. ``small`` means all
cases that compile within a minute. A frame of tiny-YOLOv2 takes minutes of CPU time, and so does compiling its engine.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from boards.board import load
from cnn.quantized import QuantizedNetwork
from contract.geometry import RTL
from host.contract.libraries import SystolicLibrary
from scheduler.hardware.ddr import DdrTiming, ddr_rate, ddr_timing
from scheduler.systolic.array import Array
from scheduler.systolic.model.cost import LayerCost, cost
from scheduler.systolic.schedule import SystolicSchedule, schedule_of
from scheduler.systolic.schedule_file import from_json, to_json
from systolic.execution.build import build
from systolic.model import DesignInputs
from systolic.report.tables import Cell, table
from systolic.styles.systolic.exploration import explore
from systolic.styles.systolic.generation.generate import generate
from systolic.styles.systolic.mapping import price
from systolic.styles.systolic.options import SystolicOptions
from systolic.styles.systolic.simulate import fill_batch
from tests.support import recorded_cycles
from tests.support.arrays.traced_models import FOUR_PORTS, SHORT_OF_DDR, TRACED, TRACED_ARRAY
from tests.support.quantised import Builder, tiny_yolo
from tests.support.recorded_cycles import COUNTED
from tests.support.schedules import first_fit
from tests.support.traced import load_into

BOARD, MHZ = load("zcu104"), 300.0
BATCHES = {"batch of two": 2, "batch of five": 5}


@dataclass(frozen=True)
class Case:
    """A network on an engine.

    Attributes:
        network: The network.
        schedule: Makes its schedule.
        engine: Folder of the compiled engine, which cases with the same array share.
        profile: The DDR profile with which the case is executed and modelled.
    """

    network: QuantizedNetwork
    schedule: Callable[[QuantizedNetwork], SystolicSchedule]
    engine: str
    profile: str = "measured"


@dataclass(frozen=True)
class _Searched:
    """Makes the best schedule on an array."""

    array: str
    pins: Mapping[str, int] = field(default_factory=dict)

    def __call__(self, network: QuantizedNetwork) -> SystolicSchedule:
        options = SystolicOptions(array=self.array, pins=self.pins, engine=RTL)
        return explore(network, BOARD, MHZ, options).schedule


@dataclass(frozen=True)
class _Fitted:
    """Makes the schedule of the first tilings that fit an array.

    ``streamed``: weights are read again for every tile.
    """

    array: Array
    batch: int = 1
    streamed: bool = False

    def __call__(self, network: QuantizedNetwork) -> SystolicSchedule:
        schedule = first_fit(network, replace(self.array, engine=RTL), self.batch)
        if not self.streamed:
            return schedule
        return schedule_of(network, schedule.array, [replace(tiling, order="streamed") for tiling in schedule.tilings])


MANY_WEIGHTS = Array(5, 16, 16, map_ports=2, weight_ports=4, row_depth=1024, weight_depth=1024, channel_tiles=4)
"""An array whose weight ports alone demand more than the DDR bandwidth, so that row reads get one third of it."""


SMALL = {
    **{name: Case(TRACED[name], _Fitted(TRACED_ARRAY, BATCHES.get(name, 1)), "two") for name in TRACED},
    **{name: Case(SHORT_OF_DDR[name][0], _Fitted(FOUR_PORTS), "four") for name in SHORT_OF_DDR},
    # Both layers are limited by the DDR. The model is 1.5 % too long at this profile, and 1.7 % at the measured one.
    "rows of stride 2": Case(SHORT_OF_DDR["rows of stride 2"][0], _Fitted(FOUR_PORTS), "four", "optimistic"),
    "weights for every row tile": Case(
        Builder(3, 30, 64).conv(16, 5).conv(32, 3).conv(16, 3).network(), _Fitted(MANY_WEIGHTS, streamed=True), "many"
    ),
}
"""Networks of the model's tests on the two arrays traced there, and one with streamed weights."""

CASES: Mapping[str, Case] = {
    **SMALL,
    "tiny-yolo, int8": Case(tiny_yolo(416), _Searched("13x16x16"), "int8"),
    "tiny-yolo, int8, DSPs at twice the clock": Case(
        tiny_yolo(416), _Searched("13x32x16", {"dsp_clock": 2}), "doubled"
    ),
    "tiny-yolo, int4, six products": Case(tiny_yolo(416, bits=4), _Searched("13x24x16", {"dsp_products": 6}), "six"),
}


@dataclass(frozen=True, eq=False)
class Counted:
    """A recorded case. ``cycles`` holds the counted cycles of each layer, by its name, and ``ddr`` the memory."""

    schedule: SystolicSchedule
    cycles: Mapping[str, int]
    ddr: DdrTiming

    def layers(self) -> list[tuple[LayerCost, int]]:
        """Return each layer's cost in the current model, with its counted cycles."""
        return [(layer, self.cycles[layer.shape.name]) for layer in cost(self.schedule, self.ddr).layers]


def memory(case: Case) -> DdrTiming:
    """Return the timing of the board's DDR, which a case is executed with."""
    return ddr_timing(BOARD, MHZ, ddr_rate(BOARD, efficiency=BOARD.ddr.share(case.profile)))


def execute(case: Case, folder: Path) -> Counted:
    """Execute one frame of zeros, since cycles do not depend on values. ``folder`` keeps the compiled engines."""
    schedule = case.schedule(case.network)
    shape = schedule.network.input_shape
    picture = np.zeros((shape.channels, shape.height, shape.width), np.uint8)
    ddr = memory(case)
    files = generate(price(schedule, BOARD, ddr), DesignInputs({}, picture))
    design = load_into(folder / case.engine, files)
    library = SystolicLibrary(build(design.path), design.manifest)
    maps, _ = fill_batch(design, (picture,))
    library.run(design.memory(maps), 0, design.manifest.passes)
    passes = library.pass_cycles()
    layers = design.manifest.layers
    cycles = {layer.name: sum(passes[layer.first_pass : layer.last_pass + 1]) for layer in layers}
    return Counted(schedule, cycles, ddr)


def recorded(name: str) -> Counted:
    """Return a recorded case."""
    values = recorded_cycles.recorded(COUNTED)[name]
    case = CASES[name]
    return Counted(from_json(json.dumps(values["schedule"]), case.network, name), values["cycles"], memory(case))


def record(name: str, counted: Counted) -> None:
    """Record a case."""
    values = {"schedule": json.loads(to_json(counted.schedule)), "cycles": dict(counted.cycles)}
    recorded_cycles.record(COUNTED, name, values)


def rows(name: str) -> list[list[Cell]]:
    """Return a row per layer of a recorded case, and a row for the frame."""
    layers = recorded(name).layers()
    pairs = [(layer.shape.name, cycles, layer.total) for layer, cycles in layers]
    pairs.append(("frame", sum(pair[1] for pair in pairs), sum(pair[2] for pair in pairs)))
    return [[name, layer, cycles, total, 100 * (total / cycles - 1)] for layer, cycles, total in pairs]


def main() -> None:
    """Execute the cases given on the command line, then print all recorded cases."""
    names = [name for argument in sys.argv[1:] for name in (SMALL if argument == "small" else [argument])]
    with tempfile.TemporaryDirectory() as work:
        for name in names:
            record(name, execute(CASES[name], Path(work)))
    executed = recorded_cycles.recorded(COUNTED)
    head = ("case", "layer", "counted", "modelled", "error %")
    print(table(head, [row for name in CASES if name in executed for row in rows(name)]))


if __name__ == "__main__":
    main()
