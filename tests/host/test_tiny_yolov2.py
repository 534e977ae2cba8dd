"""The host with tiny-YOLOv2 at its full size, 416×416."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from boards.board import load
from cnn.integer_model import run_integer
from host.vision.picture import load_picture, resize
from systolic.designs import design as design_of
from systolic.execution.build import build
from systolic.loading import load_model
from systolic.model import Calibration, sample_pictures
from systolic.styles.systolic.simulate import open_design
from tests.support.host.hardware import Open, described

pytestmark = [pytest.mark.pynq, pytest.mark.engine]


def test_detect_and_layers_of_tiny_yolov2_equal_the_golden_model(tmp_path: Path, accelerator: Open) -> None:
    picture = sample_pictures()[0]
    model = load_model("tiny-yolov2-voc", seed=1)
    made = design_of(model, load("zcu104"), calibrate=Calibration((picture,)))
    made.write(tmp_path / "design")
    build(tmp_path / "design")
    folder = open_design(tmp_path / "design")
    pixels, _ = resize(load_picture(picture), 416, 416)
    golden = run_integer(folder.network, pixels)
    yolo = accelerator(described(tmp_path / "design"))
    found = yolo.detect(picture)
    head = yolo.manifest.layers[-1]
    assert found.outputs[0].shape == (125, 13, 13)
    assert np.array_equal(found.outputs[0], golden[head.node])
    assert len(np.unique(found.outputs[0])) > 100, "a head that is nearly constant proves little"
    assert len(found.labels) == 20
    layers = 0
    for layer, integers in yolo.layers(pixels):
        assert np.array_equal(integers, golden[layer.node]), layer.name
        layers += 1
    assert layers == 9
