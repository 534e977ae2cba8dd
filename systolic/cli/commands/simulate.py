"""``systolic simulate``: execute the generated code and compare its integers, or trace its cycles."""

from __future__ import annotations

import argparse
import math

from boards import board as board_room
from boards.errors import ConflictError, FileAccessError, MissingValueError, RangeError, UnsupportedError, listed
from host.vision.channels import load_frame
from host.vision.picture import Pixels
from scheduler.hardware.ddr import DdrRate
from systolic.checking.derived import with_derived_loops
from systolic.cli.options.accelerators import NATIVE, TRACED
from systolic.cli.output import write_result
from systolic.cli.progress import StatusLine
from systolic.execution.build import Variant
from systolic.execution.frames import save_cycles
from systolic.execution.result import simulate
from systolic.execution.run import fit_picture
from systolic.execution.waves import waves
from systolic.option import flags_set
from systolic.styles.ddr_profiles import profile_rates, profile_values, profiles_text
from systolic.styles.registry import open_design, style_of
from systolic.styles.style import DesignTrace, OpenedDesign
from systolic.trace.bandwidth import bandwidth
from systolic.trace.report import CycleReport
from systolic.trace.timeline import check_picture
from systolic.trace.timeline import save as save_timeline


def run(options: argparse.Namespace) -> int:
    """Execute a design and compare its integers with the golden model, or with --cycles trace or count its cycles.

    JSON: ``SimulationResult.values``; with --waves also waves, ``Waves.values``.

    JSON with --cycles: the values of the cycle report, bandwidth, loops ("declared" or "derived"), ddr_profile,
    ddr_profiles and, with --fifos, fifos. The last five are null for an engine in SystemVerilog, which is not traced.

    Returns:
        1 if an integer differs from the golden model, else 0.
    """
    _check(options)
    design = open_design(options.folder)
    frames = [fit_picture(design, load_frame(picture))[0] for picture in options.picture]
    if len(frames) > 1 and options.cycles:
        raise RangeError("pictures with --cycles", len(frames), 1, 1, integer=True, remedy="give one; it fills a batch")
    if len(frames) > 1 and design.manifest.batch == 1:
        raise RangeError(
            f"pictures for {design.path}",
            len(frames),
            1,
            1,
            integer=True,
            remedy="give one, or generate the design with --batch (systolic style)",
        )
    if options.cycles:
        return _cycles(options, design, frames[0])
    recording = options.waves and style_of(design).recording(design, options.waves, options.output)
    with StatusLine() as status:
        result = simulate(design, frames, Variant(options.ap_int, waves=recording), options.golden, status.report)
    values, text = result.values(), result.text()
    if recording:
        shown = waves(recording, design.manifest.layers, result.frames[0].simulation.cycles)
        values, text = {**values, "waves": shown.values()}, f"{text}\n{shown.text()}"
    write_result(options, values, text)
    return 0 if result.right else 1


def _cycles(options: argparse.Namespace, design: OpenedDesign, pixels: Pixels) -> int:
    counts = options.hls or not style_of(design).is_traced(design)
    return _count(options, design, pixels) if counts else _trace(options, design, pixels)


def _count(options: argparse.Namespace, design: OpenedDesign, pixels: Pixels) -> int:
    traced = flags_set(options, TRACED)
    if traced:
        raise UnsupportedError(
            f"{listed(traced)} with {design.path}",
            "only engines in C++ are traced; the cycles of an engine in SystemVerilog are counted in its simulation",
            remedy=f"leave out {traced[0]}; use --waves LAYER to record signals, "
            "and generate again for another clock or memory",
        )
    with StatusLine() as status:
        counts = style_of(design).count(design, pixels, options.hls, status.report)
    save_cycles(design.path, counts)
    write_result(options, {**counts.values(), **dict.fromkeys(_OF_A_TRACE)}, counts.text())
    return 0 if counts.mismatches == 0 else 1


