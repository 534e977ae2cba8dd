"""One callable a command. Each prints a table, or with ``--json`` one object and nothing else on stdout."""

from __future__ import annotations

import argparse
import math
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from boards import board as board_room
from boards.errors import GenerateError, SimulationError
from cnn import zoo
from cnn.float_model import run_float
from cnn.integer_model import dequantise, run_integer
from cnn.quantisation.fidelity import sqnr_db
from host.vision.detection import Detection
from host.vision.frame import Result
from host.vision.picture import Pixels, load_picture
from systolic.cli.commands_streaming import generate_streaming, time_pipeline
from systolic.cli.options import check_generate, check_run, check_simulate
from systolic.cli.output import give, read_schedule
from systolic.cli.progress import StatusLine
from systolic.execution.build import Variant
from systolic.execution.frames import run_frames, save_cycles
from systolic.execution.run import Run, fit_picture, run, save_annotated
from systolic.execution.simulation import Simulation
from systolic.files import check_target, write
from systolic.golden import checksums, first_difference, run_golden
from systolic.model import Calibration, load_model, reload, sample_pictures
from systolic.report.tables import Cell, table
from systolic.styles.streaming.simulate import StreamingDesign
from systolic.styles.style import Opened, execute, open_design
from systolic.styles.systolic.flow import SystolicPlan, make_design
from systolic.styles.systolic.measure import SystolicReport, advise, measure, trace_frame
from systolic.styles.systolic.simulate import SystolicDesign, open_folder, simulate_batch
from systolic.trace.advice import Advice
from systolic.trace.report import board_memory
from systolic.trace.timeline import save as save_timeline

# --- boards ------------------------------------------------------------------------------------------------


def boards(options: argparse.Namespace) -> int:
    """JSON: {boards: [every fact of each board]}."""
    names = [options.board] if options.board else list(board_room.names())
    loaded = [board_room.load(name) for name in names]
    values = {"boards": [{**asdict(one), "clocks_mhz": [c.mhz for c in one.clocks()]} for one in loaded]}
    give(options, values, _board_facts(loaded[0]) if options.board else _board_table(loaded))
    return 0


def _board_table(loaded: list[board_room.Board]) -> str:
    rows = [
        (
            b.name,
            b.title,
            b.part,
            b.resources.dsp,
            b.resources.bram36,
            b.resources.uram,
            b.resources.lut,
            b.ddr.preset_gbps,
            len(b.ports),
            b.clocks()[-1].mhz,
        )
        for b in loaded
    ]
    head = ("board", "title", "part", "DSP", "BRAM36", "URAM", "LUT", "DDR GB/s", "ports", "MHz")
    return table(head, rows) + "\n\nDDR GB/s: peak at the speed the board's preset programs. MHz: highest PL clock."


def _board_facts(one: board_room.Board) -> str:
    clocks = ", ".join(f"{c.mhz:g}" for c in one.clocks()[-12:])
    rows: list[tuple[str, str]] = []
    for section, facts in asdict(one).items():
        if isinstance(facts, dict):
            rows += [(f"{section}.{name}", str(value)) for name, value in facts.items()]
        elif isinstance(facts, (list, tuple)):
            rows += [(section, ", ".join(f"{k}={v}" for k, v in entry.items())) for entry in facts]
        else:
            rows.append((section, str(facts)))
    return table(("fact", one.title), [*rows, ("clocks (MHz)", clocks)])


# --- generate ----------------------------------------------------------------------------------------------


def generate_design(options: argparse.Namespace) -> int:
    """JSON: {folder, digest, network, board, clock_mhz, array, layers, modelled_cycles}."""
    if options.network == "list":
        print("\n".join(zoo.names()))
        return 0
    if options.output is None:
        raise GenerateError("generate needs -o DIR, the new folder for the design")
    check_generate(options)
    board = board_room.load(options.board)
    samples = sample_pictures()
    check_target(options.output, options.force)
    calibration = Calibration(tuple(options.calibrate) or samples, options.method, options.fit, options.bits)
    if options.style == "streaming":
        if options.batch is not None:
            raise GenerateError(
                "--batch is for the systolic style: a pipeline takes frame after frame and its weights stay where they "
                "are; leave it out"
            )
        return generate_streaming(options, calibration)
    with StatusLine() as status:
        status.tell("reading the network")
        model = load_model(options.network, options.weights, options.names, options.seed, options.size)
        given = None if options.schedule is None else (read_schedule(options.schedule), options.schedule.name)
        made = make_design(model, board, options.clock, calibration, status.tell, given, options.batch)
        status.tell("writing")
        write(made.design, options.output, replace=options.force)
    if not options.calibrate:
        print(
            f"systolic: calibrated on the {len(samples)} embedded samples; for real use give --calibrate PICTURE...",
            file=sys.stderr,
        )
    give(options, _generated(made, board, options.output), _generated_text(made, board, options.output))
    return 0


