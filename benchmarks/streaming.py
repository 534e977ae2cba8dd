"""UltraNet as a streaming pipeline: python benchmarks/streaming.py [--balance | --fastest | --zcu104] [--ap-int]

Ultra96-V2 at 102,400 cycles a frame (the balance of the 2022 contest's fastest design) and at its highest rate,
ZCU104 at its highest rate: cycles modelled and traced, resources as estimated, FIFO bits against one fixed depth,
the rate against its bounds, every bit against the golden model, and what each step costs on this machine.

Random weights: times, depths and resources depend on shapes alone (the resources by a few LUTs on the shifts' spread).
Ends with an error where a bit is wrong, or where the traced rate is more than 2 % off the slowest block's.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from boards.board import Board, load
from host.vision.picture import FITS, load_picture
from scheduler.hardware.primitives import product_luts
from scheduler.streaming.area.budget import Budget, limits
from scheduler.streaming.area.memory import fifo
from scheduler.streaming.area.total import macs
from scheduler.streaming.area.usage import NOTHING, StreamingUsage
from scheduler.streaming.lower import lower
from scheduler.streaming.result import FoldingResult, Goal
from scheduler.streaming.search import exact
from scheduler.streaming.search.candidates import Options
from systolic.execution.build import Variant
from systolic.files import write
from systolic.model import load_model, sample_pictures
from systolic.styles.streaming.fifos import Fifos, size_fifos
from systolic.styles.streaming.flow import estimate
from systolic.styles.streaming.generate import Streaming, generate_pipeline
from systolic.styles.streaming.measure import measure_pipeline, trace_pipeline
from systolic.styles.streaming.simulate import StreamingDesign, open_pipeline, simulate_pipeline
from systolic.trace.report import board_memory

BALANCE = 102_400
CASES = {
    "balance": ("ultra96-v2", BALANCE),
    "fastest": ("ultra96-v2", None),
    "zcu104": ("zcu104", None),
}
DEADLINE = 60.0
WITHIN = 0.02
PACKED = 4
"""MACs of a DSP where two pixels share the weights of two PEs (packing.py)."""

T = TypeVar("T")


@dataclass
class Clocked:
    """Seconds of each step."""

    seconds: dict[str, float] = field(default_factory=dict)

    def run(self, step: str, what: Callable[[], T]) -> T:
        start = time.perf_counter()
        found = what()
        self.seconds[step] = self.seconds.get(step, 0.0) + time.perf_counter() - start
        return found


@dataclass(frozen=True, eq=False)
class Measured:
    case: str
    board: Board
    clock_mhz: float
    found: FoldingResult
    fifos: Fifos
    interval: int
    latency: int
    queues: StreamingUsage
    mismatches: int
    values: int
    clocked: Clocked


def main() -> None:
    parser = argparse.ArgumentParser()
    for case in CASES:
        parser.add_argument(f"--{case}", action="store_true")
    parser.add_argument("--ap-int", action="store_true", help="execute with the vendor's ap_int too")
    given = vars(parser.parse_args())
    made = [measure(case, given["ap_int"]) for case in CASES if given[case] or not any(given[one] for one in CASES)]
    wrong = [f"{one.case}: {one.mismatches} mismatches" for one in made if one.mismatches]
    wrong += [f"{one.case}: traced {one.interval}" for one in made if one.interval > (1 + WITHIN) * one.found.cycles]
    if wrong:
        sys.exit("\n".join(wrong))


def measure(case: str, ap_int: bool) -> Measured:
    name, cycles = CASES[case]
    board, model = load(name), load_model("ultranet", seed=1)
    network = model.quantized
    assert network is not None
    clock, clocked = board.clocks()[-1], Clocked()
    goal, options = Goal(cycles, clock.mhz), Options(uram_weights=False)
    found = clocked.run("folding", lambda: exact.fold(lower(network), board, goal, options, DEADLINE))
    shape = network.input_shape
    picture, _ = FITS[model.fit](load_picture(sample_pictures()[0]), shape.height, shape.width)
    first = Streaming(network, found.folding, board, clock, model.fit)
    with tempfile.TemporaryDirectory() as work:
        rough = clocked.run("generating", lambda: _opened(first, found, picture, Path(work) / "rough"))
        trace = clocked.run("compiling and tracing", lambda: trace_pipeline(rough, picture))
        memory, widths = board_memory(rough), rough.fifo_bits
        fifos = clocked.run("sizing FIFOs", lambda: size_fifos(trace, memory, clock.mhz, widths))
        report = measure_pipeline(rough, trace, memory, depths=fifos.depths)
        queues = sum((fifo(widths[name], depth) for name, depth in fifos.depths.items()), NOTHING)
        deep = replace(first, depths=fifos.depths)
        pipeline = clocked.run("generating", lambda: _opened(deep, found, picture, Path(work) / "design"))
        result = clocked.run("compiling and simulating", lambda: simulate_pipeline(pipeline, picture))
        wrong, values = result.mismatches, sum(one.size for one in result.outputs)
        if ap_int:
            bits = clocked.run("the same, ap_int", lambda: simulate_pipeline(pipeline, picture, Variant(ap_int=True)))
            wrong += bits.mismatches
    done = Measured(
        case,
        board,
        clock.mhz,
        found,
        fifos,
        report.cycles_per_frame,
        report.latency_cycles,
        queues,
        wrong,
        values,
        clocked,
    )
    show(done)
    return done


def _opened(made: Streaming, found: FoldingResult, picture: npt.NDArray[np.uint8], folder: Path) -> StreamingDesign:
    write(generate_pipeline(made, {}, picture, estimate(found)), folder)
    return open_pipeline(folder)


# --- what is printed -------------------------------------------------------------------------------------------


def bounds(board: Board, work: int) -> dict[str, float]:
    """Cycles a frame that no folding is below: MACs over what multiplies in a cycle, by what is taken to multiply."""
    dsps = PACKED * board.resources.dsp
    products = limits(board, Budget()).lut // product_luts(4, 4)
    return {"DSPs": work / dsps, "DSPs, and every LUT of the budget": work / (dsps + products)}


def show(done: Measured) -> None:
    found, have, used = done.found, done.board.resources, done.found.usage
    work = macs(found.folding.graph)
    proof = "proven least" if found.state == "optimal" else f"within {found.gap:.1%}"
    rows = [
        ("cycles a frame", f"{found.cycles:,}", "modelled, closed formulas"),
        ("", f"{done.interval:,} ({done.interval / found.cycles - 1:+.2%})", "traced, steady state of three frames"),
        ("latency, cycles", f"{done.latency:,}", "traced"),
        (
            "frames/s",
            f"{done.clock_mhz * 1e6 / done.interval:,.0f}",
            f"traced, at a target of {done.clock_mhz:.0f} MHz",
        ),
        ("LUT", f"{used.lut:,} of {have.lut:,}", f"estimate; {proof} by the exact search"),
        ("DSP", f"{used.dsp} of {have.dsp}", "counted from structure"),
        ("BRAM36, URAM", f"{used.bram36} of {have.bram36}, {used.uram} of {have.uram}", "counted from structure"),
        ("FIFO bits", f"{done.fifos.bits:,}", "least depths of the trace that lose nothing"),
        (
            "these in BRAM36, LUT",
            f"{done.queues.bram36}, {done.queues.lut:,}",
            "counted; the estimate above has others",
        ),
        ("", f"{done.fifos.fixed_bits:,}", f"all {max(1024, *done.fifos.depths.values()):,} words deep"),
        *(
            (f"bound: {what}", f"{cycles:,.0f} cycles: {cycles / done.interval:.0%} reached", f"{work:,} MACs")
            for what, cycles in bounds(done.board, work).items()
        ),
        ("mismatches", f"{done.mismatches} in {done.values:,} values", "executed against the golden model"),
        *((f"{step}, s", f"{seconds:.1f}", "measured here") for step, seconds in done.clocked.seconds.items()),
    ]
    goal = CASES[done.case][1]
    asked = "the highest rate" if goal is None else f"{goal:,} cycles a frame"
    print(f"\n| UltraNet, {done.board.title}, {asked} | | |\n| --- | --- | --- |")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
