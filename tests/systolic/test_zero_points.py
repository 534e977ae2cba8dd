"""Test zero points in commands: executed designs of both styles, and cases that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from boards.errors import ConflictError, RangeError
from host.contract.manifest import read_manifest
from systolic.designs import design
from systolic.loading import load_model
from systolic.model import Calibration, sample_pictures
from systolic.styles.systolic.mapping import SystolicMapping
from tests.support.command_line import call, refused

CFG = """[net]
width=24
height=16
channels=3
[convolutional]\nfilters=8\nsize=3\nstride=1\npad=1\nactivation=leaky
[maxpool]\nsize=2\nstride=2
[convolutional]\nfilters=12\nsize=3\nstride=1\npad=1\nactivation=relu
[convolutional]\nfilters=12\nsize=3\nstride=1\npad=1\nactivation=leaky
[shortcut]\nfrom=-2\nactivation=linear
[convolutional]\nfilters=6\nsize=1\nstride=1\npad=1\nactivation=linear
"""


@pytest.fixture(scope="module")
def cfg(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a small network with a residual add and return its file."""
    path = tmp_path_factory.mktemp("zeros") / "small.cfg"
    path.write_text(CFG)
    return path


@pytest.mark.engine
@pytest.mark.parametrize("style", ["systolic", "streaming"])
def test_design_with_zero_points_matches_golden_model(cfg: Path, tmp_path: Path, style: str) -> None:
    picture, heads = sample_pictures()[0], []
    quick = ("--folding", "greedy") if style == "streaming" else ("--dsp-share", 0.05)  # few arrays, for a short search
    for flags in ((), ("--zero-points",)):
        folder = tmp_path / f"out{len(flags)}"
        options = ("--bits", 4, "--style", style, *quick, *flags, "-o", folder, "--json", "-")
        generated = call("generate", cfg, "--seed", 1, *options).json
        heads.append(min(generated["heads"]["sqnr_db"].values()))
        simulated = call("simulate", folder, "--picture", picture, "--json", "-").json
        assert simulated["mismatches"] == 0
        # The array looks up the table in the layer's own pass.
        names = {layer["name"] for layer in simulated["layers"]}
        assert ("conv1_finer" in names) == (style == "streaming" and bool(flags))
    assert heads[1] > heads[0] + 1
    done = call("evaluate", folder, "--data", picture.parent, "--zero-points")
    refused(done, ConflictError, remedy="leave out --zero-points")


def test_manifest_holds_the_zero_points_of_the_network(cfg: Path, tmp_path: Path) -> None:
    """Expect the network's zero points, which the host needs to dequantise."""
    calibration = Calibration(sample_pictures()[:1], zero_points=True)
    made = design(load_model(str(cfg), seed=1), "pynq-z2", clock_mhz=250, calibrate=calibration, array="4x8x8")
    made.write(tmp_path / "out")
    written = {layer.node: layer.output.zero_point for layer in read_manifest(tmp_path / "out").layers}
    assert isinstance(made.mapping, SystolicMapping)
    types = [node.type for node in made.mapping.network.nodes]
    assert written == {node: types[node].zero_point for node in written}
    assert any(written.values()), "a map after ReLU must use its lowest integer for zero"


def test_zero_points_without_meaning_are_refused(cfg: Path, tmp_path: Path) -> None:
    data = ("--data", sample_pictures()[0].parent, "--pictures", 1, "--workers", 1)
    mixed = call("evaluate", cfg, "--seed", 1, *data, "--mixed", 0.8, "--zero-points")
    refused(mixed, ConflictError, subjects=("--mixed", "--zero-points"))
    wide = call("generate", cfg, "--seed", 1, "--bits", 16, "--zero-points", "-o", tmp_path / "wide")
    refused(wide, RangeError, got=16, high=8)
    for flag in ("--zero-points", "--reconstruct"):
        own = call("evaluate", "shapes-w4a4", *data, flag)
        refused(own, ConflictError, subjects=("the network shapes_w4a4", flag), remedy=f"leave out {flag}")