def _generated(made: SystolicPlan, board: board_room.Board, folder: Path) -> dict[str, Any]:
    schedule = made.schedule
    return {
        "folder": str(folder),
        "digest": made.design.digest,
        "network": schedule.network.name,
        "board": board.name,
        "clock_mhz": made.clock.mhz,
        "array": asdict(schedule.array),
        "batch": schedule.batch,
        "layers": [
            {
                "name": scheduled.layer.name,
                "macs": scheduled.layer.macs,
                "order": scheduled.tiling.order,
                "compute_cycles": scheduled.cycles,
                "modelled_cycles": layer.total,
                "bound_by": layer.bound_by,
            }
            for scheduled, layer in zip(schedule.layers, made.cost.layers, strict=True)
        ],
        "modelled_cycles": made.cost.cycles,
    }


def _generated_text(made: SystolicPlan, board: board_room.Board, folder: Path) -> str:
    schedule = made.schedule
    array = schedule.array
    rows: list[list[Cell]] = [
        [
            scheduled.layer.name,
            scheduled.layer.macs,
            layer.total,
            100 * made.cost.efficiency(layer),
            layer.bound_by,
            scheduled.tiling.order,
            scheduled.row_tiles,
            scheduled.channel_tiles,
            scheduled.tiling.columns.count,
        ]
        for scheduled, layer in zip(schedule.layers, made.cost.layers, strict=True)
    ]
    head = ("layer", "MACs", "cycles", "PEs busy %", "bound by", "order", "row tiles", "channel tiles", "column tiles")
    return (
        f"{table(head, rows)}\n\n{schedule.network.name} on {board.title}: array {array}, {array.dsps} of "
        f"{board.resources.dsp} DSPs (estimate), target clock {made.clock.mhz:g} MHz\n"
        f"{made.cost.cycles_per_frame:,} cycles a frame modelled{_batch(schedule.batch)}, "
        f"{made.cost.frames_per_second:.1f} frames/s at that clock; "
        "systolic simulate --cycles traces the generated code\n"
        f"written to {folder}, digest {made.design.digest[:16]}"
    )


def _batch(batch: int) -> str:
    return f" in batches of {batch} (the table's are those of a batch)" if batch > 1 else ""


# --- simulate ----------------------------------------------------------------------------------------------


def simulate_design(options: argparse.Namespace) -> int:
    """JSON: {network, variant, layers: [{name, values, mismatches, first, sqnr_db}], mismatches}; of a design of
    batches {network, batch, frames: [the same of each frame], mismatches}.

    With ``--golden`` also golden_program: {agrees, first_difference}; with ``--cycles`` what ``time_design`` gives.
    """
    check_simulate(options)
    folder = open_design(options.folder)
    frames = [fit_picture(folder, load_picture(picture))[0] for picture in options.picture]
    pixels = frames[0]
    if isinstance(folder, SystolicDesign) and folder.manifest.batch > 1 and not options.cycles:
        return simulate_frames(options, folder, frames)
    if len(frames) > 1:
        raise SimulationError(_one_picture(folder, options.cycles))
    if options.cycles and isinstance(folder, StreamingDesign):
        return time_pipeline(options, folder, pixels)
    if options.cycles and isinstance(folder, SystolicDesign):
        return time_design(options, folder, pixels)
    with StatusLine() as status:
        result = execute(folder, pixels, Variant(ap_int=options.ap_int), status.tell)
        status.tell("float reference")
        values = simulated(folder, pixels, result)
        if options.golden:
            values |= golden_program(folder, pixels, status)
    give(options, values, _simulated_text(values))
    return 0 if _right(values) else 1


def _right(values: Mapping[str, Any]) -> bool:
    return values["mismatches"] == 0 and ("golden_program" not in values or values["golden_program"]["agrees"])


