"""The same code as on the board, over the real pynq and the simulated board."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hardware import Open

from systolic.model import sample_pictures
from systolic.run import run
from systolic.simulate import open_folder


def test_detects_what_the_golden_model_does_in_every_bit(shapes: Path, accelerator: Open) -> None:
    picture = sample_pictures()[0]
    wanted = run(open_folder(shapes), picture)
    yolo = accelerator(shapes)
    for wait in ("poll", "interrupt"):
        yolo.wait = wait
        found = yolo.detect(picture)
        assert found.detections == wanted.detections
        assert len(found.detections) >= 3
        assert np.array_equal(found.outputs[0], wanted.simulation.outputs[-1])
    assert wanted.simulation.mismatches == 0
