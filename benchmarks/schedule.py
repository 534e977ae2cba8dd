"""Measure the scheduler's search, and the error of its model: python -m benchmarks.schedule [--fast]

1. Seconds on one core to find the schedule of tiny-YOLOv2 VOC at 416×416 on every board, and to prove that it is the
   best. The same for VGG-16, whose weights limit much of a frame; its schedules are not traced.
2. Modelled cycles of every layer, compared with the cycle trace of the generated code. The cases are networks × boards
×
   arrays, with every map in DDR and with maps on chip if possible, and the schedules found for the boards.

--fast: only tiny-YOLOv2 at 208×208 on one board, and two arrays.
"""

# ruff: noqa: E402  (one core has to be asked for before numpy is imported)
from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from boards.board import Board, load, names
from boards.errors import SystolicError
from cnn.quantized import QuantizedNetwork
from scheduler.hardware.ddr import ddr_timing
from scheduler.systolic.array import Array
from scheduler.systolic.model.cost import cost
from scheduler.systolic.schedule import SystolicSchedule
from scheduler.systolic.search.problem import problem_of
from scheduler.systolic.search.search import search
from scheduler.systolic.workload import workload_of
from systolic.report.tables import Cell, table
from systolic.styles.systolic.measure import SystolicReport, cycle_report
from systolic.trace.report import board_memory
from tests.support.quantised import Builder, tiny_yolo
from tests.support.schedules import first_fit
from tests.support.traced import kept, traced


def networks(bits: int) -> dict[str, QuantizedNetwork]:
    """Return networks with the features that the model must cover:

    odd sizes, strides, kernel sizes, pools, INT16 outputs.
    """

    def start(channels: int, height: int, width: int) -> Builder:
        return Builder(channels, height, width, bits=bits)

    return {
        "odd sizes": start(3, 117, 155).conv(16, 3).pool().conv(40, 3).pool().conv(72, 3).network(),
        "stride 2": start(3, 192, 192).conv(16, 3, 2).conv(32, 3, 2).conv(64, 3, 2).network(),
        "1×1": start(3, 96, 96).conv(32, 1).conv(64, 1).conv(32, 1).network(),
        "5×5": start(3, 96, 80).conv(16, 5).conv(32, 5, 2).pool().conv(64, 5).network(),
        "7×7": start(3, 160, 160).conv(32, 7, 2).pool().conv(64, 3).conv(64, 7).network(),
        "FC": start(3, 64, 64).conv(16, 3).pool().conv(32, 3).pool().dense(512).dense(256).network(),
        "stride-1 pool": start(3, 52, 52).conv(32, 3).pool().conv(128, 3).pool(1).conv(125, 1, wide=True).network(),
        "depthwise": start(3, 128, 128).conv(32, 3, 2).conv(0, 3, depthwise=True).conv(64, 1).network(),
    }


def vgg16() -> QuantizedNetwork:
    """Return VGG-16: 138 million weights, 90 % of them in three fully connected layers."""
    builder = Builder(3, 224, 224)
    for number, filters in ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)):
        for _ in range(number):
            builder.conv(filters, 3)
        builder.pool()
    return builder.dense(4096).dense(4096).dense(1000).network("vgg16")


@dataclass(frozen=True)
class Machine:
    """An array on a board, at a target clock in MHz."""

    board: str
    mhz: float
    array: Array


def machines() -> tuple[Machine, ...]:
    """Return small and large arrays of 4, 8 and 16 bits, with one, two and four ports."""
    return (
        Machine("zcu104", 300, Array(13, 16, 16, row_depth=2048, weight_depth=8192, kept_depth=512, chunk=16)),
        Machine("zcu104", 250, Array(6, 32, 16, row_depth=4096, weight_depth=8192, kept_depth=1024)),
        Machine("zcu102", 300, Array(26, 8, 8, save_rows=4, map_ports=4, row_depth=2048, weight_depth=16384)),
        Machine(
            "ultra96-v2", 300, Array(8, 8, 8, save_rows=1, map_ports=1, row_depth=2048, weight_depth=8192, chunk=24)
        ),
        Machine("kv260", 250, Array(4, 32, 16, row_depth=4096, weight_depth=8192)),
        Machine(
            "pynq-z2",
            100,
            Array(7, 16, 4, map_ports=1, weight_ports=1, row_depth=4096, weight_depth=16384, dsp="DSP48E1"),
        ),
        # Streams weights at twice the bandwidth of this DDR.
        Machine("ultra96-v2", 300, Array(6, 16, 16, map_ports=1, row_depth=1024, weight_depth=1024, chunk=32)),
        Machine("zcu104", 300, Array(13, 16, 16, row_depth=2048, weight_depth=8192, chunk=16, bits=4)),
        Machine("zcu102", 300, Array(8, 16, 8, row_depth=4096, weight_depth=8192, chunk=32, bits=16)),
    )