def _one_picture(folder: Opened, cycles: bool) -> str:
    if cycles:
        return "--cycles traces one picture, the whole batch of it; give one"
    return f"{folder.path} takes one picture at a time; give one, or generate with --batch (systolic style)"


def simulate_frames(options: argparse.Namespace, folder: SystolicDesign, frames: list[Pixels]) -> int:
    """The last of ``frames`` fills the batch."""
    with StatusLine() as status:
        results = simulate_batch(folder, frames, Variant(ap_int=options.ap_int), status.tell)
        status.tell("float reference")
        pictures = frames + frames[-1:] * (folder.manifest.batch - len(frames))
        found = [simulated(folder, *one) for one in zip(pictures, results, strict=True)]
        if options.golden:
            programs = [golden_program(folder, one, status) for one in frames]
            programs += programs[-1:] * (folder.manifest.batch - len(frames))
            found = [values | program for values, program in zip(found, programs, strict=True)]
    total = sum(one["mismatches"] for one in found)
    values = {"network": folder.manifest.network, "batch": folder.manifest.batch, "frames": found, "mismatches": total}
    texts = [f"frame {index} of {folder.manifest.batch}\n{_simulated_text(one)}" for index, one in enumerate(found, 1)]
    give(options, values, "\n\n".join(texts))
    return 0 if all(map(_right, found)) else 1


def golden_program(folder: Opened, pixels: Pixels, status: StatusLine) -> dict[str, Any]:
    """{golden_program}: the first layer in which the standalone C++ program differs from the numpy model, if any."""
    status.tell("compiling and running the standalone C++ golden program")
    expected = checksums(folder.network, run_integer(folder.network, pixels))
    differs = first_difference(expected, run_golden(folder.path / "golden", pixels))
    return {"golden_program": {"agrees": differs is None, "first_difference": differs}}


def simulated(folder: Opened, pixels: Pixels, result: Simulation) -> dict[str, Any]:
    """What ``simulate --json`` prints; SQNR is of the executed integers against the float network,
    null where a layer is all zeros or exact."""
    floats = run_float(reload(folder.path), pixels.astype(np.float32) / np.float32(255))
    layers = []
    for layer, described, output in zip(result.layers, folder.manifest.layers, result.outputs, strict=True):
        node = folder.network.nodes[described.node]
        noise = sqnr_db(floats[described.node], dequantise(output, node.type))
        layers.append({**asdict(layer), "sqnr_db": round(noise, 2) if math.isfinite(noise) else None})
    return {
        "network": folder.manifest.network,
        "variant": result.variant.name,
        "layers": layers,
        "mismatches": result.mismatches,
    }


def _simulated_text(values: Mapping[str, Any]) -> str:
    rows = [
        (
            one["name"],
            one["values"],
            one["mismatches"],
            one["sqnr_db"],
            "" if one["first"] is None else "first at channel {}, row {}, column {}".format(*one["first"]),
        )
        for one in values["layers"]
    ]
    total = sum(one["values"] for one in values["layers"])
    verdict = "every bit equal" if values["mismatches"] == 0 else "THE DESIGN IS NOT RIGHT"
    golden = ""
    if "golden_program" in values:
        differs = values["golden_program"]["first_difference"]
        golden = (
            "\nthe standalone C++ golden program agrees in every layer"
            if differs is None
            else (f"\nthe standalone C++ golden program DIFFERS, first in {differs}")
        )
    return (
        f"{table(('layer', 'values', 'mismatches', 'SQNR dB', ''), rows)}\n\n"
        f"{values['mismatches']:,} mismatches in {total:,} values: {verdict} "
        f"(executed {values['variant']} code against the golden model; SQNR against the float network){golden}"
    )


# --- cycles ------------------------------------------------------------------------------------------------


def time_design(options: argparse.Namespace, folder: SystolicDesign, pixels: Pixels) -> int:
    """JSON: {network, clock_mhz, cycles_per_frame, frames_per_second, dsp, dsp_efficiency, memory,
    layers: [{name, cycles, macs, efficiency, bound_by, modelled_cycles}],
    processes: [{layer, name, busy, wait_input, wait_space, wait_memory, idle}], fifos}."""
    memory = board_memory(folder, options.ddr_efficiency)
    with StatusLine() as status:
        trace = trace_frame(folder, pixels, status.tell)
        status.tell("solving")
        report = measure(folder, trace, memory, options.clock)
        save_cycles(folder.path, report)
        fifos = None
        if options.fifos:
            status.tell("searching FIFO depths")
            fifos = advise(trace, memory, report.clock_mhz)
        if options.timeline is not None:
            status.tell("drawing")
            _draw_timeline(report, folder, options.timeline, options.layer)
    values = timed(report, fifos)
    give(options, values, _timed_text(values, report))
    return 0


