"""``systolic evaluate``: how good a network is on labelled pictures, floats beside integers."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from boards import board as board_room
from boards.errors import GenerateError, LabelError
from host.contract.manifest import is_design
from host.vision.detection import OVERLAP, THRESHOLD
from host.vision.drawing import check_picture
from systolic.cli.arguments import (
    BOARD_HELP,
    NETWORK_HELP,
    Parsers,
    add_json,
    add_numbers,
    add_quantising,
    calibration_from,
    check_network,
    command,
    model_of,
    named,
)
from systolic.cli.output import give
from systolic.cli.progress import StatusLine
from systolic.evaluation.evaluate import Wishes, evaluate
from systolic.evaluation.frames import Subject
from systolic.evaluation.mixed import Pipeline
from systolic.evaluation.pool import cores
from systolic.evaluation.worst import save_worst
from systolic.model import USUAL_BOARD, Calibration, quantise_model, reload, trained_integers
from systolic.styles.registry import open_design
from systolic.styles.style import OpenedDesign

EXAMPLE = "systolic evaluate yolo.cfg --weights yolo.weights --names voc.names --data VOC2007 --split test"
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
"""Options that a generated design has answered."""


def add(parsers: Parsers) -> None:
    """The command's arguments."""
    parser = command(
        parsers, "evaluate", run, "how good a network is on your labelled pictures: floats beside integers", EXAMPLE
    )
    parser.add_argument("network", metavar="NET|DIR", help=f"{NETWORK_HELP}, or a generated design")
    parser.add_argument(
        "--data",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="pictures with labels of darknet or YOLO, VOC, COCO, DAC-SDC, or a folder a class; without labels floats "
        "and integers are compared with each other",
    )
    parser.add_argument("--split", help="the part of a set that has several, such as val")
    parser.add_argument("--pictures", type=int, metavar="N", help="of the set, evenly spread (default: all)")
    parser.add_argument(
        "--executed", type=int, default=0, metavar="N", help="also run the first N pictures on the design in DIR"
    )
    parser.add_argument("--threshold", type=float, default=THRESHOLD, help="least probability (default: %(default)s)")
    parser.add_argument(
        "--overlap", type=float, default=OVERLAP, help="greatest overlap of two boxes of a class (default: %(default)s)"
    )
    parser.add_argument("--worst", type=Path, metavar="FILE", help="a picture of the cases that differ most")
    parser.add_argument("--workers", type=int, default=cores(), metavar="N", help="processes (default: one a core)")
    add_numbers(parser)
    add_quantising(parser)
    parser.add_argument(
        "--board", metavar="BOARD", help=f"with --mixed, whose rate it is: {BOARD_HELP} (default: {USUAL_BOARD})"
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """JSON: ``Evaluation.values``. 1 where an executed integer differs from the golden model."""
    _check(options)
    wishes = Wishes(options.data, options.split, options.pictures, options.threshold, options.workers, options.executed)
    with StatusLine() as status:
        subject, design = _subject(options, status)
        evaluation = evaluate(subject, wishes, design, status.tell)
        if options.worst is not None:
            status.tell("drawing")
            save_worst(evaluation, options.worst)
    for warning in evaluation.warnings:
        print(f"systolic: {warning}", file=sys.stderr)
    written = f"\n\nworst cases in {options.worst}" if options.worst is not None else ""
    give(options, evaluation.values(), evaluation.text() + written)
    return 1 if evaluation.executed is not None and evaluation.executed.mismatches else 0


def _check(options: argparse.Namespace) -> None:
    for name in ("threshold", "overlap"):
        share = getattr(options, name)
        if not 0 <= share <= 1:
            raise LabelError(f"--{name} is 0…1, not {share:g}")
    for name, lowest in (("workers", 1), ("executed", 0), ("pictures", 1)):
        value = getattr(options, name)
        if value is not None and value < lowest:
            raise LabelError(f"--{name} is a whole number, {lowest} or more, not {value}")
    if options.worst is not None:
        check_picture(options.worst)


def _subject(options: argparse.Namespace, status: StatusLine) -> tuple[Subject, OpenedDesign | None]:
    """A generated design's network, or one that is quantised now."""
    folder = Path(options.network)
    if is_design(folder):
        flags = [f"--{name.replace('_', '-')}" for name in OF_A_NETWORK if getattr(options, name)]
        if flags:
            raise GenerateError(f"{folder} is generated, and {named(flags)} decided there; leave out {flags[0]}")
        design = open_design(folder)
        network = replace(reload(folder), labels=tuple(design.manifest.labels))
        subject = Subject(network, design.network, design.manifest.fit, options.overlap, trained_integers(folder))
        return subject, design
    if options.executed:
        raise GenerateError(f"--executed runs a generated design, and {options.network} is none: generate it first")
    check_network(options.network)
    status.tell("reading the network")
    model = model_of(options, options.seed, options.names)
    calibration = _calibration(options)
    quantised = quantise_model(model, calibration, status.tell)
    fit, brought = calibration.fit or model.fit, model.quantized is not None
    return Subject(model.network, quantised, fit, options.overlap, brought), None


def _calibration(options: argparse.Namespace) -> Calibration:
    """Bits by layer for the board that is named."""
    calibration = calibration_from(options)
    if options.board is None:
        return calibration
    if options.mixed is None:
        raise GenerateError("--board says whose rate --mixed SHARE keeps a share of: give both, or leave it out")
    return replace(calibration, pipeline=Pipeline(board_room.load(options.board)))
