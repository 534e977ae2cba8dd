"""The check of a board layer by layer, and the sentence that names the first wrong layer."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cnn.integer_model import run_integer
from contract.program import PASS_FIELDS
from host.check import check_picture
from systolic.execution.build import build
from systolic.styles.systolic.simulate import open_design
from tests.support.detectors import write_tiny_design
from tests.support.host.hardware import Open, described

pytestmark = pytest.mark.pynq


def test_layers_started_one_by_one_equal_the_golden_model(shapes: Path, accelerator: Open) -> None:
    yolo = accelerator(shapes)
    folder = open_design(shapes)
    pixels = check_picture(yolo.manifest, shapes)
    golden = run_integer(folder.network, pixels)
    seen = 0
    for layer, integers in yolo.layers(pixels):
        assert np.array_equal(integers, golden[layer.node]), layer.name
        seen += 1
    assert seen == len(yolo.manifest.layers) >= 6


def test_check_of_a_right_design_passes_and_prints_it(
    shapes: Path, accelerator: Open, capsys: pytest.CaptureFixture[str]
) -> None:
    report = accelerator(shapes).check()
    assert report.passed
    assert "every bit equal to the golden model's" in capsys.readouterr().out


@pytest.mark.parametrize("bits", [4, pytest.param(16, marks=pytest.mark.engine)])
def test_designs_of_other_formats_are_right_in_every_bit(bits: int, tmp_path: Path, accelerator: Open) -> None:
    """Check values of 4 and 16 bits, whose words and maps have other numbers of bytes on the host."""
    write_tiny_design(tmp_path / "design", "zcu104", (18, 14), ("circle", "square", "star"), bits)
    build(tmp_path / "design")
    opened = accelerator(described(tmp_path / "design"))
    assert opened.manifest.word_bytes == opened.manifest.lanes * bits // 8
    assert opened.manifest.layers[0].output.value_bits == bits
    pixels = np.random.default_rng(bits).integers(0, 256, (3, 14, 18), np.uint8)
    golden = run_integer(open_design(tmp_path / "design").network, pixels)
    seen = [np.array_equal(integers, golden[layer.node]) for layer, integers in opened.layers(pixels)]
    assert seen == [True] * len(opened.manifest.layers)
    assert opened.check().passed


def test_check_names_the_layer_that_differs(
    shapes: Path, accelerator: Open, capsys: pytest.CaptureFixture[str]
) -> None:
    from host.simulated.faults import InjectedFault

    yolo = accelerator(shapes)
    # Start 2 runs the third layer; its requantisers are corrupted just before.
    third = yolo.manifest.layers[2]
    at = PASS_FIELDS.index("requantiser_base")
    base = int(np.asarray(yolo.buffers.program).view("<u4").reshape(-1, yolo.manifest.pass_words)[third.first_pass, at])
    spoiled = [4 * (base + channel) + 1 for channel in range(5)]
    yolo.device.inject(*(InjectedFault("corrupt word", at=2, buffer="requantisers", word=word) for word in spoiled))
    report = yolo.check()
    said = capsys.readouterr().out
    assert report.first_wrong.layer == third
    assert f"the first layer that differs from the golden model is {third.name} ({third.source})" in said
    assert "2 layers before it are right in every bit" in said
    assert report.first_wrong.first[0] < 5  # the channels whose multipliers were corrupted


def test_check_of_a_hanging_layer_names_the_layer(shapes: Path, accelerator: Open) -> None:
    from host.simulated.faults import InjectedFault

    yolo = accelerator(shapes, timeout_s=5.0)
    yolo.device.inject(InjectedFault("hang", at=1))
    report = yolo.check()
    assert not report.passed
    assert len(report.layers) == 1
    assert f"layer {yolo.manifest.layers[1].name} (" in report.error
    yolo.reset()
    assert yolo.check().passed


def recorded(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a list that receives the seconds of every later sleep of this thread."""
    naps, nap, here = [], time.sleep, threading.get_ident()

    def sleep(seconds: float) -> None:
        if threading.get_ident() == here:
            naps.append(seconds)
        nap(seconds)

    monkeypatch.setattr(time, "sleep", sleep)
    return naps


class Clock:
    """A clock that advances only while the driver sleeps."""

    def __init__(self) -> None:
        self.now = self.end = 0.0
        self.naps: list[float] = []

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.now += seconds


def test_poll_halves_its_sleep_after_each_missed_end(
    tiny: Path, accelerator: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    ip, clock = accelerator(tiny).ip, Clock()
    monkeypatch.setattr("host.systolic.ip.time", clock)
    monkeypatch.setattr(type(ip), "idle", property(lambda ip: clock.now >= clock.end))
    slept = []
    for takes in (0.4, 0.001, 0.001, 0.001, 0.4, 0.4):
        clock.end = clock.now + takes
        clock.naps.clear()
        assert ip.poll(timeout_s=10)
        slept.append(clock.naps[0])
    # The driver sleeps nine tenths of the last frame's time, and half as long after a sleep that missed the end.
    assert slept == pytest.approx([0, 0.36, 0.18, 0.09, 0.045, 0.36], abs=1e-4)


def test_poll_and_interrupted_accept_an_end_found_after_the_time_limit(
    tiny: Path, accelerator: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Suspend the process between its looks at the accelerator and at the clock. The accelerator ends meanwhile."""
    yolo, clock = accelerator(tiny, wait="interrupt"), Clock()
    monkeypatch.setattr("host.systolic.ip.time", clock)
    looks: list[bool] = []

    def idle(_: object) -> bool:
        clock.now += 11 * (not looks)
        looks.append(bool(looks))
        return looks[-1]

    monkeypatch.setattr(type(yolo.ip), "idle", property(idle))
    assert yolo.ip.poll(timeout_s=10)
    looks.clear()
    assert asyncio.run_coroutine_threadsafe(yolo.ip.interrupted(timeout_s=10), yolo._loaded._loop).result()


def test_layers_sleep_less_than_the_time_of_a_frame(
    tiny: Path, accelerator: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    yolo = accelerator(tiny, time_scale=1.0)
    own = yolo.device.pace.seconds(0, yolo.manifest.passes)
    yolo.device.pace = replace(yolo.device.pace, time_scale=0.3 / own)
    pixels = check_picture(yolo.manifest, tiny)
    yolo.run(pixels)
    naps = recorded(monkeypatch)
    assert len(list(yolo.layers(pixels))) == 2
    assert max(naps) < 0.1  # nine tenths of a frame are 0.27 s
