"""The evaluation of a network on labelled images: float network, quantised network and executed design."""

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
from systolic.evaluation.frames import MIN_PROBABILITY, EvaluatedNetwork, Frame, ImageResult, Subject, compute_all
from systolic.evaluation.layouts.darknet import Classes
from systolic.evaluation.layouts.labelled import LabelledPicture, LabelledSet
from systolic.evaluation.layouts.read import read_labelled
from systolic.evaluation.report import Evaluation, Executed
from systolic.execution.run import detector_of
from systolic.styles.style import OpenedDesign


@dataclass(frozen=True)
class EvaluationOptions:
    """The options of an evaluation: the labelled images, the confidence threshold and the number of processes.

    Attributes:
        data: The folder of images, list of images (.txt) or COCO annotations (.json).
        split: The part of the set to evaluate on, if the set has several parts.
        limit: The number of images to evaluate on, evenly spread over the set. None means all.
        threshold: The confidence threshold of the boxes that precision, recall and agreement count.
        workers: The number of processes.
        executed: The number of images that the design is also executed on.
    """

    data: Path
    split: str | None = None
    limit: int | None = None
    threshold: float = 0.24
    workers: int = 1
    executed: int = 0


def evaluate(
    subject: Subject,
    labelled: LabelledSet,
    options: EvaluationOptions,
    design: OpenedDesign | None = None,
    progress: Progress = silent,
) -> Evaluation:
    """Measure the float and the quantised network on every labelled image, and the design on the first images.

    Args:
        subject: The network in both forms.
        labelled: The images that ``read_pictures`` returns.
        design: The generated design to execute. None executes nothing.

    Raises:
        SystolicError: An error of ``load_frame`` for a file that is not an image.
    """
    paths = [picture.path for picture in labelled.pictures]
    total = len(paths)
    frames = compute_all(
        subject,
        paths,
        options.workers,
        lambda count: progress(ProgressStep(f"picture {count} of {total}", count, total)),
    )
    pictures = [
        picture.in_pixels(frame.width, frame.height) for picture, frame in zip(labelled.pictures, frames, strict=True)
    ]
    labelled = replace(labelled, pictures=tuple(pictures))
    executed = _execute(design, subject, labelled.pictures[: options.executed], progress) if design else None
    return Evaluation(subject, labelled, frames, options.threshold, _ratios(subject, frames), executed)


def read_pictures(network: EvaluatedNetwork, options: EvaluationOptions) -> LabelledSet:
    """Return the labelled images that the options name. With ``limit``, return only so many, evenly spread.

    Only the float network is needed, so that a wrong label is an error before the network is calibrated.

    Raises:
        RangeError: The limit is below 1.
        SystolicError: An error of ``read_labelled``.
    """
    classes = Classes(network.network.labels, network.classes)
    labelled = read_labelled(options.data, classes, options.split, network.is_classifier)
    if options.limit is None or options.limit >= len(labelled.pictures):
        return labelled
    if options.limit < 1:
        raise RangeError("--pictures", options.limit, 1)
    places = np.linspace(0, len(labelled.pictures) - 1, options.limit).round().astype(int)
    return replace(labelled, pictures=tuple(labelled.pictures[place] for place in places))


def _ratios(subject: Subject, frames: Sequence[Frame]) -> dict[str, float]:
    """Return {node name: SQNR in dB} of each output of the quantised network, over all images together."""
    signal = np.sum([frame.signal for frame in frames], axis=0)
    noise = np.sum([frame.noise for frame in frames], axis=0)
    with np.errstate(divide="ignore"):
        ratios = 10 * (np.log10(signal) - np.log10(noise))
    return {subject.network.nodes[node].name: float(ratio) for node, ratio in zip(subject.outputs, ratios, strict=True)}


def _execute(
    design: OpenedDesign, subject: Subject, pictures: Sequence[LabelledPicture], progress: Progress
) -> Executed | None:
    """Run the generated design on these images, and count the output integers that differ from the golden model.

    The detector runs on the accelerator if pynq finds one, else in simulation. Return None without images.
    """
    if not pictures:
        return None
    options = Options(threshold=MIN_PROBABILITY, overlap=subject.iou_threshold)
    manifest, answers, mismatches = design.manifest, [], 0
    nodes = [manifest.layers[index].node for index in manifest.output_layers]
    with detector_of(design.path, options, progress=progress) as detector:
        for result in detector.stream([picture.path for picture in pictures]):
            done = result.index + 1
            progress(ProgressStep(f"executing, picture {done} of {len(pictures)}", done, len(pictures)))
            answers.append(ImageResult(result.detections, result.scores))
            frame = load_frame(pictures[result.index].path)
            golden = run_integer(design.network, network_input(frame, manifest.input.shape, manifest.fit)[0])
            mismatches += sum(
                int(np.count_nonzero(output != golden[node]))
                for node, output in zip(nodes, result.outputs, strict=True)
            )
        return Executed(tuple(answers), mismatches, detector.label)
