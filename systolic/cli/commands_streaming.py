"""The streaming style on the command line: generate, fold, cycles."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from boards import board as board_room
from boards.board import Board
from boards.errors import GenerateError, ScheduleError, SimulationError
from host.contract.manifest import manifest_in, of_style
from host.contract.streaming import StreamingManifest
from host.vision.picture import Pixels
from scheduler.streaming.folding_file import to_json
from scheduler.streaming.lower import lower
from scheduler.streaming.result import FoldingResult
from systolic.cli.options import check_network
from systolic.cli.output import give, read_text, write_text
from systolic.cli.progress import StatusLine
from systolic.execution.frames import save_cycles
from systolic.files import write
from systolic.model import Calibration, load_model, quantise_model, sample_pictures
from systolic.report.tables import Cell, table
from systolic.styles.streaming.compare import compare_folders
from systolic.styles.streaming.compared import Comparison, Row, proof, proven_gap
from systolic.styles.streaming.fifos import Fifos, size_fifos
from systolic.styles.streaming.flow import FOLDERS, StreamingOptions, StreamingPlan, fold_network, make_pipeline
from systolic.styles.streaming.generate import folded as folding_text
from systolic.styles.streaming.measure import FRAMES, StreamingReport, measure_pipeline, trace_pipeline
from systolic.styles.streaming.simulate import StreamingDesign
from systolic.trace.report import board_memory
from systolic.trace.timeline import save as save_timeline


def asked(options: argparse.Namespace) -> StreamingOptions:
    """What the options ask of a folding; --folding is a folder, or a file that systolic fold --save wrote."""
    named = options.folding in FOLDERS
    made_by = f"systolic fold --save FILE, or take {', '.join(FOLDERS)}"
    return StreamingOptions(
        fps=options.fps,
        folder=options.folding if named else "exact",
        deadline=options.deadline,
        max_padding=options.max_padding,
        max_pixels=options.max_pixels,
        pad_ends=options.pad_ends,
        external=tuple(options.external),
        given=None if named else (read_text(options.folding, "folding", made_by), options.folding),
        sized=not options.estimated_fifos,
        effort=options.effort,
        attempts=options.attempts,
    )


# --- generate --------------------------------------------------------------------------------------------------


def generate_streaming(options: argparse.Namespace, calibration: Calibration) -> int:
    """JSON: {folder, digest, network, board, clock_mhz, style, modelled_cycles, fits, folding: {state, gap, seconds},
    estimate, blocks: [{name, kind, folding, macs, macs_per_cycle, modelled_cycles}], fifos}."""
    if options.schedule is not None:
        raise GenerateError("--schedule is of the systolic style; a pipeline takes --folding FILE")
    board = board_room.load(options.board)
    with StatusLine() as status:
        status.tell("reading the network")
        model = load_model(options.network, options.weights, options.names, options.seed, options.size)
        made = make_pipeline(model, board, options.clock, calibration, asked(options), status.tell)
        status.tell("writing")
        write(made.design, options.output, replace=options.force)
    give(options, _generated(made, board, str(options.output)), _generated_text(made, board, str(options.output)))
    if not made.folded.fits:
        print(f"systolic: the design is written, but it does not fit {board.title} as estimated", file=sys.stderr)
        return 1
    return 0


def _generated(made: StreamingPlan, board: Board, folder: str) -> dict[str, Any]:
    manifest = of_style(StreamingManifest, manifest_in(made.design.files))
    return {
        "folder": folder,
        "digest": made.design.digest,
        "network": made.network.name,
        "board": board.name,
        "clock_mhz": made.clock.mhz,
        "style": "streaming",
        "modelled_cycles": made.folded.cycles,
        "fits": made.folded.fits,
        "folding": {
            "state": made.folded.state,
            "gap": proven_gap(made.folded),
            "seconds": round(made.folded.seconds, 3),
        },
        "estimate": asdict(made.folded.usage),
        "blocks": [asdict(block) for block in manifest.blocks],
        "fifos": None if made.fifos is None else _fifos(made.fifos),
    }


def _generated_text(made: StreamingPlan, board: Board, folder: str) -> str:
    graph, folds = made.folded.folding.graph, made.folded.folding.folds
    rows: list[list[Cell]] = [
        [block.name, type(block.op).__name__, folding_text(fold)]
        for block, fold in zip(graph.blocks, folds, strict=True)
    ]
    return (
        f"{table(('block', 'kind', 'folding'), rows)}\n\n{folded_text(made, board)}\nwritten to {folder}, digest "
        f"{made.design.digest[:16]}; systolic simulate --cycles traces the generated code"
    )


def folded_text(made: StreamingPlan, board: Board) -> str:
    found, have = made.folded, board.resources
    used = found.usage
    text = (
        f"{made.network.name} on {board.title}: a frame every {found.cycles:,} cycles (modelled), "
        f"{found.frames_per_second(made.clock.mhz):.1f} frames/s at {made.clock.mhz:g} MHz (target)\n"
        f"{used.lut:,} of {have.lut:,} LUT, {used.dsp} of {have.dsp} DSP, "
        f"{-(-used.bram18 // 2)} of {have.bram36} BRAM36, {used.uram} of {have.uram} URAM (estimate); "
        f"folding {found.state}, {proof(found)}, {found.seconds:.1f} s"
    )
    if not found.fits:
        text += f"\nIT DOES NOT FIT {board.title}: ask for fewer frames with --fps, or for fewer bits"
    if made.fifos is not None:
        rate = made.clock.mhz * 1e6 / made.fifos.interval
        text += (
            f"\nFIFOs: {made.fifos.bits:,} bits, sized by the trace and in the estimate ({made.fifos.fixed_bits:,} "
            f"at a fixed depth); a frame every {made.fifos.interval:,} cycles, {rate:.1f} frames/s, latency "
            f"{made.fifos.latency:,} cycles (traced)"
        )
    return text


def _fifos(fifos: Fifos) -> dict[str, Any]:
    return {**asdict(fifos), "depths": dict(fifos.depths)}


# --- fold ------------------------------------------------------------------------------------------------------


def fold(options: argparse.Namespace) -> int:
    """JSON: {network, board, clock_mhz, folders: [{folder, cycles, fps, lut, dsp, bram18, uram, converters,
    fifo_bits, price, reached, fits, state, gap, seconds, reason}]}."""
    check_network(options.network)
    board = board_room.load(options.board)
    clock = board.clocks()[-1] if options.clock is None else board.nearest_clock(options.clock)
    wanted = asked(options)
    with StatusLine() as status:
        status.tell("reading the network")
        model = load_model(options.network, options.weights, None, _seed(options), options.size)
        calibration = Calibration(sample_pictures()[:1], bits=options.bits)
        network = quantise_model(model, calibration, model.fit, status.tell)
        graph = lower(network)
        if options.compare:
            also = () if wanted.given is None else (options.folding,)
            compared: Comparison = compare_folders(graph, board, clock, wanted, (*FOLDERS, *also), status.tell)
        else:
            status.tell("folding")
            alone = Row(options.folding, fold_network(graph, board, clock, wanted))
            compared = Comparison(graph.name, board.name, clock.mhz, (alone,), wanted.fps)
        if options.save is not None:
            write_text(options.save, to_json(_chosen(compared, options.folding).folding))
        if options.report is not None:
            from systolic.styles.streaming.report import folding_page

            status.tell("drawing")
            write_text(options.report, folding_page(compared))
    give(options, compared.values(), compared.text())
    return 0


def _chosen(compared: Comparison, folder: str) -> FoldingResult:
    """What --folding names; ScheduleError where it found nothing."""
    (row,) = (one for one in compared.rows if one.folder == folder)
    if row.found is None:
        raise ScheduleError(f"{folder} found nothing to save: {row.reason}")
    return row.found


def _seed(options: argparse.Namespace) -> int | None:
    """Shapes alone decide; a network without numbers gets random ones."""
    return 1 if options.weights is None and options.seed is None and options.network != "shapes" else options.seed


# --- cycles ----------------------------------------------------------------------------------------------------


def time_pipeline(options: argparse.Namespace, pipeline: StreamingDesign, pixels: Pixels) -> int:
    """JSON: {network, clock_mhz, cycles_per_frame, latency_cycles, frames_per_second, dsp, dsp_efficiency, memory,
    layers: [{name, cycles, macs, efficiency, bound_by, modelled_cycles}], processes, fifos}."""
    if options.layer is not None:
        raise SimulationError(
            f"--layer {options.layer}: a pipeline works on all layers at once, in one region of the trace; leave "
            "--layer out and see every block's lane"
        )
    memory = board_memory(pipeline, options.ddr_efficiency)
    with StatusLine() as status:
        trace = trace_pipeline(pipeline, pixels, status.tell)
        status.tell("solving")
        report = measure_pipeline(pipeline, trace, memory, options.clock)
        save_cycles(pipeline.path, report)
        sized = None
        if options.fifos:
            status.tell("sizing FIFOs")
            sized = size_fifos(trace, memory, report.clock_mhz, pipeline.fifo_bits)
        if options.timeline is not None:
            status.tell("drawing")
            save_timeline(report.timing, options.timeline, title=_time_title(report), marks=report.frame_ends)
    values = _timed(report, sized)
    give(options, values, _timed_text(pipeline, report, sized))
    return 0


def _time_title(report: StreamingReport) -> str:
    return (
        f"{report.network}: a frame every {report.cycles_per_frame:,} cycles traced, "
        f"{report.frames_per_second:.1f} frames/s at {report.clock_mhz:g} MHz (target)"
    )


def _timed(report: StreamingReport, sized: Fifos | None) -> dict[str, Any]:
    values: dict[str, Any] = {
        "network": report.network,
        "clock_mhz": report.clock_mhz,
        "cycles_per_frame": report.cycles_per_frame,
        "latency_cycles": report.latency_cycles,
        "frames_per_second": round(report.frames_per_second, 2),
        "dsp": report.dsp,
        "dsp_efficiency": round(report.dsp_efficiency, 4),
        "memory": asdict(report.timing.memory),
        "layers": [asdict(layer) for layer in report.layers],
        "processes": [_process(one) for one in report.timing.regions[0].processes],
    }
    if sized is not None:
        values["fifos"] = _fifos(sized)
    return values


def _process(one: Any) -> Mapping[str, Any]:
    keys = ("name", "busy", "wait_input", "wait_space", "wait_memory", "idle")
    return {key: getattr(one, key) for key in keys}


def _timed_text(pipeline: StreamingDesign, report: StreamingReport, sized: Fifos | None) -> str:
    waits = {one.name: one for one in report.timing.regions[0].processes}
    rows: list[list[Cell]] = [
        [
            one.name,
            one.cycles,
            one.modelled_cycles,
            100 * one.cycles / report.cycles_per_frame,
            one.macs,
            waits[one.name].wait_input // FRAMES,
            waits[one.name].wait_space // FRAMES,
            one.bound_by,
        ]
        for one in report.layers
    ]
    head = ("block", "cycles", "modelled", "busy %", "MACs", "waits for input", "for space", "folding")
    text = (
        f"{table(head, rows)}\n\n{report.network}: a frame every {report.cycles_per_frame:,} cycles, "
        f"{report.frames_per_second:.1f} frames/s at {report.clock_mhz:g} MHz (target), latency "
        f"{report.latency_cycles:,} cycles; bound by {report.slowest.name} (cycles traced on the generated code over "
        f"{FRAMES} frames; modelled: closed formulas)"
    )
    if sized is not None:
        declared = {fifo.name: fifo.depth for fifo in pipeline.manifest.fifos}
        depths: list[list[Cell]] = [[name, declared[name], depth] for name, depth in sized.depths.items()]
        text += f"\n\n{table(('stream', 'declared depth', 'least that loses nothing'), depths)}"
    return text