def timed(report: SystolicReport, fifos: Advice | None) -> dict[str, Any]:
    processes = [
        {
            "pass": region.label,
            "name": one.name,
            "busy": one.busy,
            "wait_input": one.wait_input,
            "wait_space": one.wait_space,
            "wait_memory": one.wait_memory,
            "idle": one.idle,
        }
        for region in report.timing.regions
        if not region.top
        for one in region.processes
    ]
    values: dict[str, Any] = {
        "network": report.network,
        "batch": report.batch,
        "clock_mhz": report.clock_mhz,
        "cycles_per_frame": report.cycles_per_frame,
        "frames_per_second": round(report.frames_per_second, 2),
        "dsp": report.dsp,
        "dsp_efficiency": round(report.dsp_efficiency, 4),
        "memory": asdict(report.timing.memory),
        "layers": [asdict(layer) for layer in report.layers],
        "processes": processes,
    }
    if fifos is not None:
        values["fifos"] = {
            "least": dict(fifos.depths),
            "declared": dict(fifos.declared),
            "best_cycles": fifos.best_cycles,
            "curve": [list(point) for point in fifos.curve],
        }
    return values


def _draw_timeline(report: SystolicReport, folder: SystolicDesign, path: Path, layer: str | None) -> None:
    """The whole frame, or the passes of one layer."""
    names = {layer.first_pass: layer.name for layer in folder.manifest.layers}
    label = None
    if layer is not None:
        label = next((number for number, name in names.items() if name == layer), None)
        if label is None:
            raise SimulationError(f"there is no layer {layer!r} to draw; there are {', '.join(names.values())}")
    save_timeline(report.timing, path, label, _time_title(report), names)


def _time_title(report: SystolicReport) -> str:
    return (
        f"{report.network}: {report.cycles_per_frame:,} cycles traced{_batch_traced(report.batch)}, "
        f"{report.frames_per_second:.1f} frames/s at {report.clock_mhz:g} MHz (target)"
    )


def _batch_traced(batch: int) -> str:
    return f" a frame in batches of {batch} (layers: of a batch)" if batch > 1 else ""


def _timed_text(values: Mapping[str, Any], report: SystolicReport) -> str:
    rows: list[list[Cell]] = [
        [
            one.name,
            one.cycles,
            one.modelled_cycles,
            100 * (one.modelled_cycles / one.cycles - 1),
            one.macs,
            100 * one.efficiency,
            one.bound_by,
        ]
        for one in report.layers
    ]
    head = ("layer", "cycles", "modelled", "error %", "MACs", "PEs busy %", "bound by")
    waits: list[list[Cell]] = []
    for name in dict.fromkeys(one["name"] for one in values["processes"]):
        mine = [one for one in values["processes"] if one["name"] == name]
        waits.append([name, *(sum(one[key] for one in mine) for key in _WAITS)])
    memory = report.timing.memory
    text = (
        f"{table(head, rows)}\n\n"
        f"{table(('process', 'computes', 'waits for input', 'for space', 'for DDR', 'ended'), waits)}\n\n"
        f"{_time_title(report)}\n{report.dsp} DSPs multiply, {100 * report.dsp_efficiency:.1f} % of what they could; "
        f"DDR {memory.peak_gbps:g} GB/s × {memory.efficiency:g} (cycles traced on the generated code; "
        "the clock is a target; modelled: the scheduler's formula at the design's clock and 85 % of the board's DDR)"
    )
    if "fifos" in values:
        fifos = values["fifos"]
        depths: list[list[Cell]] = [[name, fifos["declared"][name], least] for name, least in fifos["least"].items()]
        text += f"\n\n{table(('stream', 'declared depth', 'least that loses nothing'), depths)}"
    return text


_WAITS = ("busy", "wait_input", "wait_space", "wait_memory", "idle")


# --- run ---------------------------------------------------------------------------------------------------


