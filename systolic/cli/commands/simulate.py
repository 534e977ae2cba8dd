"""``systolic simulate``: the generated code, executed and compared, or traced."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from pathlib import Path

from boards.errors import SimulationError
from host.vision.channels import load_frame
from host.vision.picture import Pixels
from scheduler.hardware.ddr import DdrRate
from systolic.checking.derived import with_derived_loops
from systolic.cli.arguments import Parsers, add_json, command, named
from systolic.cli.output import give
from systolic.cli.progress import StatusLine
from systolic.execution.build import Variant
from systolic.execution.frames import save_cycles
from systolic.execution.result import simulate
from systolic.execution.run import fit_picture
from systolic.execution.verilate import is_rtl
from systolic.execution.waves import waves
from systolic.styles.options import DDR_ARGUMENTS, Argument, flags_set
from systolic.styles.registry import open_design, style_of
from systolic.styles.style import OpenedDesign
from systolic.trace.bandwidth import bandwidth
from systolic.trace.timeline import check_picture
from systolic.trace.timeline import save as save_timeline

NATIVE = (
    Argument("--ap-int", "with the vendor's ap_int types and packed products", False, {"action": "store_true"}),
    Argument(
        "--waves",
        "of an engine in SystemVerilog: also record the signals of this layer, by its name or its number from 1",
        None,
        {"metavar": "LAYER"},
    ),
    Argument("--golden", "also compile and run the standalone C++ golden program", False, {"action": "store_true"}),
)
TRACED = (
    Argument("--timeline", "with --cycles: a picture, a lane a process", None, {"type": Path, "metavar": "FILE"}),
    Argument(
        "--bandwidth",
        "with --cycles: a picture of the DDR's bandwidth over time",
        None,
        {"type": Path, "metavar": "FILE"},
    ),
    Argument("--fifos", "with --cycles: the least FIFO depths that lose nothing", False, {"action": "store_true"}),
    Argument(
        "--clock", "with --cycles: another clock than the design's target", None, {"type": float, "metavar": "MHZ"}
    ),
    Argument(
        "--derived",
        "with --cycles: loops take what systolic check derives from the code, and not what it declares",
        False,
        {"action": "store_true"},
    ),
    *(replace(argument, help=f"with --cycles: {argument.help}") for argument in DDR_ARGUMENTS),
)


def add(parsers: Parsers) -> None:
    """The command's arguments."""
    parser = command(
        parsers,
        "simulate",
        run,
        "execute the generated code and compare every layer with the golden model",
        "systolic simulate DIR --picture dog.jpg --ap-int\n"
        "  systolic simulate DIR --picture dog.jpg --waves conv1 -o conv1.fst",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="a generated design")
    parser.add_argument(
        "--picture",
        type=Path,
        required=True,
        nargs="+",
        metavar="P",
        help="the picture to run; a design of batches takes as many, and fills its batch with the last one",
    )
    parser.add_argument(
        "--cycles",
        action="store_true",
        help="cycles and frames a second beside the model: of C++ traced, with what stalls; of SystemVerilog counted",
    )
    parser.add_argument(
        "--hls",
        action="store_true",
        help="with --cycles of an engine in SystemVerilog: beside the traced cycles of the C++ engine of the same "
        "schedule, which is generated and compiled for it",
    )
    for argument in (*NATIVE, *TRACED):
        argument.add_to(parser)
    parser.add_argument("--layer", metavar="NAME", help="with --timeline: draw this layer instead of the frame")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="with --waves: where they are written (default: LAYER.fst in the current folder)",
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """JSON: ``SimulationResult.values``, with ``--waves`` also waves: ``Waves.values``; with ``--cycles`` that of the
    style's report, fifos, and loops: "declared" or "derived"; of an engine in SystemVerilog that
    of ``SystolicCounts``."""
    _check(options)
    design = open_design(options.folder)
    frames = [fit_picture(design, load_frame(picture))[0] for picture in options.picture]
    if len(frames) > 1 and options.cycles:
        raise SimulationError("--cycles traces one picture, the whole batch of it; give one")
    if len(frames) > 1 and design.manifest.batch == 1:
        raise SimulationError(
            f"{design.path} takes one picture at a time; give one, or generate with --batch (systolic style)"
        )
    if options.cycles:
        return _cycles(options, design, frames[0])
    recording = options.waves and style_of(design).recording(design, options.waves, options.output)
    with StatusLine() as status:
        result = simulate(design, frames, Variant(options.ap_int, waves=recording), options.golden, status.tell)
    values, text = result.values(), result.text()
    if recording:
        shown = waves(recording, design.manifest.layers, result.frames[0].simulation.cycles)
        values, text = {**values, "waves": shown.values()}, f"{text}\n{shown.text()}"
    give(options, values, text)
    return 0 if result.right else 1


