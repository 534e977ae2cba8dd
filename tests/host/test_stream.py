"""A thousand frames with the real pynq and the simulated board, with all faults that can occur."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boards.errors import AcceleratorError, MismatchError, StateError, SystolicError
from cnn.integer_model import run_integer
from host.systolic.layout import pack_input
from systolic.styles.systolic.simulate import open_design
from tests.support.errors import raises
from tests.support.host.hardware import SELDOM, Open, check_cause, faulty, through

pytestmark = pytest.mark.pynq

FRAMES = 1000
AT = 500


@pytest.fixture(scope="module")
def frames() -> list[np.ndarray]:
    random = np.random.default_rng(5)
    return [random.integers(0, 256, (14, 18, 3), np.uint8) for _ in range(FRAMES)]


@pytest.fixture(scope="module")
def wanted(tiny: Path, frames: list[np.ndarray]) -> list[np.ndarray]:
    """Return the golden model's output for each frame."""
    folder = open_design(tiny)
    node = folder.manifest.layers[-1].node
    return [np.asarray(run_integer(folder.network, frame.transpose(2, 0, 1))[node]) for frame in frames]


def check(results: list[Any], wanted: list[np.ndarray]) -> None:
    assert [result.index for result in results] == list(range(len(wanted)))
    wrong = [i for i, (one, right) in enumerate(zip(results, wanted, strict=True)) if (one.outputs[0] != right).any()]
    assert not wrong, f"{len(wrong)} frames are wrong, first {wrong[0]}"


@pytest.mark.parametrize("wait", ["poll", "interrupt"])
def test_stream_of_1000_frames_is_exact_and_in_order(
    tiny: Path, accelerator: Open, frames: list[np.ndarray], wanted: list[np.ndarray], wait: str
) -> None:
    yolo = accelerator(tiny, wait=wait, threshold=SELDOM)
    buffers = yolo.device.allocations
    check(list(yolo.stream(frames)), wanted)
    gc.collect()
    assert yolo.device.allocations == buffers


