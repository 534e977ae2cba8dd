"""A small detection network as a user would have it: a cfg and its names."""

from __future__ import annotations

from pathlib import Path

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


def tiny_files(folder: Path) -> tuple[Path, Path]:
    """tiny.cfg and tiny.names in ``folder``."""
    cfg, names = folder / "tiny.cfg", folder / "tiny.names"
    cfg.write_text(TINY_CFG)
    names.write_text("".join(f"{label}\n" for label in LABELS))
    return cfg, names
