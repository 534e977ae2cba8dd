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
from systolic.cli.output import give
from systolic.cli.progress import StatusLine
from systolic.evaluation.evaluate import EvaluationOptions, evaluate
from systolic.evaluation.fidelity import Tried, weight_bits
from systolic.evaluation.frames import Subject, cores
from systolic.evaluation.mixed import Pipeline
from systolic.evaluation.report import save_worst
from systolic.loading import reload, trained_integers
from systolic.model import Calibration, quantise_model
from systolic.styles.registry import open_design
from systolic.styles.style import OpenedDesign

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
    with StatusLine() as status:
        subject, design = _subject(options, status)
        evaluation = evaluate(subject, evaluation_options, design, status.tell)
        if options.worst is not None:
            status.tell("drawing")
            save_worst(evaluation, options.worst)
    for warning in evaluation.warnings:
        log.warning("%s", warning)
    written = f"\n\nworst cases are drawn in {options.worst}" if options.worst is not None else ""
    give(options, evaluation.values(), evaluation.text() + written)
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


def _subject(options: argparse.Namespace, status: StatusLine) -> tuple[Subject, OpenedDesign | None]:
    """Return the float and the quantised network to compare, and the design if NET|DIR is one, else None."""
    folder = Path(options.network)
    if is_design(folder):
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
        return subject, design
    if options.executed:
        raise InvalidValueError(
            "the design of --executed", options.network, "a generated design", remedy="run systolic generate first"
        )
    check_network(options.network)
    status.tell("reading the network")
    model = model_of(options, options.seed, options.names)
    calibration = _calibration(options)
    quantised = quantise_model(model, calibration, status.tell)
    tried = Tried.of(model, quantised, calibration)
    return Subject(model.network, quantised, calibration.fit or model.fit, options.iou, tried), None


def _calibration(options: argparse.Namespace) -> Calibration:
    """Return the calibration that the options describe. With --mixed, --board names the board whose rate counts."""
    calibration = calibration_from(options)
    if options.board is None:
        return calibration
    if options.mixed is None:
        raise MissingValueError("--mixed SHARE", "--board has an effect only on the frame rate of --mixed")
    return replace(calibration, pipeline=Pipeline(board_room.load(options.board)))
