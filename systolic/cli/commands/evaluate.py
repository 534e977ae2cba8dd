"""``systolic evaluate``: the accuracy of the float and the quantised network on labelled pictures."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from boards import board as board_room
from boards.errors import ConflictError, InvalidValueError, MissingValueError
from host.contract.manifest import is_design
from host.vision.drawing import check_picture
from systolic.cli.inputs import calibration_from, check_network, check_share, check_whole, model_of
from systolic.cli.messages import log
from systolic.cli.output import write_result
from systolic.cli.progress import StatusLine
from systolic.evaluation.evaluate import EvaluationOptions, evaluate, read_pictures
from systolic.evaluation.fidelity import Tried, weight_bits
from systolic.evaluation.frames import EvaluatedNetwork, Subject, cores
from systolic.evaluation.layouts.labelled import LabelledSet
from systolic.evaluation.mixed import Pipeline
from systolic.evaluation.report import Evaluation, save_worst
from systolic.loading import reload, trained_integers
from systolic.model import Calibration, quantise_model
from systolic.styles.registry import open_design

OF_A_NETWORK = (
    "weights",
    "names",
    "seed",
    "size",
    "cut",
    "calibrate",
    "fit",
    "bits",
    "reconstruct",
    "zero_points",
    "mixed",
    "board",
)
"""Options that a generated design does not accept, because they were chosen when it was generated."""


def run(options: argparse.Namespace) -> int:
    """Measure the accuracy of a network or a design. JSON: ``Evaluation.values``.

    Returns:
        1 if an integer of the executed code differs from the golden model, else 0.
    """
    _check(options)
    workers = options.workers or cores()
    evaluation_options = EvaluationOptions(
        options.data, options.split, options.pictures, options.conf, workers, options.executed
    )
    evaluated = _of_design if is_design(Path(options.network)) else _of_network
    with StatusLine() as status:
        evaluation = evaluated(options, evaluation_options, status)
        if options.worst is not None:
            status.report("drawing")
            save_worst(evaluation, options.worst)
    for warning in evaluation.warnings:
        log.warning("%s", warning)
    written = f"\n\nworst cases are drawn in {options.worst}" if options.worst is not None else ""
    write_result(options, evaluation.values(), evaluation.text() + written)
    return 1 if evaluation.executed is not None and evaluation.executed.mismatches else 0


def _check(options: argparse.Namespace) -> None:
    check_share("--conf", options.conf)
    check_share("--iou", options.iou)
    for flag, value, low in (
        ("--workers", options.workers, 1),
        ("--executed", options.executed, 0),
        ("--pictures", options.pictures, 1),
    ):
        check_whole(flag, value, low)
    if options.worst is not None:
        check_picture(options.worst)


def _of_design(options: argparse.Namespace, evaluation_options: EvaluationOptions, status: StatusLine) -> Evaluation:
    """Evaluate the network of a generated design, and the design itself if --executed asks for it."""
    folder = Path(options.network)
    flags = [f"--{name.replace('_', '-')}" for name in OF_A_NETWORK if getattr(options, name)]
    if flags:
        raise ConflictError(
            (str(folder), *flags),
            "a generated design already has its network and bits",
            remedy=f"leave out {flags[0]}",
        )
    design = open_design(folder)
    network = replace(reload(folder), labels=tuple(design.manifest.labels))
    tried = Tried(trained_integers(folder), bits=weight_bits(design.network), generated=True)
    subject = Subject(network, design.network, design.manifest.fit, options.iou, tried)
    labelled = _labelled(subject, evaluation_options, status)
    return evaluate(subject, labelled, evaluation_options, design, status.report)


def _of_network(options: argparse.Namespace, evaluation_options: EvaluationOptions, status: StatusLine) -> Evaluation:
    """Evaluate a network that the options quantise. The labels are read first, because calibration takes longer."""
    if options.executed:
        raise InvalidValueError(
            "the design of --executed", options.network, "a generated design", remedy="run systolic generate first"
        )
    check_network(options.network)
    status.report("reading the network")
    model = model_of(options, options.seed, options.names)
    calibration = _calibration(options)
    labelled = _labelled(EvaluatedNetwork(model.network), evaluation_options, status)
    quantised = quantise_model(model, calibration, status.report)
    tried = Tried.of(model, quantised, calibration)
    subject = Subject(model.network, quantised, calibration.fit or model.fit, options.iou, tried)
    return evaluate(subject, labelled, evaluation_options, progress=status.report)


def _labelled(network: EvaluatedNetwork, evaluation_options: EvaluationOptions, status: StatusLine) -> LabelledSet:
    status.report("reading labels")
    return read_pictures(network, evaluation_options)


def _calibration(options: argparse.Namespace) -> Calibration:
    """Return the calibration that the options describe. With --mixed, --board names the board whose rate counts."""
    calibration = calibration_from(options)
    if options.board is None:
        return calibration
    if options.mixed is None:
        raise MissingValueError("--mixed SHARE", "--board has an effect only on the frame rate of --mixed")
    return replace(calibration, pipeline=Pipeline(board_room.load(options.board)))
