"""``systolic run``: the accelerator's result for a picture, a folder of pictures or a video."""

from __future__ import annotations

import argparse
from pathlib import Path

from host import Options
from host.vision.drawing import check_picture
from systolic.cli.inputs import check_share
from systolic.cli.output import write_result
from systolic.cli.progress import StatusLine
from systolic.execution.frames import FrameBoxes, is_stream, run_frames
from systolic.execution.run import Run
from systolic.execution.run import run as run_picture
from systolic.report.tables import Cell, table
from systolic.styles.registry import open_design


def run(options: argparse.Namespace) -> int:
    """Run the accelerator on a picture, a folder of pictures or a video, and print its boxes or classes.

    JSON of a picture: {picture, width, height, detections: [{label, probability, box: [x0, y0, x1, y1]}], tensors:
    [{name, sides, least, greatest, values}], mismatches}. A tensor has values only if they are few.

    A classifier has classes instead of detections: [{label, probability}]. A segmentation has segments: [{label,
    share}]. A network without a head has neither.

    JSON of a folder or a video: {frames, frames_per_second, seconds_by_stage, bound_by, label}. Each frame is the
    object of its picture without mismatches. It has tensors only if the network has no head. A frame of a video also
    has its number "frame".

    Returns:
        1 if a simulated integer of a picture differs from the golden model, else 0.
    """
    check_share("--conf", options.conf)
    check_share("--iou", options.iou)
    design = open_design(options.folder)
    if is_stream(options.picture):
        return _run_frames(options)
    if options.output is not None:
        check_picture(options.output)
    with StatusLine() as status:
        answer = run_picture(design, options.picture, options.conf, options.iou, progress=status.report)
    if options.output is not None:
        answer.save(options.output)
    write_result(options, {"picture": str(options.picture), **answer.values()}, text(answer, options.output))
    return 0 if answer.mismatches == 0 else 1


def text(answer: Run, output: Path | None) -> str:
    """Return the boxes or classes of one picture as a table, and the file with the drawn boxes, for a terminal.

    Args:
        output: The file of the picture with its boxes; None if it was not drawn.
    """
    return answer.text() + (f"\n\nwritten to {output}" if output is not None else "")


def _run_frames(options: argparse.Namespace) -> int:
    with StatusLine() as status:
        frames = run_frames(
            options.folder,
            options.picture,
            Options(threshold=options.conf, overlap=options.iou),
            options.output,
            status.report,
        )
    measured = frames.measured
    rows: list[list[Cell]] = [
        [frame.name, box.label, box.probability, *(round(edge) for edge in box.box)]
        for frame in frames.boxes
        for box in frame.detections
    ]
    rows += [
        [frame.name, score.label, score.probability, "", "", "", ""]
        for frame in frames.boxes
        for score in frame.scores[:1]
    ]
    values = {
        "frames": [_frame_values(frame) for frame in frames.boxes],
        "frames_per_second": round(measured.throughput, 2),
        "seconds_by_stage": measured.busy,
        "bound_by": measured.bound_by,
        "label": measured.label,
    }
    write_result(
        options, values, f"{table(('picture', 'label', 'probability', 'x0', 'y0', 'x1', 'y1'), rows)}\n\n{measured}"
    )
    return 0


def _frame_values(frame: FrameBoxes) -> dict[str, object]:
    number = {} if frame.number is None else {"frame": frame.number}
    return {"picture": str(frame.source), **number, "width": frame.width, "height": frame.height, **frame.seen}
