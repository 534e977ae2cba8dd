"""``systolic generate``: the accelerator of a trained network, in either style."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from boards import board as board_room
from boards.errors import GenerateError
from cnn.network import Detection
from systolic.checking.design import clock_sentence
from systolic.cli.arguments import (
    NETWORK_HELP,
    Parsers,
    add_arguments,
    add_board,
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
from systolic.designs import GeneratedDesign, Target, make
from systolic.execution.verilate import TOP
from systolic.extending.transforming import transform
from systolic.files import output_folder
from systolic.model import Model, networks, sample_pictures
from systolic.styles.options import DDR_ARGUMENTS, SHARE_ARGUMENTS, flags_set, why_not
from systolic.styles.registry import STYLES, default_style

FLOAT_PASSES = ("fold_batch_norms", "fold_pointwise", "convolve_picture")

EXAMPLE = "systolic generate yolo.cfg --weights yolo.weights --names voc.names --calibrate a.jpg b.jpg -o DIR"


def add(parsers: Parsers) -> None:
    """The command's arguments: its own, and a group a style."""
    parser = command(parsers, "generate", run, "generate the accelerator of a trained network", EXAMPLE)
    parser.add_argument("network", metavar="NET", help=f"{NETWORK_HELP}: see systolic generate list")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="new folder for the design")
    add_numbers(parser)
    add_board(parser, "zcu104")
    parser.add_argument(
        "--clock",
        type=float,
        metavar="MHZ",
        help="target clock; default: the best for the array that is searched, else the highest that the board makes",
    )
    parser.add_argument(
        "--pass",
        dest="passes",
        nargs="+",
        default=[],
        metavar="NAME",
        help=f"transform the network first, results staying equal: {', '.join(FLOAT_PASSES)}, or one of a package",
    )
    add_quantising(parser)
    add_arguments(parser, (*DDR_ARGUMENTS, *SHARE_ARGUMENTS))
    summaries = ", or ".join(f"{name}: {style.summary}" for name, style in STYLES.items())
    parser.add_argument(
        "--style", default=default_style(), choices=tuple(STYLES), help=f"{summaries} (default: %(default)s)"
    )
    for name, style in STYLES.items():
        group = parser.add_argument_group(f"of the {name} style")
        add_arguments(group, style.arguments)
    parser.add_argument("--force", action="store_true", help="replace a design that is in DIR already")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """JSON: {folder, digest, heads: {sqnr_db: by head, pictures}} and what the style's plan tells of itself."""
    if options.network == "list":
        print("\n".join(networks()))
        return 0
    if options.output is None:
        raise GenerateError("generate needs -o DIR, the new folder for the design")
    check_network(options.network)
    check_style(options)
    board = board_room.load(options.board)
    calibration = calibration_from(options)
    with output_folder(options.output, options.force) as output, StatusLine() as status:
        status.tell("reading the network")
        model = model_of(options, options.seed, options.names)
        if options.passes:
            model = transform(model, *options.passes)
        wishes = STYLES[options.style].options_from(options)
        design = make(model, Target(board, options.clock, options.style), calibration, wishes, status.tell)
        status.tell("writing")
        output.write(design.files)
        status.tell("comparing the heads with the float network")
        warnings = _warnings(options, model, design)
        clock = clock_sentence(output.folder, status.tell) if options.json != "-" else ""
    for warning in warnings:
        print(f"systolic: {warning}", file=sys.stderr)
    give(options, values(design, options.output), "\n".join(filter(None, [text(design, options.output), clock])))
    if not design.mapping.fits:
        print(f"systolic: the design is written, but it does not fit {board.title} as estimated", file=sys.stderr)
        return 1
    return 0


def _warnings(options: argparse.Namespace, model: Model, design: GeneratedDesign) -> list[str]:
    """Sentences: what the user may not have meant."""
    sentences = [*model.notes]
    if not options.calibrate and model.quantized is None:
        sentences.append(
            f"calibrated on the {len(sample_pictures())} embedded samples; for real use give --calibrate PICTURE..."
        )
    classes = max((node.op.classes for node in model.network.nodes if isinstance(node.op, Detection)), default=0)
    if classes > 1 and not model.network.labels:
        place = f"labels in {options.network}" if options.network.endswith(".json") else "--names FILE, one a line"
        sentences.append(f"no names for {classes} classes: boxes will say class 0, class 1 and so on; give {place}")
    if design.fidelity and design.fidelity.warning:
        sentences.append(design.fidelity.warning)
    return sentences


def check_style(options: argparse.Namespace) -> None:
    """GenerateError where an option is of another style."""
    for name, style in STYLES.items():
        foreign = flags_set(options, style.arguments)
        if name != options.style and foreign:
            reason = why_not(style.arguments, foreign)
            raise GenerateError(f"{named(foreign)} of the {name} style: add --style {name}, or leave it out{reason}")


def values(design: GeneratedDesign, folder: Path) -> dict[str, Any]:
    """What the command says of a design that was written to ``folder``."""
    fidelity = {"heads": design.fidelity.values()} if design.fidelity else {}
    return {"folder": str(folder), "digest": design.files.digest, **fidelity, **design.plan.values()}


def text(design: GeneratedDesign, folder: Path) -> str:
    """The same for a terminal."""
    fidelity = f"{design.fidelity.text()}\n" if design.fidelity else ""
    is_rtl = f"src/{TOP}.sv" in design.files.files
    engine = "DSPs are counted as of the engine in C++; " if is_rtl else ""
    nearer = (
        "systolic simulate --cycles counts its cycles"
        if is_rtl
        else "systolic simulate --cycles traces the generated code"
    )
    return f"{design.plan.text()}\n{fidelity}{engine}written to {folder}, digest {design.files.digest[:16]}; {nearer}"
