"""A network on labelled pictures: floats, integers, and the executed design."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from boards.errors import RangeError
from boards.progress import Progress, ProgressStep, silent
from cnn.integer_model import run_integer
from host import Options
from host.vision.channels import load_frame, network_input
from systolic.evaluation.frames import LEAST_PROBABILITY, Frame, Seen, Subject, compute_all
from systolic.evaluation.layouts.darknet import Classes
from systolic.evaluation.layouts.labelled import LabelledPicture, LabelledSet
from systolic.evaluation.layouts.read import read_labelled
from systolic.evaluation.report import Evaluation, Executed
from systolic.execution.run import detector_of
from systolic.styles.style import OpenedDesign


@dataclass(frozen=True)
class EvaluationOptions:
    """What to evaluate on, and how.

    split: the part of a set that has several. limit: pictures, evenly spread over the set; all where it is None.
    threshold: least probability of boxes that are shown. workers: processes. executed: pictures that the design runs
    too.
    """

    data: Path
    split: str | None = None
    limit: int | None = None
    threshold: float = 0.24
    workers: int = 1
    executed: int = 0


def evaluate(
    subject: Subject, wishes: EvaluationOptions, design: OpenedDesign | None = None, tell: Progress = silent
) -> Evaluation:
    """Floats and integers on every picture, the executed design on some. design: what is executed.

    Raises the errors of ``read_pictures``, and those of ``load_frame`` for a file that is not a picture.
    """
    tell("reading labels")
    labelled = read_pictures(subject, wishes)
    paths = [picture.path for picture in labelled.pictures]
    total = len(paths)
    frames = compute_all(
        subject, paths, wishes.workers, lambda count: tell(ProgressStep(f"picture {count} of {total}", count, total))
    )
    pictures = [
        picture.in_pixels(frame.width, frame.height) for picture, frame in zip(labelled.pictures, frames, strict=True)
    ]
    labelled = replace(labelled, pictures=tuple(pictures))
    executed = _execute(design, subject, labelled.pictures[: wishes.executed], tell) if design else None
    return Evaluation(subject, labelled, frames, wishes.threshold, _ratios(subject, frames), executed)


def read_pictures(subject: Subject, wishes: EvaluationOptions) -> LabelledSet:
    """The set that is named, or as many of its pictures as are wished for."""
    classes = Classes(subject.network.labels, subject.classes)
    labelled = read_labelled(wishes.data, classes, wishes.split, subject.is_classifier)
    if wishes.limit is None or wishes.limit >= len(labelled.pictures):
        return labelled
    if wishes.limit < 1:
        raise RangeError("--pictures", wishes.limit, 1)
    places = np.linspace(0, len(labelled.pictures) - 1, wishes.limit).round().astype(int)
    return replace(labelled, pictures=tuple(labelled.pictures[place] for place in places))


def _ratios(subject: Subject, frames: Sequence[Frame]) -> dict[str, float]:
    """SQNR in dB by output, over all pictures together."""
    signal = np.sum([frame.signal for frame in frames], axis=0)
    noise = np.sum([frame.noise for frame in frames], axis=0)
    with np.errstate(divide="ignore"):
        ratios = 10 * (np.log10(signal) - np.log10(noise))
    return {subject.network.nodes[node].name: float(ratio) for node, ratio in zip(subject.outputs, ratios, strict=True)}


def _execute(
    design: OpenedDesign, subject: Subject, pictures: Sequence[LabelledPicture], tell: Progress
) -> Executed | None:
    """The host's own code over the design: on the board where pynq finds one, else simulated."""
    if not pictures:
        return None
    options = Options(threshold=LEAST_PROBABILITY, overlap=subject.overlap)
    manifest, answers, mismatches = design.manifest, [], 0
    nodes = [manifest.layers[index].node for index in manifest.output_layers]
    with detector_of(design.path, options, tell=tell) as detector:
        for result in detector.stream([picture.path for picture in pictures]):
            done = result.index + 1
            tell(ProgressStep(f"executing, picture {done} of {len(pictures)}", done, len(pictures)))
            answers.append(Seen(result.detections, result.scores))
            frame = load_frame(pictures[result.index].path)
            golden = run_integer(design.network, network_input(frame, manifest.input.shape, manifest.fit)[0])
            mismatches += sum(
                int(np.count_nonzero(output != golden[node]))
                for node, output in zip(nodes, result.outputs, strict=True)
            )
        return Executed(tuple(answers), mismatches, detector.label)
