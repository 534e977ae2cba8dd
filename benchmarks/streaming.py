"""Measure UltraNet as a pipeline: python -m benchmarks.streaming [--balance | --fastest | --zcu104] [--ap-int]

The cases are Ultra96-V2 at 102,448 cycles per frame (the balance of the 2022 contest's fastest design), Ultra96-V2 at
its highest rate, and ZCU104 at its highest rate. For each the table lists modelled and traced cycles, estimated
resources, FIFO bits compared with one fixed depth, and the rate compared with its bounds. It also lists mismatches with
the golden model, and the time of each step on this machine.

Weights are random: times, depths and resources depend on shapes alone, except for a few LUTs that depend on the shifts.
The run fails if a bit is wrong, or if the traced interval is more than 0.1 % above the slowest block's.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from boards.board import Board, load
from host.vision.picture import FITS, load_picture
from scheduler.hardware.budget import Budget
from scheduler.hardware.primitives import product_luts
from scheduler.streaming.area.budget import limits
from scheduler.streaming.area.memory import fifo
from scheduler.streaming.area.total import macs
from scheduler.streaming.area.usage import NOTHING, StreamingUsage
from scheduler.streaming.lower import lower
from scheduler.streaming.model.depths import unit_depth
from scheduler.streaming.result import FoldingResult, Goal
from scheduler.streaming.search import exact
from scheduler.streaming.search.candidates import Options
from systolic.execution.build import Variant
from systolic.files import DesignFiles, write
from systolic.loading import load_model
from systolic.model import DesignInputs, sample_pictures
from systolic.styles.streaming.fifos import PipelineFifos, size_fifos
from systolic.styles.streaming.generation.generate import FoldedNetwork, parts
from systolic.styles.streaming.mapping import StreamingMapping
from systolic.styles.streaming.measure import cycle_report, trace_design
from systolic.styles.streaming.simulate import StreamingDesign, open_design, simulate
from systolic.trace.report import board_memory
from tools.parser import Parser

BALANCE = 102_400 + unit_depth(72)
"""Target in cycles: the steps of its units, and the cycles in which they drain after a frame."""
CASES = {
    "balance": ("ultra96-v2", BALANCE),
    "fastest": ("ultra96-v2", None),
    "zcu104": ("zcu104", None),
}
DEADLINE = 60.0
WITHIN = 0.001
PACKED = 4
"""MACs per DSP if two pixels share the weights of two PEs (packing.py)."""

T = TypeVar("T")


@dataclass
class Clocked:
    """Measures the seconds of each step."""

    seconds: dict[str, float] = field(default_factory=dict)

    def run(self, step: str, action: Callable[[], T]) -> T:
        start = time.perf_counter()
        result = action()
        self.seconds[step] = self.seconds.get(step, 0.0) + time.perf_counter() - start
        return result


@dataclass(frozen=True, eq=False)
class Measured:
    """A folded and traced case.

    Attributes:
        case: Name of the case.
        board: The board.
        clock_mhz: Target clock.
        folded: Result of the folding search.
        fifos: The sized FIFOs.
        interval: Traced cycles per frame.
        latency: Traced cycles from a frame's input to its output.
        queues: Resources of the FIFOs.
        mismatches: Number of values that differ from the golden model.
        values: Number of values compared.
        clocked: The seconds of each step.
    """

    case: str
    board: Board
    clock_mhz: float
    folded: FoldingResult
    fifos: PipelineFifos
    interval: int
    latency: int
    queues: StreamingUsage
    mismatches: int
    values: int
    clocked: Clocked


def main() -> None:
    """Print a table for each case. End with an error if a case is wrong, or slower than its slowest block."""
    parser = Parser()
    for case in CASES:
        parser.add_argument(f"--{case}", action="store_true", help="measure this case (default: all cases)")
    parser.add_argument("--ap-int", action="store_true", help="also execute with the vendor's ap_int types")
    options = vars(parser.parse_args())
    cases = [case for case in CASES if options[case]] or list(CASES)
    results = [measure(case, options["ap_int"]) for case in cases]
    wrong = [f"{result.case}: {result.mismatches} mismatches" for result in results if result.mismatches]
    slow = [result for result in results if result.interval > (1 + WITHIN) * result.folded.cycles]
    wrong += [f"{result.case}: traced {result.interval}" for result in slow]
    if wrong:
        sys.exit("\n".join(wrong))


def measure(case: str, ap_int: bool) -> Measured:
    """Fold, generate, trace and execute one of CASES, and print its table."""
    name, cycles = CASES[case]
    board, model = load(name), load_model("ultranet", seed=1)
    network = model.quantized
    assert network is not None
    clock, clocked = board.design_clock(None), Clocked()
    goal, options = Goal(cycles, clock.mhz), Options(uram_weights=False)
    folded = clocked.run("folding", lambda: exact.fold(lower(network), board, goal, options, DEADLINE))
    shape = network.input_shape
    picture, _ = FITS[model.fit](load_picture(sample_pictures()[0]), shape.height, shape.width)
    mapping, inputs = StreamingMapping(network, board, clock, folded), DesignInputs({}, picture, model.fit)
    parts_of = clocked.run("building", lambda: parts(FoldedNetwork(network, folded.folding, board, clock), inputs))
    with tempfile.TemporaryDirectory() as work:
        rough = clocked.run("generating", lambda: _opened(parts_of.files(mapping.estimate), Path(work) / "rough"))
        trace = clocked.run("compiling and tracing", lambda: trace_design(rough, picture))
        memory, widths = board_memory(rough), rough.fifo_bits
        fifos = clocked.run("sizing FIFOs", lambda: size_fifos(trace, memory, clock.mhz, widths))
        report = cycle_report(rough, trace, memory, depths=fifos.depths)
        queues = sum((fifo(widths[name], depth) for name, depth in fifos.depths.items()), NOTHING)
        sized = parts_of.files(mapping.estimate, fifos.depths)
        pipeline = clocked.run("generating", lambda: _opened(sized, Path(work) / "design"))
        result = clocked.run("compiling and simulating", lambda: simulate(pipeline, picture))
        wrong, values = result.mismatches, sum(output.size for output in result.outputs)
        if ap_int:
            bits = clocked.run("the same, ap_int", lambda: simulate(pipeline, picture, Variant(ap_int=True)))
            wrong += bits.mismatches
    measured = Measured(
        case,
        board,
        clock.mhz,
        folded,
        fifos,
        report.cycles_per_frame,
        report.latency_cycles,
        queues,
        wrong,
        values,
        clocked,
    )
    show(measured)
    return measured


def _opened(files: DesignFiles, folder: Path) -> StreamingDesign:
    write(files, folder)
    return open_design(folder)


# --- output ----------------------------------------------------------------------------------------------------


def bounds(board: Board, work: int) -> dict[str, float]:
    """Return lower bounds of cycles per frame for any folding: MACs divided by the multipliers that are counted."""
    dsps = PACKED * board.resources.dsp
    products = limits(board, Budget()).lut // product_luts(4, 4)
    return {"DSPs": work / dsps, "DSPs, and every LUT of the budget": work / (dsps + products)}


def show(measured: Measured) -> None:
    """Print the table of a case: quantity, value and origin of the value."""
    folded, limit, usage = measured.folded, measured.board.resources, measured.folded.usage
    work = macs(folded.folding.graph)
    proof = "proven least" if folded.state == "optimal" else f"within {folded.gap:.1%}"
    rows = [
        ("cycles per frame", f"{folded.cycles:,}", "modelled, closed formulas"),
        (
            "",
            f"{measured.interval:,} ({measured.interval / folded.cycles - 1:+.2%})",
            "traced, steady state of three frames",
        ),
        ("latency, cycles", f"{measured.latency:,}", "traced"),
        (
            "frames/s",
            f"{measured.clock_mhz * 1e6 / measured.interval:,.0f}",
            f"traced, at a target of {measured.clock_mhz:.0f} MHz",
        ),
        ("LUT", f"{usage.lut:,} of {limit.lut:,}", f"estimate; {proof} by the exact search"),
        ("DSP", f"{usage.dsp} of {limit.dsp}", "counted from structure"),
        ("BRAM36, URAM", f"{usage.bram36} of {limit.bram36}, {usage.uram} of {limit.uram}", "counted from structure"),
        ("FIFO bits", f"{measured.fifos.bits:,}", "least depths in the trace that cost no rate"),
        (
            "these in BRAM36, LUT",
            f"{measured.queues.bram36}, {measured.queues.lut:,}",
            "counted; the estimate above assumes other depths",
        ),
        ("", f"{measured.fifos.fixed_bits:,}", f"all {max(1024, *measured.fifos.depths.values()):,} words deep"),
        *(
            (f"bound: {resource}", f"{cycles:,.0f} cycles: {cycles / measured.interval:.0%} reached", f"{work:,} MACs")
            for resource, cycles in bounds(measured.board, work).items()
        ),
        ("mismatches", f"{measured.mismatches} in {measured.values:,} values", "executed against the golden model"),
        *((f"{step}, s", f"{seconds:.1f}", "measured here") for step, seconds in measured.clocked.seconds.items()),
    ]
    goal = CASES[measured.case][1]
    target = "the highest rate" if goal is None else f"{goal:,} cycles per frame"
    print(f"\n| UltraNet, {measured.board.title}, {target} | | |\n| --- | --- | --- |")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
