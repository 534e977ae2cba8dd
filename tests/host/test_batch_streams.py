"""Designs that process a batch of frames per start, with the real pynq and the simulated board."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from boards.errors import RangeError
from cnn.integer_model import run_integer
from host.vision.picture import FITS, load_picture
from systolic.execution.run import run
from systolic.styles.systolic.simulate import open_design
from tests.support.errors import raises
from tests.support.host.hardware import SELDOM, Open, faulty, through

pytestmark = pytest.mark.pynq

BATCH = 3
FRAMES = 101
STARTS = 34
"""Starts of the accelerator for all frames. The last start processes two frames."""


@pytest.fixture(scope="module")
def frames() -> list[np.ndarray]:
    """Return frames whose sizes repeat after 20 frames, so that an exchanged picture has a wrong size."""
    random = np.random.default_rng(6)
    return [random.integers(0, 256, (14 + at % 4, 18 + at % 5, 3), np.uint8) for at in range(FRAMES)]


@pytest.fixture(scope="module")
def wanted(batches: Path, frames: list[np.ndarray]) -> list[np.ndarray]:
    """Return the golden model's output for each frame."""
    return [golden(batches, frame) for frame in frames]


def golden(design: Path, frame: np.ndarray) -> np.ndarray:
    folder = open_design(design)
    node = folder.manifest.layers[-1].node
    return np.asarray(run_integer(folder.network, FITS[folder.manifest.fit](frame, 14, 18)[0])[node])


