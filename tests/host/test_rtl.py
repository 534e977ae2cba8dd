"""The real pynq with the engine in SystemVerilog, executed by Verilator: registers, interrupt, bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from systolic.designs import design as design_of
from systolic.execution.build import build
from systolic.execution.run import run
from systolic.execution.verilate import is_rtl
from systolic.loading import load_model
from systolic.model import Calibration, sample_pictures
from systolic.styles.systolic.simulate import open_design
from tests.support.detectors import tiny_files
from tests.support.host.hardware import Open, described

LABELS = ("circle", "square", "star")


pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def engine(verilated: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a compiled network of two layers on an array of a few PEs. Tests must not change it."""
    work = tmp_path_factory.mktemp("rtl")
    cfg, names = tiny_files(work, (18, 14), LABELS)
    model = load_model(str(cfg), None, names, 1)
    pictures = Calibration(sample_pictures()[:2])
    made = design_of(model, "zcu104", clock_mhz=300.0, calibrate=pictures, engine="rtl", array="2x8x8")
    made.write(work / "design")
    build(work / "design")
    return described(work / "design")


@pytest.mark.parametrize("wait", ["poll", "interrupt"])
def test_pynq_drives_the_engine_to_the_golden_bits(engine: Path, accelerator: Open, wait: str) -> None:
    assert is_rtl(engine)
    picture = sample_pictures()[0]
    wanted = run(open_design(engine), picture)
    yolo = accelerator(engine, wait=wait)
    assert yolo.has_interrupt
    frame = yolo.detect(picture)
    assert np.array_equal(frame.outputs[0], wanted.simulation.outputs[-1])
    assert frame.outputs[0].any()
    assert frame.detections == wanted.detections


def test_frames_in_flight_are_those_that_were_sent(engine: Path, accelerator: Open) -> None:
    """Check two buffers in DDR. One is filled while the engine reads the other."""
    random = np.random.default_rng(8)
    frames = [random.integers(0, 256, (14, 18, 3), np.uint8) for _ in range(5)]
    yolo = accelerator(engine)
    wanted = [yolo.detect(frame).outputs[0].copy() for frame in frames]
    assert not np.array_equal(wanted[0], wanted[1])
    streamed = list(yolo.stream(frames))
    assert [np.array_equal(one.outputs[0], output) for one, output in zip(streamed, wanted, strict=True)] == [True] * 5
