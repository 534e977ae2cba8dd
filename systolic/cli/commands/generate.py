"""``systolic generate``: an accelerator for a trained network, in either style."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boards import board as board_room
from boards.errors import ConflictError, MissingValueError, listed
from cnn.ops import Detection
from systolic.cli.inputs import calibration_from, check_network, check_saved, model_of
from systolic.cli.messages import log
from systolic.cli.output import write_result
from systolic.cli.progress import StatusLine
from systolic.designs import GeneratedDesign, Target, make
from systolic.files import output_folder
from systolic.front_ends.registry import front_end_named
from systolic.model import Model, networks, sample_pictures
from systolic.option import elsewhere_reasons, flags_set
from systolic.report.clock import RateClock
from systolic.styles.registry import STYLES

if TYPE_CHECKING:
    from systolic.checking.design import DesignCheck


def run(options: argparse.Namespace) -> int:
    """Generate a design in the chosen style, write it to a new folder, and print its mapping and rate.

    JSON: {folder, digest, heads: {sqnr_db: {head: value}, pictures}, check: {holds, highest_clock_mhz, rate}} and the
    values of the style's plan.

    Returns:
        1 if the design does not fit the board, or if its sources do not reach its clock, else 0.
    """
    if options.network == "list":
        print("\n".join(networks()))
        return 0
    if options.output is None:
        raise MissingValueError("-o DIR", "the design is written to a new folder")
    check_network(options.network)
    check_style(options)
    check_saved(options.schedule, options.folding)
    board = board_room.load(options.board)
    calibration = calibration_from(options)
    from systolic.checking.design import generated_clock  # not above: the demo imports this module and does not need it

    with output_folder(options.output, options.force) as output, StatusLine() as status:
        status.report("reading the network")
        model = model_of(options, options.seed, options.names, STYLES[options.style].check_layers)
        style_options = STYLES[options.style].options_from(options)
        design = make(model, Target(board, options.clock, options.style), calibration, style_options, status.report)
        status.report("writing")
        output.write(design.files)
        status.report("comparing the heads with the float network")
        warnings = _warnings(options, model, design)
        clock = generated_clock(output.folder, status.report)
    for warning in warnings:
        log.warning("%s", warning)
    told = [text(design, options.output, clock.rate_clock), clock.sentence]
    write_result(options, values(design, options.output, clock.check), "\n".join(filter(None, told)))
    if not design.mapping.fits:
        log.error("the design is written, but its estimated resources do not fit %s", board.title)
        return 1
    if clock.rate_clock is not None and not clock.rate_clock.holds:
        log.error(
            "the design is written, but its sources do not reach its clock: see systolic check %s", options.output
        )
        return 1
    return 0


def _warnings(options: argparse.Namespace, model: Model, design: GeneratedDesign) -> list[str]:
    """Return a warning for each doubtful setting: sample pictures as calibration, no class labels, a low SQNR."""
    sentences = []
    if not options.calibrate and model.quantized is None:
        sentences.append(
            f"calibrated on the {len(sample_pictures())} built-in sample pictures; for real use, pass pictures of "
            "your own with --calibrate PICTURE..."
        )
    classes = max((node.op.classes for node in model.network.nodes if isinstance(node.op, Detection)), default=0)
    if classes > 1 and not model.network.labels:
        takes_names = "names" in front_end_named(options.network).takes
        place = "--names FILE, one per line" if takes_names else f"labels in {options.network}"
        sentences.append(f"no names for {classes} classes: boxes will say class 0, class 1 and so on; give {place}")
    if design.fidelity and design.fidelity.warning:
        sentences.append(design.fidelity.warning)
    return sentences


def check_style(options: argparse.Namespace) -> None:
    """Raise ConflictError if an option was given that only the style not chosen has."""
    for name, style in STYLES.items():
        foreign = flags_set(options, style.arguments)
        if name != options.style and foreign:
            reason = f"only the {name} style has {listed(foreign)}{elsewhere_reasons(style.arguments, foreign)}"
            raise ConflictError(
                (f"--style {options.style}", *foreign), reason, remedy=f"add --style {name}, or leave out {foreign[0]}"
            )


def values(design: GeneratedDesign, folder: Path, check: DesignCheck | None = None) -> dict[str, Any]:
    """Return the JSON object of a generated design: folder, digest, SQNR of the heads, mapping and check.

    Args:
        check: The figures derived from its sources; None if it was not checked.
    """
    heads = design.fidelity.values() if design.fidelity else None
    found = check and check.values()
    checked = {"check": {key: found[key] for key in ("holds", "highest_clock_mhz", "rate")}} if found else {}
    written = {"folder": str(folder), "digest": design.files.digest, "heads": heads}
    return {**written, **design.plan.values(), **checked}


def text(design: GeneratedDesign, folder: Path, clock: RateClock | None = None) -> str:
    """Return the text that ``systolic generate`` prints: the mapping, the SQNR of the heads, the folder and the digest.

    Args:
        clock: The clock of the reported frame rate; None if the sources were not checked.
    """
    fidelity = f"{design.fidelity.text()}\n" if design.fidelity else ""
    traced = design.plan.is_traced
    engine = "" if traced else "the DSP count is an estimate for the C++ engine; "
    nearer = (
        "systolic simulate --cycles traces the generated code"
        if traced
        else "systolic simulate --cycles counts its cycles"
    )
    return (
        f"{design.plan.text(clock)}\n{fidelity}{engine}written to {folder}, digest {design.files.digest[:16]}; {nearer}"
    )