@dataclass(frozen=True)
class Error:
    """Traced and modelled cycles of a layer's passes, without fetching the passes.

    ``case`` names the network, the board, the array and the number format.
    """

    case: str
    layer: str
    traced: int
    modelled: int

    @property
    def percent(self) -> float:
        return 100 * (self.modelled / self.traced - 1)

    @property
    def cells(self) -> list[Cell]:
        return [self.percent, self.traced, self.layer, self.case]


def compare(
    name: str, schedule: SystolicSchedule, board: Board, mhz: float, folder: Path
) -> tuple[list[Error], SystolicReport]:
    """Generate and trace the design in ``folder``.

    Return the error of each layer, and the report of the traced frame.
    """
    opened, trace = traced(schedule, board, mhz, folder)
    report = cycle_report(opened, trace, board_memory(opened))
    modelled = cost(schedule, ddr_timing(board, board.nearest_clock(mhz).mhz)).layers
    case = f"{name}, {board.name}, {schedule.array}, int{schedule.array.bits}"
    errors = [
        Error(case, layer.name, layer.running, model.running)
        for model, layer in zip(modelled, report.layers, strict=True)
    ]
    return errors, report


def errors(fast: bool, work: Path) -> list[list[Error]]:
    """Return the errors of every network on every machine, with maps in DDR and with maps on chip.

    Designs are generated and traced in folders of ``work``.
    """
    cases = []
    for number, machine in enumerate(machines()[: 2 if fast else None]):
        board = load(machine.board)
        for name, network in networks(machine.array.bits).items():
            try:
                schedule = first_fit(network, machine.array)
            except SystolicError as error:
                print(f"  {name} on {machine.array}: {str(error).splitlines()[-1].strip()}", file=sys.stderr)
                continue
            cases.append(compare(name, schedule, board, machine.mhz, work / str(number))[0])
            on_chip = work / f"{number}-on-chip"
            cases.append(compare(f"{name}, on chip", kept(schedule), board, machine.mhz, on_chip)[0])
    return cases


def searched(
    network: QuantizedNetwork, boards: Sequence[str], work: Path | None
) -> tuple[list[list[Cell]], list[list[Error]]]:
    """Return a table row per board, and the errors of the schedule found for each.

    Without ``work`` nothing is traced.
    """
    rows: list[list[Cell]] = []
    cases: list[list[Error]] = []
    for name in boards:
        board = load(name)
        mhz = board.design_clock(None).mhz
        start = time.perf_counter()
        try:
            best = search(problem_of(workload_of(network), board), ddr_timing(board, mhz))
        except SystolicError as error:
            print(f"  {network.name} on {name}: {error}", file=sys.stderr)
            continue
        seconds = time.perf_counter() - start
        rate = None
        if work is not None:
            layers, report = compare(network.name, best.schedule, board, mhz, work / name)
            cases.append(layers)
            rate = report.frames_per_second
        rows.append(
            [
                network.name,
                name,
                round(mhz),
                seconds,
                str(best.schedule.array),
                mhz * 1e6 / best.key[0],
                rate,
                best.proof.priced,
                best.proof.ruled_out,
                best.proof.arrays,
            ]
        )
    return rows, cases


def main() -> None:
    """Print the table of searches, then the errors of the model."""
    fast = "--fast" in sys.argv[1:]
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as text:
        work = Path(text)
        rows, cases = searched(tiny_yolo(208 if fast else 416), ["zcu104"] if fast else names(), work)
        if not fast:
            rows += searched(vgg16(), names(), None)[0]
        head = ("network", "board", "MHz", "seconds", "array", "frames/s", "traced", "priced", "ruled out", "arrays")
        print(table(head, rows))
        cases += errors(fast, work)
    lines = [line(case) for case in cases]
    print()
    print(table(("network, board, array, format", "layers", "frame %", "worst %", "layer", "its cycles"), lines))
    every = [error for case in cases for error in case]
    outside = sorted((e for e in every if abs(e.percent) > 3), key=lambda error: -abs(error.percent))
    print(f"\n{len(cases)} combinations; {len(every) - len(outside)} of {len(every)} layers within 3 %; the others:\n")
    print(table(("%", "traced", "layer", "network, board, array, format"), [error.cells for error in outside]))


def line(case: list[Error]) -> list[Cell]:
    """Return the table row of a case: the error of the frame, and the layer with the greatest error."""
    frame = 100 * (sum(e.modelled for e in case) / sum(e.traced for e in case) - 1)
    worst = max(case, key=lambda error: abs(error.percent))
    return [case[0].case, len(case), frame, worst.percent, worst.layer, worst.traced]


if __name__ == "__main__":
    main()