@pytest.mark.parametrize(
    ("wait", "writes"),
    [
        # One write of the frame's set (the first frame's set is written already), and one of the start.
        ("poll", {"systolic_top_0": 199}),
        # Also one write of the accelerator's interrupt status, and one of the controller's acknowledgement.
        ("interrupt", {"systolic_top_0": 299, "axi_intc_0": 100}),
    ],
)
def test_stream_writes_at_most_five_registers_per_frame(
    tiny: Path,
    accelerator: Open,
    frames: list[np.ndarray],
    wait: str,
    writes: dict[str, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("host.systolic.ip._LOOK_SECONDS", 60)  # a late interrupt does not count as lost
    yolo = accelerator(tiny, wait=wait, threshold=SELDOM)
    yolo.detect(frames[0])
    yolo.device.register_writes.clear()
    list(yolo.stream(frames[:100]))
    # Two writes arm the line once. The stream makes them if the first frame was done before anything waited for it.
    written = yolo.device.register_writes
    if writes.keys() >= {"axi_intc_0"} and written["axi_intc_0"] == writes["axi_intc_0"] + 2:
        written["axi_intc_0"] -= 2
    assert dict(written) == writes  # and nothing on another slave
    assert sum(writes.values()) <= 5 * 100


def test_interrupt_wait_of_pynq_does_not_disturb_the_driver(
    tiny: Path,
    accelerator: Open,
    frames: list[np.ndarray],
    wanted: list[np.ndarray],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("host.systolic.ip._LOOK_SECONDS", 1)  # a late interrupt does not count as lost
    yolo = accelerator(tiny, wait="interrupt", threshold=SELDOM)
    yolo.detect(frames[0])
    before = yolo.ip.missed_interrupts

    async def by_pynq() -> None:
        yolo.ip.start(0, yolo.manifest.passes)
        await asyncio.wait_for(yolo.ip.interrupt.wait(), 60)
        assert yolo.ip.idle

    import pynq

    assert type(yolo.ip.interrupt) is pynq.Interrupt
    asyncio.run_coroutine_threadsafe(by_pynq(), yolo._loaded._loop).result()
    # pynq has disabled the line. One interrupt is missed before it is armed again, otherwise all twenty would be.
    check(list(yolo.stream(frames[:20])), wanted[:20])
    assert yolo.ip.missed_interrupts < before + 10


@pytest.mark.parametrize("kind", ["late interrupt", "lost interrupt", "double interrupt"])
def test_stream_with_faulty_interrupts_is_exact(
    tiny: Path, accelerator: Open, frames: list[np.ndarray], wanted: list[np.ndarray], kind: str
) -> None:
    yolo = accelerator(tiny, wait="interrupt", threshold=SELDOM, timeout_s=5)
    yolo.device.inject(*(faulty(kind, at=at, seconds=0.3) for at in range(0, FRAMES, 250)))
    check(list(yolo.stream(frames)), wanted)
    if kind != "double interrupt":
        assert yolo.ip.missed_interrupts >= 2


@pytest.mark.parametrize(
    ("fault", "verify_every", "lost", "kind", "fields"),
    [
        (
            {"kind": "hang", "in_pass": 1},
            None,
            0,
            AcceleratorError,
            {"where": "pass 1, layer conv", "reason": "the accelerator did not finish within 5 s$"},
        ),
        (
            {"kind": "corrupt word", "buffer": "program", "word": 3},
            None,
            0,
            AcceleratorError,
            {"where": "pass ", "reason": "the accelerator stopped; the simulated board says: port"},
        ),
        (
            {"kind": "corrupt word", "buffer": "weights_0"},
            20,
            20,
            MismatchError,
            {"what": "the checksum of data/weights_0.bin in DDR$"},
        ),
        (
            {"kind": "corrupt word", "buffer": "requantisers"},
            1,
            1,
            MismatchError,
            {"what": "the checksum of data/requantisers.bin in DDR$"},
        ),
    ],
)
def test_stream_fault_is_raised_and_reset_repairs_it(
    tiny: Path,
    accelerator: Open,
    frames: list[np.ndarray],
    wanted: list[np.ndarray],
    fault: dict[str, Any],
    verify_every: int | None,
    lost: int,
    kind: type[SystolicError],
    fields: dict[str, str],
) -> None:
    yolo = accelerator(tiny, threshold=SELDOM, timeout_s=5.0)
    buffers = yolo.device.allocations
    # A corrupted program changes the addresses of a set. Even frames use set 0.
    yolo.device.inject(faulty(at=AT, **fault))
    results, error = through(yolo, frames, verify_every=verify_every)
    assert error is not None
    check_cause(error, kind, fields)
    assert AT <= error.index < AT + max(lost, 1)
    check(results[:AT], wanted[:AT])
    assert len(results) == error.index
    yolo.reset()
    left, error = through(yolo, frames[AT:])
    assert error is None
    check(left, wanted[AT:])
    gc.collect()
    assert yolo.device.allocations == buffers


def test_stream_with_a_missing_flush_is_wrong_unless_verified(
    tiny: Path, accelerator: Open, frames: list[np.ndarray], wanted: list[np.ndarray]
) -> None:
    yolo = accelerator(tiny, threshold=SELDOM)
    yolo.device.inject(faulty("missing flush", at=AT))
    results = list(yolo.stream(frames))
    wrong = [i for i, one in enumerate(results) if (one.outputs[0] != wanted[i]).any()]
    assert wrong == [AT]  # the picture of two frames before was processed again
    yolo.device.inject(faulty("missing flush", at=AT))
    results, error = through(yolo, frames, verify_every=1)
    check_cause(error, AcceleratorError, {"reason": "the picture in DDR is not the one that was loaded"})
    check(results, wanted[:AT])
    check(list(yolo.stream(frames[AT:])), wanted[AT:])


def test_detect_after_a_hang_is_refused(tiny: Path, accelerator: Open, frames: list[np.ndarray]) -> None:
    yolo = accelerator(tiny, timeout_s=0.1)
    yolo.device.inject(faulty("hang"))
    with raises(AcceleratorError, reason="the accelerator did not finish within 0.1 s"):
        yolo.detect(frames[0])
    with raises(StateError, subject="the accelerator", remedy="call reset() first") as caught:
        yolo.detect(frames[0])
    assert caught.value.state.startswith("stopped earlier (it did not finish within 0.1 s, in pass ")


def test_detect_of_another_accelerator_during_a_hang_succeeds(
    tiny: Path, accelerator: Open, frames: list[np.ndarray]
) -> None:
    hung, other = accelerator(tiny, timeout_s=0.1), accelerator(tiny)
    hung.device.inject(faulty("hang", in_pass=1))
    with raises(AcceleratorError, reason="the accelerator did not finish within 0.1 s") as caught:
        hung.detect(frames[0])
    assert caught.value.where.startswith("pass 1")
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(other.detect(frames[0])), daemon=True)
    thread.start()
    thread.join(60)
    assert len(results) == 1, "it waits for the one that hangs"


def test_detect_during_a_stream_is_refused(tiny: Path, accelerator: Open, frames: list[np.ndarray]) -> None:
    yolo = accelerator(tiny, threshold=SELDOM)
    flow = yolo.stream(frames)
    next(flow)
    with raises(StateError, subject="the accelerator", state="is already in use"):
        yolo.detect(frames[0])
    flow.close()
    yolo.detect(frames[0])


def test_stream_of_a_live_source_has_at_most_one_waiting_frame(
    tiny: Path, accelerator: Open, frames: list[np.ndarray]
) -> None:
    """Check that at most one frame waits in addition to the frame in the accelerator."""

    class Live:
        live = True
        taken = 0

        def __iter__(self) -> Iterator[np.ndarray]:
            for frame in frames[:40]:
                self.taken += 1
                yield frame

    yolo, source = accelerator(tiny, threshold=SELDOM), Live()
    waiting = [source.taken - given for given, _ in enumerate(yolo.stream(source), start=1)]
    assert len(waiting) == 40
    assert max(waiting) <= 2
    alone = [yolo.detect(frame).detections for frame in frames[:3]]
    assert [result.detections for result in yolo.stream(Live())][:3] == alone


def test_stream_overlaps_its_stages_up_to_the_slowest(tiny: Path, accelerator: Open, frames: list[np.ndarray]) -> None:
    yolo = accelerator(tiny, threshold=SELDOM, time_scale=1.0)
    # At 40 ms per frame, the other stages take little time in comparison.
    cycles = yolo.manifest.cycles / (yolo.manifest.clock_mhz * 1e6)
    yolo.device.pace = replace(yolo.device.pace, time_scale=0.04 / cycles)
    results = list(yolo.stream(frames[:60]))
    took = yolo.measured
    assert took.bound_by == "accelerate"
    assert min(one.timing.seconds["accelerate"] for one in results) >= 0.04
    # The other stages run while other frames are in the accelerator.
    spans = [{span.stage: span for span in one.timing.spans} for one in results]
    busy = [(one["accelerate"].begin, one["accelerate"].end) for one in spans]
    for stage in ("resize", "load", "decode"):
        beside = sum(any(a < one[stage].end and one[stage].begin < b for a, b in busy) for one in spans)
        assert beside > 30, (stage, beside, str(took))
    assert "modelled cycles" in took.label
    assert "a target" in took.label


def test_input_is_packed_as_the_generator_expects(tiny: Path, frames: list[np.ndarray]) -> None:
    from host.contract.manifest import of_style, read_manifest
    from host.contract.systolic import SystolicManifest
    from systolic.styles.systolic import simulate

    folder = open_design(tiny)
    arena = simulate.arena(folder)
    picture = frames[0].transpose(2, 0, 1)
    manifest = of_style(SystolicManifest, read_manifest(tiny))
    place = arena.reshape(-1).view(np.uint8)[manifest.input.offset :][: manifest.input.bytes]
    mine = place.copy()
    simulate.place_picture(folder, picture, arena)
    pack_input(manifest, picture, mine)
    assert np.array_equal(mine, place)
    assert len(np.unique(mine)) > 100
