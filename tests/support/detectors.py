"""A small detection network as a user would have it, a cfg and its names, and its design."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from boards.board import load
from systolic.designs import design as design_of
from systolic.explorations import schedule
from systolic.loading import load_model
from systolic.model import Calibration, sample_pictures

SIZE = (36, 28)
LABELS = ("cat", 'a "dog"', "${bird} [x]")

TINY_CFG = """\
[net]
width=36
height=28
channels=3

[convolutional]
batch_normalize=1
filters=8
size=3
stride=1
pad=1
activation=leaky

[maxpool]
size=2
stride=2

[convolutional]
filters=16
size=1
stride=1
activation=linear

[region]
anchors=1,1, 2,3
classes=3
coords=4
num=2
softmax=1
"""


def tiny_files(folder: Path, size: tuple[int, int] = SIZE, labels: Sequence[str] = LABELS) -> tuple[Path, Path]:
    """Write tiny.cfg and tiny.names to ``folder``. ``size`` is the width and the height of the network's input."""
    cfg, names = folder / "tiny.cfg", folder / "tiny.names"
    cfg.write_text(TINY_CFG.replace("width=36", f"width={size[0]}").replace("height=28", f"height={size[1]}"))
    names.write_text("".join(f"{label}\n" for label in labels))
    return cfg, names


@cache
def tiny_schedule() -> str:
    """Return a schedule of tiny.cfg on a PYNQ-Z2 at 250 MHz as JSON.

    The array is given, because a search takes ten seconds.
    """
    with tempfile.TemporaryDirectory() as folder:
        cfg, names = tiny_files(Path(folder))
        return schedule(load_model(str(cfg), None, names, 1), "pynq-z2", 250, array="4x8x8").to_json()


CLOCKS = {"pynq-z2": 250.0, "zcu104": 300.0}
"""The clock in MHz that a search over all clocks would choose. A given clock saves this search."""


def write_tiny_design(
    folder: Path,
    board: str,
    size: tuple[int, int] = SIZE,
    labels: Sequence[str] = LABELS,
    bits: int | None = None,
    batch: int | None = None,
    array: str | None = None,
) -> None:
    """Write a design with random weights, not compiled, and the network's files next to ``folder``.

    array: the geometry, which saves the seconds of a search for it.
    """
    cfg, names = tiny_files(folder.parent, size, labels)
    model = load_model(str(cfg), None, names, 1)
    calibration = Calibration(sample_pictures()[:2], bits=bits)
    design_of(model, load(board), clock_mhz=CLOCKS[board], calibrate=calibration, batch=batch, array=array).write(
        folder
    )
