"""Test networks with every kind of output, from their file to the text and the picture of ``systolic run``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from PIL import Image

from cnn import zoo
from cnn.darknet.files import read_darknet
from host import open_detector
from scheduler.systolic.array import Array
from scheduler.systolic.network.copies import with_copies
from scheduler.systolic.schedule_file import to_json
from systolic.cli.main import main
from systolic.designs import design
from systolic.loading import load_model
from systolic.model import Calibration, Model, quantise_model, sample_pictures
from tests.support.onnx.writer import Writer, written
from tests.support.onnx.yolov8 import Detector, Form
from tests.support.schedules import first_fit

pytestmark = pytest.mark.engine

ARRAY = Array(
    4,
    8,
    8,
    row_depth=1024,
    weight_depth=1024,
    kept_depth=512,
    chunk=8,
    channel_tiles=160,
    upscale=2,
    table_depth=256,
    windows=True,
)
PICTURE = sample_pictures()[0]


def written_design(model: Model, folder: Path) -> Path:
    """Write a design with ARRAY, without a search, and return its folder."""
    calibration = Calibration((PICTURE,), "max")
    schedule = to_json(first_fit(with_copies(quantise_model(model, calibration)), ARRAY))
    design(model, calibrate=calibration, schedule=schedule).write(folder)
    return folder


def told(folder: Path, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, list[dict[str, object]]]:
    """Return the JSON of ``systolic run`` on PICTURE, after a check that no integer differs."""
    capsys.readouterr()
    assert main(["run", str(folder), str(PICTURE), "--json", "-", *more]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["mismatches"] == 0
    return dict(values)


def test_run_of_segmentation_reports_and_colours_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written_design(load_model("unet-small", seed=1, size=(32, 32)), tmp_path / "design")
    values = told(folder, capsys, "-o", str(tmp_path / "drawn.png"))
    shares = [float(str(entry["share"])) for entry in values["segments"]]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1, abs=1e-3)
    drawn, picture = (np.asarray(Image.open(path).convert("RGB")) for path in (tmp_path / "drawn.png", PICTURE))
    assert drawn.shape == picture.shape
    assert (drawn != picture).any(axis=2).mean() > 0.9
    assert main(["run", str(folder), str(PICTURE)]) == 0
    assert "share of the picture" in capsys.readouterr().out


def test_run_of_network_without_head_gives_named_outputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    writer, random = Writer(), np.random.default_rng(1)
    for filters in (5, 7):
        writer.put("Conv", ["picture", writer.constant(random.normal(size=(filters, 3, 3, 3)))], kernel_shape=[3, 3])
    onnx.save(writer.model(["conv0", "conv1"], (1, 3, 12, 16)), tmp_path / "two.onnx")
    folder = written_design(load_model(tmp_path / "two.onnx"), tmp_path / "design")
    values = told(folder, capsys, "-o", str(tmp_path / "maps.npz"))
    assert [(entry["name"], entry["sides"]) for entry in values["tensors"]] == [
        ("conv0", "1×5×10×14"),
        ("conv1", "1×7×10×14"),
    ]
    with np.load(tmp_path / "maps.npz") as maps:
        assert maps["conv1"].shape == (1, 7, 10, 14)
    assert main(["run", str(folder), str(PICTURE)]) == 0
    assert "no head to decode" in capsys.readouterr().out


def test_run_of_mobilenet_v2_reports_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cfg = zoo.topology_file("mobilenet-v2").read_text().replace("=224", "=32")
    (tmp_path / "small.cfg").write_text(cfg)
    network = read_darknet(tmp_path / "small.cfg", None, weight_source=zoo.seeded(1))
    onnx.save(written(network), tmp_path / "mobilenet.onnx")
    (tmp_path / "a.names").write_text("".join(f"kind {number}\n" for number in range(1000)))
    model = load_model(tmp_path / "mobilenet.onnx", names=tmp_path / "a.names")
    folder = written_design(model, tmp_path / "design")
    assert main(["simulate", str(folder), "--picture", str(PICTURE), "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["mismatches"] == 0
    classes = told(folder, capsys)["classes"]
    probabilities = [float(str(entry["probability"])) for entry in classes]
    assert len(classes) == 5
    assert probabilities == sorted(probabilities, reverse=True)
    with open_detector(folder) as detector:
        result = detector.detect(PICTURE)
    assert [entry["label"] for entry in classes] == [f"kind {score.index}" for score in result.scores]


def test_run_of_ultralytics_export_gives_boxes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(Detector(Form(channels=8, repeats=2, side=64, classes=3)).model(), tmp_path / "yolov8.onnx")
    folder = written_design(load_model(tmp_path / "yolov8.onnx"), tmp_path / "design")
    assert main(["simulate", str(folder), "--picture", str(PICTURE), "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["mismatches"] == 0
    boxes = told(folder, capsys, "--threshold", "0.3")["detections"]
    assert boxes
    assert {box["label"] for box in boxes} <= {"class 0", "class 1", "class 2"}
