"""Every command that writes, with the files that its folder contains before it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from systolic import explorations
from systolic.designs import design as design_of
from systolic.files import write
from systolic.loading import load_model
from systolic.model import Calibration, sample_pictures
from tests.fuzz.kills.tree import Tree, tree_of
from tests.support.detectors import TINY_CFG
from tests.support.small_network import write_small

TARGET = ("--board", "pynq-z2", "--clock", "250")
ARRAY = ("--array", "4x4x4")
PRICED = (*TARGET, "--schedule", "schedule.json")
"""Options with a saved schedule.

Commands that search take seconds. These options write the same files without a search.
"""
SMALL = ("--board", "ultra96-v2", "--clock", "250", "--style", "streaming", "--folding", "greedy", "--estimated-fifos")
GENERATE = ("generate", "tiny.cfg", "--seed", "1", *PRICED, "--calibrate", "a.png")


@dataclass(frozen=True)
class Scenario:
    """A command and the files before it.

    Attributes:
        arguments: The command's arguments.
        before: The files of its folder before it.
        whole: Folders that are replaced as a whole, apart from the files that are compiled in them.
        quick: Whether the test suite runs the command.
    """

    arguments: tuple[str, ...]
    before: Tree
    whole: tuple[str, ...] = ()
    quick: bool = True


def scenarios(folder: Path) -> dict[str, Scenario]:
    """Return the scenarios by name.

    Args:
        folder: The folder in which the inputs are made.
    """
    folder.mkdir()
    (folder / "tiny.names").write_text("cat\ndog\nbird\n")
    (folder / "tiny.cfg").write_text(TINY_CFG.replace("width=36", "width=16").replace("height=28", "height=12"))
    with Image.open(sample_pictures()[0]) as picture:
        picture.resize((32, 24)).save(folder / "a.png")
    write_small(folder)
    calibration = Calibration((folder / "a.png",))
    schedule = explorations.schedule(load_model(folder / "tiny.cfg", seed=1), "pynq-z2", 250.0, array="4x4x4")
    (folder / "schedule.json").write_text(schedule.to_json())
    inputs, designs = tree_of(folder), {}
    for seed in (1, 2):
        model = load_model(folder / "tiny.cfg", None, folder / "tiny.names", seed)
        made = design_of(model, "pynq-z2", None, 250.0, calibration, schedule=folder / "schedule.json")
        write(made.files, folder / str(seed))
        designs[seed] = {f"out/{name}": data for name, data in tree_of(folder / str(seed)).items()}
    return _without(inputs) | _with(inputs | designs[1], inputs | designs[2])


def _without(inputs: Tree) -> dict[str, Scenario]:
    """Return the commands that need no design."""
    old = dict.fromkeys(("s.json", "r.html", "j.json"), b"old")
    files = ("--save", "s.json", "--report", "r.html", "--json", "j.json")
    return {
        "boards": Scenario(("boards", "--json", "j.json"), inputs | old),
        "generate": Scenario((*GENERATE, "-o", "deep/out", "--json", "j.json"), inputs, ("deep/out",)),
        "generate, streaming": Scenario(
            ("generate", "small.json", "--seed", "1", *SMALL, "-o", "out"), inputs, ("out",)
        ),
        "schedule": Scenario(("schedule", "tiny.cfg", *PRICED, *files), inputs | old, quick=False),
        "schedule, new files": Scenario(("schedule", "tiny.cfg", *PRICED, *files), inputs, quick=False),
        "compare": Scenario(("compare", "tiny.cfg", *TARGET, *ARRAY, *files[2:]), inputs | old, quick=False),
        "fold": Scenario(("fold", "small.json", "--folding", "greedy", *files), inputs | old),
        "demo": Scenario(("demo", "-o", "demo", "--json", "j.json"), inputs, ("demo/accelerator",), quick=False),
    }


def _with(design: Tree, other: Tree) -> dict[str, Scenario]:
    """Return the commands that read a design or replace one."""
    pictures = {"pictures/b.png": design["a.png"], "pictures/c.png": design["a.png"]}
    simulate = ("simulate", "out", "--picture", "a.png", "--json", "j.json")
    traced = (*simulate, "--cycles", "--timeline", "t.png")
    old = {"b.png": b"old", "t.png": b"old", "j.json": b"old"}
    return {
        "generate --force": Scenario((*GENERATE, "--force", "-o", "out"), other, ("out",)),
        "package": Scenario(("package", "out", "--without-bitstream", "-o", "dist"), design),
        "simulate": Scenario(simulate, design | old),
        "simulate --golden": Scenario((*simulate, "--golden"), design, quick=False),
        "simulate --cycles": Scenario(traced, design | old, quick=False),
        "run": Scenario(("run", "out", "a.png", "-o", "b.png", "--json", "j.json"), design | old),
        "run, a folder": Scenario(("run", "out", "pictures", "-o", "boxes"), design | pictures, quick=False),
    }
