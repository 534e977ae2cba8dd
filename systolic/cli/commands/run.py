"""``systolic run``: what the accelerator sees, on a picture or on a folder of them."""

from __future__ import annotations

import argparse
from pathlib import Path

from boards.errors import SimulationError
from host.vision.detection import OVERLAP, THRESHOLD
from systolic.cli.arguments import Parsers, add_json, command
from systolic.cli.output import give
from systolic.cli.progress import StatusLine
from systolic.execution.frames import run_frames
from systolic.execution.run import Run, detection_values
from systolic.execution.run import run as run_picture
from systolic.report.tables import Cell, table
from systolic.styles.registry import open_design


def add(parsers: Parsers) -> None:
    """The command's arguments."""
    parser = command(
        parsers,
        "run",
        run,
        "find the objects on a picture with the executed design",
        "systolic run DIR dog.jpg -o boxes.png",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="a generated design")
    parser.add_argument("picture", type=Path, metavar="P", help="the picture, or a folder of them or of video frames")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="where the picture with its boxes is written; a folder, where P is one",
    )
    parser.add_argument("--threshold", type=float, default=THRESHOLD, help="least probability (default: %(default)s)")
    parser.add_argument(
        "--overlap", type=float, default=OVERLAP, help="greatest overlap of two boxes of a class (default: %(default)s)"
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """JSON: {picture, width, height, detections: [{label, probability, box: [x0, y0, x1, y1]}], mismatches}; for a
    folder of pictures {frames: [the same without mismatches], frames_per_second, seconds_by_stage, bound_by, label}."""
    for name in ("threshold", "overlap"):
        share = getattr(options, name)
        if not 0 <= share <= 1:
            raise SimulationError(f"--{name} is 0…1, not {share:g}")
    design = open_design(options.folder)
    if options.picture.is_dir():
        return _run_folder(options)
    with StatusLine() as status:
        seen = run_picture(design, options.picture, options.threshold, options.overlap, progress=status.tell)
    if options.output is not None:
        seen.save(options.output)
    give(options, {"picture": str(options.picture), **seen.values()}, text(seen, options.output))
    return 0 if seen.mismatches == 0 else 1


def text(seen: Run, output: Path | None) -> str:
    """For a terminal. output: where the picture with its boxes went."""
    return seen.text() + (f"\n\nwritten to {output}" if output is not None else "")


def _run_folder(options: argparse.Namespace) -> int:
    with StatusLine() as status:
        frames = run_frames(
            options.folder, options.picture, options.threshold, options.overlap, options.output, status.tell
        )
    measured, described = frames.measured, []
    rows: list[list[Cell]] = []
    for result, path in zip(frames.results, frames.paths, strict=True):
        height, width = result.picture.shape[:2]
        boxes = detection_values(result.detections)
        described.append({"picture": str(path), "width": width, "height": height, "detections": boxes})
        for seen in result.detections:
            rows.append([path.name, seen.label, seen.probability, *(round(edge) for edge in seen.box)])
    values = {
        "frames": described,
        "frames_per_second": round(measured.throughput, 2),
        "seconds_by_stage": measured.busy,
        "bound_by": measured.bound_by,
        "label": measured.label,
    }
    give(options, values, f"{table(('picture', 'label', 'probability', 'x0', 'y0', 'x1', 'y1'), rows)}\n\n{measured}")
    return 0