def check(results: list[Any], frames: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    assert [result.index for result in results] == list(range(len(wanted)))
    for result, frame, right in zip(results, frames, wanted, strict=True):
        assert np.array_equal(result.outputs[0], right), result.index
        assert np.array_equal(result.picture, frame), result.index


@pytest.mark.parametrize(
    ("wait", "writes"),
    [
        ("poll", {"systolic_top_0": 2 * STARTS - 1}),
        ("interrupt", {"systolic_top_0": 3 * STARTS - 1, "axi_intc_0": STARTS}),
    ],
)
def test_stream_of_batches_is_exact_with_one_start_per_batch(
    batches: Path,
    accelerator: Open,
    frames: list[np.ndarray],
    wanted: list[np.ndarray],
    wait: str,
    writes: dict[str, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("host.systolic.ip._LOOK_SECONDS", 60)  # a late interrupt does not count as lost
    yolo = accelerator(batches, wait=wait, threshold=SELDOM)
    yolo.detect(frames[0])
    yolo.device.register_writes.clear()
    buffers = yolo.device.allocations
    check(list(yolo.stream(frames)), frames, wanted)
    # Two writes arm the line once. The stream makes them if the first frame was done before anything waited for it.
    written = yolo.device.register_writes
    if writes.keys() >= {"axi_intc_0"} and written["axi_intc_0"] == writes["axi_intc_0"] + 2:
        written["axi_intc_0"] -= 2
    assert dict(written) == writes
    gc.collect()
    assert yolo.device.allocations == buffers


def test_stream_of_any_number_of_frames_is_exact(
    batches: Path, accelerator: Open, frames: list[np.ndarray], wanted: list[np.ndarray]
) -> None:
    yolo = accelerator(batches, threshold=SELDOM, sets=1)
    for count in (0, 1, 2, 3, 4, 6):
        check(list(yolo.stream(frames[:count])), frames[:count], wanted[:count])


def test_detect_of_one_picture_fills_the_batch(batches: Path, accelerator: Open, tmp_path: Path) -> None:
    picture = tmp_path / "one.png"
    Image.fromarray(np.random.default_rng(1).integers(0, 256, (40, 50, 3), np.uint8)).save(picture)
    yolo = accelerator(batches, threshold=0.2)
    found, alone = yolo.detect(picture), run(open_design(batches), picture, 0.2)
    assert found.detections == alone.detections
    assert len(found.detections) > 0
    right = golden(batches, load_picture(picture))
    assert np.array_equal(found.outputs[0], right)
    (one,) = yolo.stream([picture])
    assert one.detections == found.detections
    pixels = FITS[yolo.manifest.fit](load_picture(picture), 14, 18)[0]
    assert np.array_equal(yolo.run(pixels)[0], right)
    everywhere = yolo._backend.collect(yolo.buffers.batches[0], BATCH)
    assert [np.array_equal(maps[0], right) for maps in everywhere] == [True] * BATCH
    report = yolo.check()
    assert report.passed
    assert [one.values for one in report.layers] == [BATCH * 8 * 7 * 9, BATCH * 16 * 7 * 9]
    for count in (0, BATCH + 1):
        with raises(RangeError, what="the number of pictures of a start", got=count, low=1, high=3):
            yolo._backend.load(yolo.buffers.batches[0], [pixels] * count)


def test_stream_with_an_unreadable_picture_returns_the_frames_before_it(
    batches: Path, accelerator: Open, frames: list[np.ndarray], wanted: list[np.ndarray], tmp_path: Path
) -> None:
    """Check that the frames before the damaged one are results, also in the same batch."""
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"no picture")
    yolo = accelerator(batches, threshold=SELDOM)
    for bad in (0, 4, 5, 6):
        results, error = through(yolo, [*frames[:bad], broken, *frames[bad + 1 :]])
        check(results, frames[:bad], wanted[:bad])
        assert (error.index, error.frame, error.stage, error.count) == (bad, broken, "resize", 1)
        check(list(yolo.stream(frames[:7])), frames[:7], wanted[:7])


def test_hang_in_a_batch_fails_all_its_frames(
    batches: Path, accelerator: Open, frames: list[np.ndarray], wanted: list[np.ndarray]
) -> None:
    yolo = accelerator(batches, threshold=SELDOM, timeout_s=5.0)
    buffers = yolo.device.allocations
    yolo.device.inject(faulty("hang", at=2, in_pass=1))
    results, error = through(yolo, frames[:20])
    check(results, frames[:6], wanted[:6])
    assert (error.index, error.count, error.stage) == (6, 3, "accelerate")
    assert error.cause.reason == "the accelerator did not finish within 5 s"
    del error  # its traceback would keep the batch's set of buffers
    yolo.reset()
    check(list(yolo.stream(frames[:5])), frames[:5], wanted[:5])
    gc.collect()
    assert yolo.device.allocations == buffers


def test_verify_finds_a_missing_flush_in_a_verified_batch(
    batches: Path, accelerator: Open, frames: list[np.ndarray], wanted: list[np.ndarray]
) -> None:
    yolo = accelerator(batches, threshold=SELDOM)
    yolo.device.inject(faulty("missing flush", at=5))
    # Every seventh frame is verified: the 7th and 14th in starts 2 and 4, the 21st in start 6. Start 5 is not verified.
    results, error = through(yolo, frames[:21], verify_every=7)
    assert error is None
    assert [at for at, one in enumerate(results) if (one.outputs[0] != wanted[at]).any()] == [15, 16, 17]
    yolo.device.inject(faulty("missing flush", at=4))
    results, error = through(yolo, frames[:21], verify_every=7)
    check(results, frames[:12], wanted[:12])
    assert "the picture in DDR is not the one that was loaded" in error.cause.reason
    check(list(yolo.stream(frames[:4], verify_every=1)), frames[:4], wanted[:4])


def test_stream_closed_early_starts_no_further_batch(
    batches: Path, accelerator: Open, frames: list[np.ndarray]
) -> None:
    yolo = accelerator(batches, threshold=SELDOM)

    def endless() -> Iterator[np.ndarray]:
        while True:
            yield from frames

    flow = yolo.stream(endless())
    assert next(flow).index == 0
    flow.close()
    writes = yolo.device.register_writes["systolic_top_0"]
    assert yolo.detect(frames[0]).index == 0
    assert yolo.device.register_writes["systolic_top_0"] <= writes + 2


def test_measured_figures_of_batches_are_per_frame(batches: Path, accelerator: Open, frames: list[np.ndarray]) -> None:
    yolo = accelerator(batches, threshold=SELDOM, time_scale=1.0)
    # At 60 ms per batch, the other stages take little time in comparison.
    cycles = yolo.manifest.cycles / (yolo.manifest.clock_mhz * 1e6)
    yolo.device.pace = replace(yolo.device.pace, time_scale=0.06 / cycles)
    results = list(yolo.stream(frames[:60]))
    took = yolo.measured
    assert (took.frames, took.first) == (60, BATCH)
    assert f"the design, whose batch of 3 frames takes {1e3 * cycles:.3f} ms (modelled cycles" in took.label
    spans = [one.timing.seconds["accelerate"] for one in results]
    assert min(spans) >= 0.06
    assert took.busy["accelerate"] == pytest.approx(sum(spans[::BATCH]) / 60)
    shared = [a == b for a, b in pairwise(spans)]
    assert shared == [at % BATCH != BATCH - 1 for at in range(59)]


def test_time_limit_and_buffers_of_a_start_grow_with_the_batch(batches: Path, tiny: Path, accelerator: Open) -> None:
    batch, alone = accelerator(batches), accelerator(tiny)
    assert (batch.manifest.batch, alone.manifest.batch) == (BATCH, 1)
    assert batch._loaded.timeout_s == BATCH * alone._loaded.timeout_s
    for one, result in zip(batch.buffers.batches, alone.buffers.batches, strict=True):
        assert (one.input.nbytes, one.results[0].nbytes) == (
            BATCH * result.input.nbytes,
            BATCH * result.results[0].nbytes,
        )


def test_pace_of_a_batch_uses_its_traced_cycles(batches: Path, tmp_path: Path, accelerator: Open) -> None:
    folder = shutil.copytree(batches, tmp_path / "design")
    passes = open_design(folder).program.shape[0]
    (folder / "cycles.json").write_text(f'{{"pass_cycles": {[300_000] * passes}}}')
    yolo = accelerator(folder, time_scale=20.0)
    wanted = 20 * passes * 0.3 / yolo.manifest.clock_mhz
    assert yolo.device.pace.seconds(0, passes) == pytest.approx(wanted)
    assert yolo.detect(np.zeros((14, 18, 3), np.uint8)).timing.seconds["accelerate"] >= wanted
    assert "(traced cycles" in yolo.label
