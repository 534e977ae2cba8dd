"""The demonstration of ``systolic demo``: all steps with a built-in trained network and one of its samples."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from boards import board as board_room
from boards.errors import FileAccessError
from host.contract.manifest import is_design
from host.vision.channels import load_frame
from host.vision.detection import Detection
from host.vision.drawing import check_picture
from host.whole_file import partials
from systolic.cli.commands import generate
from systolic.cli.commands.run import text as seen_text
from systolic.cli.output import write_result
from systolic.cli.progress import StatusLine
from systolic.designs import design as design_of
from systolic.evaluation.quality import Agreement, agreement, rounded
from systolic.execution.build import Variant
from systolic.execution.result import simulate
from systolic.execution.run import fit_picture, run
from systolic.files import output_folder
from systolic.loading import load_model
from systolic.model import sample_pictures


@dataclass(frozen=True)
class Demonstration:
    """The network, the sample picture and the options with which ``systolic demo`` shows one accelerator style.

    Attributes:
        network: A built-in, trained network.
        picture: The stem of one of its sample pictures.
        options: Options of the style that differ from the defaults.
    """

    network: str
    picture: str
    options: Mapping[str, Any] = field(default_factory=dict)


BY_STYLE = {
    "systolic": Demonstration("shapes", "hills"),
    # A lower rate and the greedy search, because the highest rate and the exact search take longest.
    "streaming": Demonstration("ultranet-small", "hillside", {"fps": 1000.0, "search": "greedy"}),
}
"""The demonstration of each style."""

VARIANT = Variant(quick=True)
"""The build without compiler optimisation: optimising takes longer than it saves when one picture is executed."""


def demonstrate(options: argparse.Namespace) -> int:
    """Generate a built-in network's accelerator, run it on a sample, print the results, return the exit status."""
    board, shown = board_room.load(options.board), BY_STYLE[options.style]
    _check_folder(options.output)
    picture = next(path for path in sample_pictures(shown.network) if path.stem == shown.picture)
    folder, annotated = _places(options.output)
    with output_folder(folder, replace=True) as output, StatusLine() as status:
        check_picture(annotated)
        status.report("reading the network")
        model = load_model(shown.network)
        design = design_of(model, board, options.style, progress=status.report, **shown.options)
        status.report("writing")
        opened = design.write_to(output).opened
        status.report("comparing the heads with the float network")
        fidelity = generate.values(design, folder)
        seen = run(opened, picture, variant=VARIANT, progress=status.report)
        pixels, _ = fit_picture(opened, load_frame(picture))
        result = simulate(opened, [pixels], VARIANT, progress=status.report)
    seen.save(annotated)
    truth = agreement(objects_of(picture), seen.detections)
    values = {
        "generate": fidelity,
        "simulate": result.values(),
        "run": {"picture": str(picture), **seen.values()},
        "truth": {**asdict(truth), "mean_iou": rounded(truth.mean_iou)},
    }
    texts = (
        generate.text(design, folder),
        result.text(),
        seen_text(seen, annotated),
        _sentence(truth),
        _next_steps(folder, picture),
    )
    write_result(options, values, "\n\n".join(texts))
    return 0 if result.right else 1


def _next_steps(folder: Path, picture: Path) -> str:
    """Return the text with the commands that the user can try after the demo."""
    design, sample = shlex.quote(str(folder)), shlex.quote(str(picture))
    steps = {
        "find objects in a picture of your own": f"systolic run {design} PICTURE -o boxes.png",
        "trace its cycles": f"systolic simulate {design} --picture {sample} --cycles",
        "see the built-in networks": "systolic networks",
        "use a network of your own": "systolic generate NET.cfg --weights NET.weights --names NET.names -o DIR",
    }
    width = max(map(len, steps)) + 2
    return "\n".join(["next:", *(f"  {step:{width}}{command}" for step, command in steps.items())])


def objects_of(sample: Path) -> list[Detection]:
    """Return the labelled boxes of a sample picture, read from truth.json in its folder."""
    entries = json.loads((sample.parent / "truth.json").read_text())
    objects = next(entry["objects"] for entry in entries if entry["file"] == sample.name)
    return [Detection(each["label"], 1.0, tuple(each["box"])) for each in objects]


def _sentence(truth: Agreement) -> str:
    mean_iou = f" with a mean IoU of {truth.mean_iou:.2f}" if truth.matched else ""
    return (
        f"{truth.matched} of {truth.matched + truth.missed} objects in the picture are found{mean_iou}; "
        f"false detections: {truth.added}"
    )


def _check_folder(folder: Path) -> None:
    """Raise FileAccessError if the folder has files that the demo did not write.

    The demo can be repeated, also after it was killed: it replaces its own folder and no other one.
    """
    if folder.exists() and not folder.is_dir():
        raise FileAccessError(str(folder), "is a file", "folder of the demo", remedy="choose another one with -o DIR")
    accelerator, annotated = _places(folder)
    ours = {*partials(accelerator), *partials(annotated)}
    if folder.exists() and not is_design(accelerator) and not ours.issuperset(folder.iterdir()):
        raise FileAccessError(
            str(folder),
            "has other files and is not replaced",
            "folder of the demo",
            remedy="choose another one with -o DIR",
        )


def _places(folder: Path) -> tuple[Path, Path]:
    """Return the paths that the demo writes: the folder of the accelerator, and the picture with the boxes."""
    return folder / "accelerator", folder / "boxes.png"
