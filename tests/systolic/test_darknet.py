"""Test darknet sections from a cfg to an executed accelerator: every integer of every layer matches the golden
model."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from systolic.cli.main import main

pytestmark = pytest.mark.engine

STYLES: dict[str, list[str]] = {
    "systolic": ["--board", "pynq-z2", "--dsp-share", "0.2"],
    "streaming": ["--style", "streaming", "--folding", "greedy", "--estimated-fifos", "--fps", "200"],
}
FIFOS = {"traced": [option for option in STYLES["streaming"] if option != "--estimated-fifos"]}
NET = "[net]\nwidth=12\nheight=8\nchannels=3\n"
CONV = "[convolutional]\nfilters=8\nsize=3\npad=1\nstride=1\nactivation=leaky\n"
LAYERS = {
    "batchnorm": CONV + "[batchnorm]\n[convolutional]\nfilters=4\nsize=1\nactivation=linear\n",
    "dilation": CONV + "[convolutional]\nfilters=4\nsize=3\npad=1\ndilation=2\nactivation=relu\n",
    "xnor": CONV + "[convolutional]\nxnor=1\nfilters=4\nsize=3\npad=1\nactivation=leaky\n",
    "groups": CONV + "[convolutional]\nfilters=6\nsize=3\npad=1\ngroups=2\nactivation=leaky\n",
    "reorg3d": CONV + "[reorg3d]\nstride=2\n[convolutional]\nfilters=4\nsize=1\nactivation=linear\n",
    "reorg": CONV + "[reorg]\nstride=2\n[convolutional]\nfilters=4\nsize=1\nactivation=linear\n",
    "crop": "[crop]\ncrop_width=10\ncrop_height=8\n" + CONV,
    "extra": CONV + "[convolutional]\nfilters=1\nsize=1\nactivation=linear\n[reorg]\nextra=1\nstride=1\n[softmax]\n",
    "detection": CONV + "[connected]\noutput=56\nactivation=linear\n"
    "[detection]\nclasses=4\ncoords=4\nside=2\nnum=2\nsqrt=1\n",
    "Gaussian_yolo": CONV
    + "[convolutional]\nfilters=11\nsize=1\nactivation=linear\n[Gaussian_yolo]\nanchors=4,5\nclasses=2\n",
    "temperature": CONV + "[avgpool]\n[softmax]\ntemperature=3\n",
    **{
        name: f"[convolutional]\nfilters=4\nsize=3\npad=1\nactivation={name}\n" + CONV
        for name in ("lhtan", "loggy", "plse", "ramp", "stair")
    },
}


MULTIPLIED = {
    "sam": CONV + "[convolutional]\nfilters=8\nsize=1\nactivation=logistic\n[sam]\nfrom=-2\n" + CONV,
    "scale_channels": "[convolutional]\nfilters=8\nsize=3\npad=1\nstride=2\nactivation=swish\n[avgpool]\n"
    "[convolutional]\nfilters=8\nsize=1\nactivation=logistic\n[scale_channels]\nfrom=-3\nactivation=leaky\n" + CONV,
}


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    """Write a random picture and return its file."""
    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    return tmp_path / "a.png"


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("layers", LAYERS)
def test_darknet_section_matches_golden_model(
    layers: str, style: str, picture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    executed(NET + LAYERS[layers], style, picture, tmp_path, capsys)


@pytest.mark.parametrize("style", ["systolic", "traced"])
@pytest.mark.parametrize("layers", MULTIPLIED)
def test_darknet_product_of_maps_matches_golden_model(
    layers: str, style: str, picture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = NET.replace("width=12", "width=8") + MULTIPLIED[layers]
    # FIFOs are traced here, because their estimate does not count the pipeline stages of blocks.
    executed(text, style, picture, tmp_path, capsys)
    folder = tmp_path / "design"
    if style == "systolic":
        assert re.search(r"MAP_PRODUCTS = 1\b", (folder / "src/parameters.h").read_text())
    else:
        assert "element_wise<" in (folder / "src/top.cpp").read_text()


def executed(text: str, style: str, picture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Generate the design of a cfg text, simulate it without a mismatch, and run it on a picture."""
    (tmp_path / "net.cfg").write_text(text)
    command = ["generate", str(tmp_path / "net.cfg"), "--seed", "1", "-o", str(tmp_path / "design")]
    assert main([*command, "--calibrate", str(picture), "--method", "max", *{**STYLES, **FIFOS}[style]]) == 0
    capsys.readouterr()
    assert main(["simulate", str(tmp_path / "design"), "--picture", str(picture), "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["mismatches"] == 0
    assert len(told["layers"]) > 1
    assert min(layer["sqnr_db"] for layer in told["layers"]) > 15
    assert main(["run", str(tmp_path / "design"), str(picture), "-o", str(tmp_path / "b.png"), "--threshold", "0"]) == 0