def _cycles(options: argparse.Namespace, design: OpenedDesign, pixels: Pixels) -> int:
    counts = options.hls or is_rtl(design.path)
    return _count(options, design, pixels) if counts else _trace(options, design, pixels)


def _count(options: argparse.Namespace, design: OpenedDesign, pixels: Pixels) -> int:
    traced = flags_set(options, TRACED)
    if traced:
        raise SimulationError(
            f"{design.path} holds an engine in SystemVerilog, whose cycles are counted as it executes, and "
            f"{named(traced)} of the trace of C++: leave it out; --waves LAYER records signals, and for another clock "
            "or memory generate the design with it"
        )
    with StatusLine() as status:
        counts = style_of(design).count(design, pixels, options.hls, status.tell)
    save_cycles(design.path, counts)
    give(options, counts.values(), counts.text())
    return 0 if counts.mismatches == 0 else 1


def _trace(options: argparse.Namespace, design: OpenedDesign, pixels: Pixels) -> int:
    style = style_of(design)
    style.check_timeline(design, options.layer)
    with StatusLine() as status:
        traced = with_derived_loops(design, options.clock, status.tell) if options.derived else design
        trace = style.trace(traced, pixels, status.tell)
        status.tell("solving")
        report = trace.report(options.clock, options.ddr_efficiency, ddr_gbps=options.ddr_gbps)
        if not options.derived:
            save_cycles(design.path, report)
        moved = bandwidth(report.timing)
        values = {**report.values(), "bandwidth": moved.values(), "loops": _LOOPS[options.derived]}
        text = f"{report.text()}\n{moved.text()}\nintervals and depths of loops: {_LOOPS[options.derived]}"
        if options.fifos:
            status.tell("searching FIFO depths")
            fifos = trace.fifos(options.clock, options.ddr_efficiency, options.ddr_gbps)
            values["fifos"] = fifos.values()
            text += f"\n\n{fifos.text()}"
        if options.timeline is not None:
            status.tell("drawing")
            save_timeline(report.timeline(options.layer), options.timeline)
        if options.bandwidth is not None:
            save_timeline(moved.figure(report.title), options.bandwidth)
    give(options, values, text)
    return 0


_LOOPS = {False: "declared", True: "derived"}


def _check(options: argparse.Namespace) -> None:
    """SimulationError where an option has no effect, ScheduleError where the memory is none."""
    traced, native = flags_set(options, TRACED), flags_set(options, NATIVE)
    if traced and not options.cycles:
        raise SimulationError(f"{named(traced)} of the cycle trace: add --cycles")
    if options.hls and not options.cycles:
        raise SimulationError("--hls puts traced cycles beside counted ones: add --cycles")
    if options.layer is not None and options.timeline is None:
        raise SimulationError("--layer chooses what --timeline draws: add --timeline FILE.png")
    if options.cycles and native:
        raise SimulationError(
            f"--cycles traces the native code alone, {named(native)} not of it; leave one out, and run simulate twice"
        )
    if options.output is not None and options.waves is None:
        raise SimulationError("-o names the file of --waves: add --waves LAYER")
    _check_values(options)


def _check_values(options: argparse.Namespace) -> None:
    """SimulationError where a picture cannot be written or the clock is none, ScheduleError where the memory is."""
    if options.clock is not None and not 0 < options.clock < math.inf:
        raise SimulationError(f"--clock is a frequency above 0 MHz, not {options.clock:g}")
    DdrRate(
        1 if options.ddr_gbps is None else options.ddr_gbps,
        1 if options.ddr_efficiency is None else options.ddr_efficiency,
    )
    for flag, path in (("--timeline", options.timeline), ("--bandwidth", options.bandwidth)):
        if path is not None and path.is_dir():
            raise SimulationError(f"{flag} {path} is a folder; name a FILE.png in it")
        if path is not None:
            check_picture(path)
