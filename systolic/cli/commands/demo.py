"""``systolic demo``: the whole path with the embedded trained network and picture."""

from __future__ import annotations

import argparse
from pathlib import Path

from boards import board as board_room
from boards.errors import GenerateError
from host.contract.manifest import is_design
from host.vision.drawing import check_picture
from host.whole_file import partials
from systolic.cli.arguments import Parsers, add_board, add_json, command
from systolic.cli.commands import generate
from systolic.cli.commands.run import text as seen_text
from systolic.cli.output import give
from systolic.cli.progress import StatusLine
from systolic.designs import design as design_of
from systolic.files import output_folder
from systolic.model import load_model, sample_pictures

NETWORK, PICTURE = "shapes", "hills"


def add(parsers: Parsers) -> None:
    """The command's arguments."""
    parser = command(
        parsers,
        "demo",
        run,
        "walk the whole path with the embedded trained network and picture",
        "systolic demo -o my-demo",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("systolic-demo"),
        metavar="DIR",
        help="where the accelerator and the annotated picture go (default: %(default)s)",
    )
    add_board(parser, "zcu104")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """JSON: {generate, simulate, run}: the objects of the three commands."""
    board = board_room.load(options.board)
    _check_folder(options.output)
    picture = next(path for path in sample_pictures() if path.stem == PICTURE)
    folder, annotated = _places(options.output)
    with output_folder(folder, replace=True) as output, StatusLine() as status:
        check_picture(annotated)
        design = design_of(load_model(NETWORK), board, progress=status.tell)
        written = design.write_to(output)
        status.tell("comparing the heads with the float network")
        _ = design.fidelity
        seen = written.run(picture, progress=status.tell)
        result = written.simulate(picture, progress=status.tell)
    seen.save(annotated)
    values = {
        "generate": generate.values(design, folder),
        "simulate": result.values(),
        "run": {"picture": str(picture), **seen.values()},
    }
    give(options, values, "\n\n".join((generate.text(design, folder), result.text(), seen_text(seen, annotated))))
    return 0 if result.right else 1


def _check_folder(folder: Path) -> None:
    """The demo may be repeated, also after it was killed: it replaces its own folder and no other."""
    if folder.exists() and not folder.is_dir():
        raise GenerateError(f"{folder} is a file, and the demo writes a folder; choose another with -o DIR")
    accelerator, annotated = _places(folder)
    ours = {*partials(accelerator), *partials(annotated)}
    if folder.exists() and not is_design(accelerator) and not ours.issuperset(folder.iterdir()):
        raise GenerateError(f"{folder} exists and is not the demo's, so it is left alone; choose another with -o DIR")


def _places(folder: Path) -> tuple[Path, Path]:
    """What the demo writes: the accelerator's folder, and the annotated picture."""
    return folder / "accelerator", folder / "boxes.png"
