"""Networks whose weights do not fit the chip: the command's error, its remedy, and a design that uses the remedy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from systolic.cli.main import main
from tests.support.host.manifests import manifest_fields

pytest.importorskip("ortools", reason="exact folding needs OR-tools: pip install -e '.[solver]'")

pytestmark = pytest.mark.engine

FOREST = Path(__file__).parents[3] / "cnn/models/shapes/samples/forest.jpg"


@pytest.mark.parametrize(
    ("bits", "weights", "external"),
    [(8, "15.86 MB", ("conv8", "conv7", "conv6")), (4, "7.93 MB", ("conv8", "conv7"))],
)
def test_tiny_yolov2_that_does_not_fit_names_external_layers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], bits: int, weights: str, external: tuple[str, ...]
) -> None:
    folder = tmp_path / "design"
    options = ["--seed", "1", "--bits", str(bits), "--style", "streaming", "--board", "zcu104", "-o", str(folder)]
    assert main(["generate", "tiny-yolov2-voc", *options]) == 2
    said = capsys.readouterr().err
    assert f"it needs {weights} for 15.86 M weights of INT{bits} in 312 BRAM36 and 96 URAM (URAM, 3.54 MB, " in said
    assert "and there are 4.98;" in said
    assert f"--external {' '.join(external)})\n" in said
    assert not folder.exists()


def test_generate_with_external_weights_gives_a_right_design(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "design"
    options = ["--style", "streaming", "--board", "ultra96-v2", "--fps", "100", "--estimated-fifos", "-o", str(folder)]
    assert main(["generate", "shapes", "--external", "conv6", "conv7", *options]) == 0
    said = capsys.readouterr().out
    assert said.count("memory external") == 2
    assert main(["simulate", str(folder), "--picture", str(FOREST), "--json", "-"]) == 0
    layers = json.loads(capsys.readouterr().out)["layers"]
    assert {"conv6", "conv7"} <= {one["name"] for one in layers}
    assert all(one["mismatches"] == 0 for one in layers)
    images = manifest_fields(folder)["images"]
    assert [one["path"] for one in images] == ["data/weights_conv6.bin", "data/weights_conv7.bin"]
