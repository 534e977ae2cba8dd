"""Test classifiers in both styles, from the network's file to the predicted label."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from PIL import Image

import systolic
from cnn import zoo
from cnn.darknet.files import read_darknet
from cnn.float_model import run_float
from cnn.integer_model import run_integer
from cnn.stored.quantized_file import from_npz
from host import open_detector
from host.vision.frame import Result
from systolic.cli.main import main
from systolic.model import sample_pictures
from tests.support.onnx.writer import written

pytestmark = pytest.mark.engine

STYLES: dict[str, list[str]] = {
    "systolic": [],
    "streaming": ["--style", "streaming", "--folding", "greedy", "--estimated-fifos", "--fps", "200"],
}
PICTURE = str(sample_pictures()[0])


def generated(network: str, folder: Path, *more: str) -> Path:
    """Generate a design in a folder, calibrated on one picture, and return the folder."""
    command = ["generate", network, "-o", str(folder), "--calibrate", PICTURE, "--method", "max"]
    assert main([*command, *more]) == 0
    return folder


def simulated(folder: Path, capsys: pytest.CaptureFixture[str]) -> int:
    """Return the number of mismatches that ``systolic simulate`` reports."""
    capsys.readouterr()
    assert main(["simulate", str(folder), "--picture", PICTURE, "--json", "-"]) == 0
    return int(json.loads(capsys.readouterr().out)["mismatches"])


@pytest.fixture(scope="module")
def resnet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an ONNX file of ResNet-8, as an exporter writes it."""
    folder = tmp_path_factory.mktemp("resnet")
    onnx.save(written(zoo.load("resnet8", 1)), folder / "resnet8.onnx")
    return folder / "resnet8.onnx"


@pytest.mark.parametrize(("form", "style"), [("built in", "systolic"), ("onnx", "systolic"), ("onnx", "streaming")])
def test_resnet8_predicts_the_golden_classes(
    form: str, style: str, resnet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = str(zoo.labels_file("resnet8"))
    network = ["resnet8", "--seed", "1"] if form == "built in" else [str(resnet), "--names", names]
    folder = generated(network[0], tmp_path / "design", "--board", "pynq-z2", *network[1:], *STYLES[style])
    assert simulated(folder, capsys) == 0
    assert main(["run", str(folder), PICTURE, "-o", str(tmp_path / "answer.png"), "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    labels = Path(names).read_text().split()
    design = systolic.open(folder)
    pixels = design.pixels(Path(PICTURE))
    integers = run_integer(from_npz((folder / "network.npz").read_bytes(), "network.npz"), pixels)[-2]
    assert integers is not None
    order = np.argsort(-integers.ravel(), kind="stable")
    assert [answer["label"] for answer in told["classes"]] == [labels[index] for index in order[:5]]
    exact = run_float(zoo.load("resnet8", 1), pixels.astype(np.float32) / np.float32(255))[-1].ravel()
    assert [answer["probability"] for answer in told["classes"]] == pytest.approx(list(exact[order[:5]]), abs=0.05)
    with open_detector(folder) as detector:
        result: Result = detector.detect(PICTURE)
    assert [score.label for score in result.scores] == [answer["label"] for answer in told["classes"]]
    drawn = np.asarray(Image.open(tmp_path / "answer.png"))
    np.testing.assert_array_equal(np.asarray(result.draw()), drawn)
    assert (drawn != result.picture).any()


def test_mobilenet_v2_pipeline_predicts_the_golden_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Use all layers of MobileNet v2 with a quarter of the channels, from an ONNX file."""
    cfg = zoo.topology_file("mobilenet-v2").read_text().replace("=224", "=32").replace("output=1000", "output=10")
    cfg = re.sub(r"(filters|groups)=(\d+)", lambda match: f"{match[1]}={int(match[2]) // 4}", cfg)
    (tmp_path / "small.cfg").write_text(cfg)
    network = read_darknet(tmp_path / "small.cfg", None, weight_source=zoo.seeded(1))
    onnx.save(written(network), tmp_path / "small.onnx")
    labels = zoo.labels_file("resnet8")
    assert labels is not None
    folder = generated(str(tmp_path / "small.onnx"), tmp_path / "design", "--names", str(labels), *STYLES["streaming"])
    assert simulated(folder, capsys) == 0
    assert main(["run", str(folder), PICTURE, "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    pixels = systolic.open(folder).pixels(Path(PICTURE))
    integers = run_integer(from_npz((folder / "network.npz").read_bytes(), "network.npz"), pixels)[-2]
    assert integers is not None
    order = np.argsort(-integers.ravel(), kind="stable")[:5]
    assert [answer["label"] for answer in told["classes"]] == [labels.read_text().split()[index] for index in order]


def test_skynet_pipeline_simulates_without_mismatches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = generated("skynet", tmp_path / "design", "--seed", "1", "--size", "64x32", *STYLES["streaming"])
    assert simulated(folder, capsys) == 0