def run_picture(options: argparse.Namespace) -> int:
    """JSON: {picture, width, height, detections: [{label, probability, box: [x0, y0, x1, y1]}], mismatches}; for a
    folder of pictures {frames: [the same without mismatches], frames_per_second, seconds_by_stage, bound_by, label}."""
    check_run(options)
    folder = open_design(options.folder)
    if options.picture.is_dir():
        return run_folder(options)
    with StatusLine() as status:
        result = run(folder, options.picture, options.threshold, options.overlap, progress=status.tell)
    if options.output is not None:
        save_annotated(result, folder.manifest.labels, options.output)
    give(options, detected(result, options.picture), _detected_text(result, options.output))
    return 0 if result.simulation.mismatches == 0 else 1


def run_folder(options: argparse.Namespace) -> int:
    with StatusLine() as status:
        done = run_frames(
            options.folder, options.picture, options.threshold, options.overlap, options.output, status.tell
        )
    took = done.measured
    values = {
        "frames": [_frame(result, path) for result, path in zip(done.results, done.paths, strict=True)],
        "frames_per_second": round(took.throughput, 2),
        "seconds_by_stage": took.busy,
        "bound_by": took.bound_by,
        "label": took.label,
    }
    rows: list[list[Cell]] = [
        [path.name, one.label, one.probability, *(round(v) for v in one.box)]
        for result, path in zip(done.results, done.paths, strict=True)
        for one in result.detections
    ]
    give(options, values, f"{table(('picture', 'label', 'probability', 'x0', 'y0', 'x1', 'y1'), rows)}\n\n{took}")
    return 0


def _frame(result: Result, path: Path) -> dict[str, Any]:
    height, width = result.picture.shape[:2]
    return {"picture": str(path), "width": width, "height": height, "detections": _boxes(result.detections)}


def _boxes(detections: Sequence[Detection]) -> list[dict[str, Any]]:
    return [
        {"label": one.label, "probability": round(one.probability, 4), "box": [round(v, 1) for v in one.box]}
        for one in detections
    ]


def detected(result: Run, path: Path) -> dict[str, Any]:
    height, width = result.picture.shape[:2]
    return {
        "picture": str(path),
        "width": width,
        "height": height,
        "detections": _boxes(result.detections),
        "mismatches": result.simulation.mismatches,
    }


def _detected_text(result: Run, output: Path | None) -> str:
    rows: list[list[Cell]] = [[one.label, one.probability, *(round(v) for v in one.box)] for one in result.detections]
    text = table(("label", "probability", "x0", "y0", "x1", "y1"), rows) if rows else "no object found"
    return text + (f"\n\nwritten to {output}" if output is not None else "")


# --- demo --------------------------------------------------------------------------------------------------


DEMO_PICTURE = "hills"


def demo(options: argparse.Namespace) -> int:
    """JSON: {generate, simulate, run}: the objects of the three commands."""
    board = board_room.load(options.board)
    samples = sample_pictures()
    _check_demo_folder(options.output)
    picture = next(path for path in samples if path.stem == DEMO_PICTURE)
    design_folder = options.output / "accelerator"
    with StatusLine() as status:
        model = load_model("shapes")
        made = make_design(model, board, None, Calibration(samples), status.tell)
        write(made.design, design_folder, replace=True)
        folder = open_folder(design_folder)
        result = run(folder, picture, progress=status.tell)
        pixels, _ = fit_picture(folder, result.picture)
        compared = simulated(folder, pixels, execute(folder, pixels, progress=status.tell))
    annotated = options.output / "boxes.png"
    save_annotated(result, folder.manifest.labels, annotated)
    values = {
        "generate": _generated(made, board, design_folder),
        "simulate": compared,
        "run": detected(result, picture),
    }
    text = "\n\n".join(
        (_generated_text(made, board, design_folder), _simulated_text(compared), _detected_text(result, annotated))
    )
    give(options, values, text)
    return 0 if compared["mismatches"] == 0 else 1


def _check_demo_folder(folder: Path) -> None:
    """The demo may be repeated: it replaces its own folder and no other."""
    if folder.exists() and not folder.is_dir():
        raise GenerateError(f"{folder} is a file, and the demo writes a folder; choose another with -o DIR")
    if folder.exists() and any(folder.iterdir()) and not (folder / "accelerator" / "manifest.json").is_file():
        raise GenerateError(f"{folder} exists and is not the demo's, so it is left alone; choose another with -o DIR")
    shutil.rmtree(folder / "accelerator" / "build", ignore_errors=True)
