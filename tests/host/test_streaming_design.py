"""Streaming designs in ``Accelerator``, with pynq's own DMA driver and the simulated board."""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import re
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boards.errors import (
    AcceleratorError,
    MismatchError,
    MissingValueError,
    ShapeError,
    StateError,
    SystolicError,
    UnsupportedError,
)
from cnn.integer_model import run_integer
from host.contract.tensors import to_floats
from host.pipeline import FrameError
from host.vision.detection import detect
from host.vision.heads.head import Head
from host.vision.placement import Placement
from systolic.designs import design as design_of
from systolic.execution.build import build
from systolic.loading import load_model
from systolic.model import sample_pictures
from tests.support.errors import raises
from tests.support.host.hardware import Open, check_cause
from tests.support.host.manifests import manifest_fields
from tests.support.host.pipelines import HEIGHT, WIDTH, golden, make_by_hand

pynq = pytest.importorskip("pynq", reason="these tests run the real pynq: pip install -e .[board], see .ci/host")
pytestmark = pytest.mark.pynq

FRAMES = 300
AT = 150


@pytest.fixture(scope="module")
def design(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a compiled streaming design. Tests must not change it."""
    return make_by_hand(tmp_path_factory.mktemp("streaming") / "design")


@pytest.fixture(scope="module")
def frames() -> list[np.ndarray]:
    random = np.random.default_rng(5)
    return [random.integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8) for _ in range(FRAMES)]


@pytest.fixture(scope="module")
def wanted(frames: list[np.ndarray]) -> list[np.ndarray]:
    return [golden(frame.transpose(2, 0, 1)) for frame in frames]


def check(results: list[Any], wanted: list[np.ndarray]) -> None:
    assert [result.index for result in results] == list(range(len(wanted)))
    wrong = [i for i, (one, right) in enumerate(zip(results, wanted, strict=True)) if (one.outputs[0] != right).any()]
    assert not wrong, f"{len(wrong)} frames are wrong, first {wrong[0]}"


def fault(kind: str, **options: Any) -> Any:
    from host.simulated.faults import InjectedFault

    return InjectedFault(kind, **options)


def test_detect_equals_the_golden_integers(design: Path, accelerator: Open, frames: list[np.ndarray]) -> None:
    yolo = accelerator(design)
    found = yolo.detect(frames[0])
    right = golden(frames[0].transpose(2, 0, 1))
    assert found.outputs[0].dtype == np.int16
    assert np.array_equal(found.outputs[0], right)
    head = Head("region", ((2.0, 3.0),), 1)
    floats = np.asarray(right / 32, np.float32)
    placement = Placement(WIDTH, HEIGHT, WIDTH, HEIGHT, 0, 0, WIDTH, HEIGHT)
    boxes = detect([floats], [head], placement, ["thing"])
    assert found.detections == tuple(one.clipped(WIDTH, HEIGHT) for one in boxes)
    assert len(boxes) > 5
    assert asyncio.run(yolo.detect_async(frames[0])).detections == found.detections


def test_frame_after_a_refused_picture_is_exact(
    design: Path, accelerator: Open, frames: list[np.ndarray], wanted: list[np.ndarray]
) -> None:
    """Check refusals by ``run``, which takes the network's input, and by ``detect`` and ``stream``, which resize."""
    yolo = accelerator(design, timeout_s=5)
    pixels, two_channels = frames[0].transpose(2, 0, 1), frames[0][..., :2]
    refusals: tuple[tuple[type[Exception], Callable[[], object]], ...] = (
        (ShapeError, lambda: yolo.run(pixels[:, :1])),
        (MismatchError, lambda: yolo.detect(two_channels)),
        (FrameError, lambda: list(yolo.stream([two_channels]))),
    )
    for kind, call in refusals:
        with pytest.raises(kind):
            call()
        assert np.array_equal(yolo.run(pixels)[0], wanted[0])
        assert np.array_equal(yolo.detect(frames[1]).outputs[0], wanted[1])
        (streamed,) = yolo.stream(frames[2:3])
        assert np.array_equal(streamed.outputs[0], wanted[2])


def test_generated_pipeline_equals_the_golden_model(tmp_path: Path, accelerator: Open) -> None:
    made = design_of(load_model("shapes"), "zcu104", "streaming", fps=200, search="greedy", estimated_fifos=True)
    made.write(tmp_path / "design")
    build(tmp_path / "design")
    yolo = accelerator(tmp_path / "design")
    assert yolo.check().passed
    for picture, found in zip(sample_pictures(), yolo.stream(sample_pictures()), strict=True):
        _, pixels, placement = yolo.prepare(picture)
        integers = run_integer(made.mapping.network, pixels)[yolo.manifest.layers[-1].node]
        assert integers is not None
        assert np.array_equal(found.outputs[0], integers)
        (head,) = yolo.manifest.heads
        values = to_floats(yolo.manifest.layers[-1].output, integers)
        boxes = detect([values], [head.head], placement, yolo.manifest.labels)
        height, width = found.picture.shape[:2]
        assert found.detections == tuple(one.clipped(width, height) for one in boxes)
        assert len(boxes) >= 2


def test_pipeline_is_started_once_and_restarts_itself(
    design: Path, tmp_path: Path, accelerator: Open, frames: list[np.ndarray], wanted: list[np.ndarray]
) -> None:
    folder = shutil.copytree(design, tmp_path / "design")
    values = manifest_fields(folder)
    values["frames_per_start"] = 7
    (folder / "manifest.json").write_text(json.dumps(values))
    yolo = accelerator(folder, threshold=0.9995, timeout_s=20)
    # Both halves of the address of the weights, the number of frames, the start.
    assert yolo.device.register_writes["streaming_top_0"] == 4
    yolo.device.register_writes.clear()
    check(list(yolo.stream(frames[:30])), wanted[:30])
    # In each direction, both halves of an address and a length, written by pynq's driver.
    assert dict(yolo.device.register_writes) == {"axi_dma_0": 30 * 6}
    model = next(one for _, _, name, one in yolo.device._slaves if name == "streaming_top_0")
    assert model.starts == 30 // 7 + 1


def test_accelerator_of_a_pipeline_uses_the_classes_of_pynq(design: Path, accelerator: Open) -> None:
    yolo = accelerator(design)
    assert type(yolo.overlay.axi_dma_0) is pynq.lib.dma.DMA
    assert type(yolo.ip).__mro__[2] is pynq.DefaultIP
    assert not yolo.has_interrupt
    assert all(type(one.sent) is type(one.received) is pynq.buffer.PynqBuffer for one in yolo.buffers.batches)
    weights = yolo.buffers.weights[0].device_address
    assert weights >> 32 > 0
    assert yolo.ip.read(yolo.ip.offset("weights_centre_1")) == weights & 0xFFFFFFFF
    assert yolo.ip.read(yolo.ip.offset("weights_centre_2")) == weights >> 32
    assert int(yolo.ip.register_map.frames.frames) == 16384
    assert "AP_START AUTO_RESTART" in yolo.ip.state()


def test_stream_of_a_pipeline_is_exact_and_in_order(
    design: Path, accelerator: Open, frames: list[np.ndarray], wanted: list[np.ndarray]
) -> None:
    yolo = accelerator(design, threshold=0.9995)
    held = yolo.device.allocations
    assert held == 1 + 2 * 2
    check(list(yolo.stream(frames)), wanted)
    assert list(yolo.measured.busy) == ["resize", "load", "accelerate", "decode"]
    gc.collect()
    assert yolo.device.allocations == held


def test_stream_closed_early_leaves_no_frame_in_the_pipeline(
    design: Path, accelerator: Open, frames: list[np.ndarray], wanted: list[np.ndarray]
) -> None:
    yolo = accelerator(design, sets=4, threshold=0.9995, timeout_s=20)
    for taken in range(1, 12):
        flow = yolo.stream(frames)
        check([next(flow) for _ in range(taken)], wanted[:taken])
        flow.close()
        assert np.array_equal(yolo.detect(frames[taken]).outputs[0], wanted[taken])


@pytest.mark.parametrize(
    ("what", "verify_every", "kind", "fields"),
    [
        (
            {"kind": "hang"},
            None,
            AcceleratorError,
            {
                "reason": "the stream did not end within 5 s: 4032 bytes with TLAST",
                "state": r"MM2S .*, S2MM 0x1000 \(busy\); ",
            },
        ),
        (
            {"kind": "corrupt word", "buffer": "weights_centre", "word": 5},
            10,
            MismatchError,
            {"what": "the checksum of data/weights_centre.bin in DDR$"},
        ),
        (
            {"kind": "missing flush"},
            1,
            AcceleratorError,
            {"reason": "the picture in DDR is not the one that was loaded"},
        ),
    ],
)
def test_stream_fault_of_a_pipeline_is_raised_and_reset_repairs_it(
    design: Path,
    accelerator: Open,
    frames: list[np.ndarray],
    wanted: list[np.ndarray],
    what: dict[str, Any],
    verify_every: int | None,
    kind: type[SystolicError],
    fields: dict[str, str],
) -> None:
    yolo = accelerator(design, threshold=0.9995, timeout_s=5.0)
    held = yolo.device.allocations
    yolo.device.inject(fault(at=AT, **what))
    results: list[Any] = []
    with raises(FrameError) as caught:
        results.extend(yolo.stream(frames, verify_every=verify_every))
    check_cause(caught.value, kind, fields)
    # A changed word in DDR may be found with the frame before, which is verified while the next one runs.
    ahead = int(what["kind"] == "corrupt word")
    assert AT - ahead <= caught.value.index < AT + (verify_every or 1)
    assert len(results) >= AT - ahead
    check(results[:AT], wanted[: min(AT, len(results))])
    del caught  # its frames hold buffers
    if what["kind"] == "hang":
        with raises(StateError, subject="the accelerator", remedy="call reset() first") as refused:
            yolo.detect(frames[0])
        assert refused.value.state.startswith("stopped earlier (the stream did not end within 5 s")
    yolo.reset()
    check(list(yolo.stream(frames[AT:])), wanted[AT:])
    gc.collect()
    assert yolo.device.allocations == held


def test_verify_every_10_verifies_each_tenth_frame_in_any_order_of_ends(
    design: Path, accelerator: Open, frames: list[np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    yolo = accelerator(design, threshold=0.9995)
    pictures = [yolo.prepare(frame)[1] for frame in frames[:40]]
    execute, turns = yolo._backend.execute, itertools.count()
    verified: list[int] = []

    def execute_late(batch: Any, wait: str) -> None:
        execute(batch, wait)
        if next(turns) % 2:  # every second frame ends after the following one
            time.sleep(0.02)

    def verify(_: Any, given: Sequence[np.ndarray]) -> None:
        verified.extend(number for number, one in enumerate(pictures) if np.array_equal(one, given[0]))

    monkeypatch.setattr(yolo._backend, "execute", execute_late)
    monkeypatch.setattr(yolo._backend, "verify", verify)
    assert len(list(yolo.stream(frames[:40], verify_every=10))) == 40
    assert sorted(verified) == [9, 19, 29, 39]


def test_accelerator_with_a_library_of_other_words_is_refused(design: Path, tmp_path: Path, accelerator: Open) -> None:
    folder = shutil.copytree(design, tmp_path / "design")
    values = manifest_fields(folder)
    values["images"][0]["word_bytes"] = 512  # the same bytes in fewer words than the layer reads
    (folder / "manifest.json").write_text(json.dumps(values))
    with raises(MismatchError, what="a word of weights_centre", got=3, expected=512):
        accelerator(folder)


@pytest.mark.parametrize("number", range(5))
def test_reset_of_a_pipeline_with_a_failed_allocation_frees_all_buffers(
    design: Path, accelerator: Open, number: int
) -> None:
    yolo = accelerator(design)
    yolo.device.inject(fault("allocation failure", at=number))
    with raises(AcceleratorError) as caught:
        yolo.reset()
    assert "bytes of contiguous memory cannot be allocated" in caught.value.reason
    assert yolo.device.allocations == 0, caught
    yolo.reset()
    assert yolo.device.allocations == 5


def test_reset_of_a_pipeline_with_a_lost_upload_raises_mismatch_error(design: Path, accelerator: Open) -> None:
    yolo = accelerator(design)
    yolo.device.inject(fault("missing flush"))
    with raises(MismatchError, what="the checksum of data/weights_centre.bin in DDR, just uploaded,"):
        yolo.reset()
    yolo.reset()
    yolo.verify()


def test_check_compares_the_outputs_of_the_pipeline(design: Path, tmp_path: Path, accelerator: Open) -> None:
    report = accelerator(design).check()
    assert report.passed
    assert str(report) == f"centre: 1 layers, {6 * HEIGHT * WIDTH:,} integers: every bit equal to the golden model's"
    yolo = accelerator(design)
    yolo.device.inject(fault("corrupt word", buffer="weights_centre", word=0))
    report = yolo.check()
    # Four biases of the word: three of the first pixel, one of the second.
    assert re.search(r"is centre \(by hand:1\): 4 of 1,512 integers, first at channel 0, row 0, column 0", str(report))
    folder = shutil.copytree(design, tmp_path / "design")
    values = manifest_fields(folder)
    del values["check"]
    (folder / "manifest.json").write_text(json.dumps(values))
    with raises(MissingValueError, what="the test frame", where=str(folder), remedy="generate the design again"):
        accelerator(folder).check()


def test_time_scale_of_a_pipeline_uses_its_modelled_cycles(design: Path, accelerator: Open, frames: list[Any]) -> None:
    yolo = accelerator(design, time_scale=2000.0, threshold=0.9995)
    assert yolo.manifest.cycles == 1000
    assert yolo.device.pace.seconds(0, 1) == pytest.approx(0.02)  # 1000 cycles at 100 MHz, 2000 times slower
    assert yolo.detect(frames[0]).timing.seconds["accelerate"] >= 0.02
    assert "whose frame takes 0.010 ms (modelled cycles at 100 MHz, a target)" in yolo.label


def test_pipeline_on_a_zynq_7000_detects_or_refuses_pynq_4_0(
    tmp_path: Path, accelerator: Open, frames: list[Any], wanted: list[Any]
) -> None:
    folder = make_by_hand(tmp_path / "design", "pynq-z2")
    if pynq.__version__.startswith("4.0"):
        with raises(UnsupportedError, remedy="use pynq 3.1.2 for such a board") as caught:
            accelerator(folder)
        assert "finds no PL clock in the description of a Zynq-7000" in caught.value.reason
        return
    assert np.array_equal(accelerator(folder).detect(frames[0]).outputs[0], wanted[0])
