"""The designs whose generated text is compared with tests/golden: one small network per style."""

from __future__ import annotations

from pathlib import Path

from tests.support.small_network import write_small

CFG = """[net]
width=16
height=16
channels=3

[convolutional]
batch_normalize=1
filters=16
size=3
stride=1
pad=1
activation=leaky

[maxpool]
size=2
stride=2

[convolutional]
filters=14
size=1
stride=1
pad=0
activation=linear

[region]
anchors=1,1, 2,2
classes=2
coords=4
num=2
"""


def systolic_design(folder: Path) -> list[object]:
    (folder / "tiny.cfg").write_text(CFG)
    (folder / "tiny.names").write_text("cat\ndog\n")
    names = ("--names", folder / "tiny.names")
    return [folder / "tiny.cfg", *names, "--seed", 1, "--board", "pynq-z2", "--clock", 100]


def streaming_design(folder: Path) -> list[object]:
    asked = ("--style", "streaming", "--folding", "greedy", "--fps", 20000, "--estimated-fifos")
    return [write_small(folder), "--seed", 1, "--board", "ultra96-v2", "--clock", 300, *asked]


DESIGNS = {"systolic": systolic_design, "streaming": streaming_design}