def _trace(options: argparse.Namespace, design: OpenedDesign, pixels: Pixels) -> int:
    style = style_of(design)
    style.check_timeline(design, options.layer)
    with StatusLine() as status:
        traced = with_derived_loops(design, options.clock, status.report) if options.derived else design
        trace = style.trace(traced, pixels, status.report)
        status.report("solving")
        report = trace.report(
            options.clock, options.ddr_efficiency, ddr_gbps=options.ddr_gbps, ddr_profile=options.ddr_profile
        )
        if not options.derived:
            save_cycles(design.path, report)
        moved = bandwidth(report.timing)
        values = {**report.values(), **dict.fromkeys(_OF_A_TRACE)}
        board = board_room.of_design(design.path, design.manifest.board)
        rates = profile_rates(board, lambda share: _rate_at(share, options, trace, report))
        memory = DdrRate(report.timing.memory.peak_gbps, report.timing.memory.efficiency)
        values |= {"bandwidth": moved.values(), "loops": _LOOPS[options.derived]}
        values |= profile_values(board, memory, rates)
        profiles = profiles_text(board, memory, rates, "traced")
        text = f"{report.text()}\n{moved.text()}\n{profiles}\nintervals and depths of loops: {_LOOPS[options.derived]}"
        if options.fifos:
            status.report("searching FIFO depths")
            fifos = trace.fifos(options.clock, options.ddr_efficiency, options.ddr_gbps, options.ddr_profile)
            values["fifos"] = fifos.values()
            text += f"\n\n{fifos.text()}"
        if options.timeline is not None:
            status.report("drawing")
            save_timeline(report.timeline(options.layer), options.timeline)
        if options.bandwidth is not None:
            save_timeline(moved.figure(report.title), options.bandwidth)
    write_result(options, values, text)
    return 0


def _rate_at(share: float, options: argparse.Namespace, trace: DesignTrace, report: CycleReport) -> float:
    """Return the traced frames per second if the DDR carries data in this share of its peak."""
    if share == report.timing.memory.efficiency:
        return report.frames_per_second
    return trace.report(options.clock, share, ddr_gbps=options.ddr_gbps).frames_per_second


_OF_A_TRACE = ("bandwidth", "loops", "fifos", "ddr_profile", "ddr_profiles")
"""Keys of the JSON that are null without a trace."""

_LOOPS = {False: "declared", True: "derived"}


def _check(options: argparse.Namespace) -> None:
    """Raise an error if an option has no effect without another one, or a wrong value."""
    traced, native = flags_set(options, TRACED), flags_set(options, NATIVE)
    if traced and not options.cycles:
        raise MissingValueError("--cycles", f"{listed(traced)} has an effect only on a cycle trace")
    if options.hls and not options.cycles:
        raise MissingValueError("--cycles", "--hls compares traced cycles with counted ones")
    if options.layer is not None and options.timeline is None:
        raise MissingValueError("--timeline FILE.png", "--layer chooses the layer that it draws")
    if options.cycles and native:
        raise ConflictError(
            ("--cycles", *native),
            "a cycle trace executes the code without them",
            remedy="run simulate twice, once without --cycles",
        )
    if options.output is not None and options.waves is None:
        raise MissingValueError("--waves LAYER", "-o names the file of the recorded signals")
    _check_values(options)


def _check_values(options: argparse.Namespace) -> None:
    """Check the clock, the DDR rate and the output pictures of a cycle trace before the work starts.

    Raises:
        RangeError: The clock or the memory's rate is out of range.
        FileAccessError: A picture cannot be written.
    """
    if options.clock is not None and not 0 < options.clock < math.inf:
        raise RangeError("--clock in MHz", options.clock, 0, exclusive=True)
    DdrRate(
        1 if options.ddr_gbps is None else options.ddr_gbps,
        1 if options.ddr_efficiency is None else options.ddr_efficiency,
    )
    for flag, path in (("--timeline", options.timeline), ("--bandwidth", options.bandwidth)):
        if path is not None and path.is_dir():
            raise FileAccessError(str(path), "is a folder", f"file of {flag}", remedy="name a FILE.png in it")
        if path is not None:
            check_picture(path)
