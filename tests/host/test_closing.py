"""Closing an accelerator, at any time and by any thread; a buffer that it may still write is not freed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boards.errors import AcceleratorError, StateError
from host.gate import Gate
from host.pipeline import FrameError
from tests.support.errors import raises
from tests.support.host.hardware import Open, faulty

pytestmark = pytest.mark.pynq

CLOSED = {"subject": "the accelerator", "state": "is closed", "remedy": "make a new one"}
PATIENCE = 60.0


@pytest.fixture(params=["tiny", "batches", "centre"])
def design(request: pytest.FixtureRequest) -> Path:
    """Return a design per kind of driver: systolic, systolic with batches, streaming."""
    folder: Path = request.getfixturevalue(request.param)
    return folder


def picture() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, (14, 18, 3), np.uint8)


def endless() -> Iterator[np.ndarray]:
    while True:
        yield picture()


def in_thread(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Start a thread. Return it with a list that receives the result or the exception of ``work``."""
    came: list[Any] = []

    def run() -> None:
        try:
            came.append(work())
        except BaseException as error:
            came.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, came


def at_work(yolo: Any) -> None:
    """Wait until the accelerator is running."""
    for _ in range(int(PATIENCE * 1000)):
        if any(model.reaches(0, 1 << 48) for _, _, _, model in yolo.device._slaves):
            return
        threading.Event().wait(0.001)
    raise AssertionError("nothing was started")


def given_back(yolo: Any) -> bool:
    return (yolo.device.freed_at_work, yolo.device.allocations) == ([], 0)


@pytest.mark.parametrize("taken", [1, 4])
def test_close_open_stream_ends_with_an_error(design: Path, accelerator: Open, taken: int) -> None:
    yolo = accelerator(design, threshold=0.9)
    flow = yolo.stream(endless())
    for _ in range(taken):
        next(flow)
    before = threading.active_count()
    yolo.close()
    assert given_back(yolo)
    assert threading.active_count() < before, "its stages have ended"
    with raises(StateError, **CLOSED):
        list(flow)
    yolo.close()


def test_close_stream_of_another_thread_ends(design: Path, accelerator: Open) -> None:
    yolo = accelerator(design, threshold=0.9)
    thread, came = in_thread(lambda: [None for _ in yolo.stream(endless())])
    at_work(yolo)
    yolo.close()
    assert given_back(yolo)
    thread.join(PATIENCE)
    assert [(type(error), error.state) for error in came] == [(StateError, CLOSED["state"])]


STAGES = ("prepare", "load", "execute", "decode")


@pytest.mark.parametrize("stage", STAGES)
def test_close_within_a_stage_is_refused(
    design: Path, accelerator: Open, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Close in the stage's own thread, as a caller's callback or overridden method can."""
    yolo = accelerator(design, threshold=0.9)
    place: Any = yolo if stage in ("prepare", "decode") else yolo._backend
    work = getattr(place, stage)

    def closes(*given: Any) -> Any:
        yolo.close()
        return work(*given)

    monkeypatch.setattr(place, stage, closes)
    thread, came = in_thread(lambda: list(yolo.stream([picture()] * 3)))
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert type(came[0].cause) is StateError
    assert came[0].cause.state.startswith("cannot be closed by a signal handler or a callback")
    monkeypatch.undo()
    assert len(list(yolo.stream([picture()] * 3))) == 3, "it is open as before"
    yolo.close()
    assert given_back(yolo)


def test_close_waits_for_frame_of_another_thread(design: Path, accelerator: Open) -> None:
    yolo = accelerator(design, threshold=0.9, time_scale=1.0)
    yolo.device.pace = slow(yolo, 0.3)
    thread, came = in_thread(lambda: yolo.detect(picture()))
    at_work(yolo)
    closers = [in_thread(yolo.close)[0] for _ in range(3)]
    for closer in closers:
        closer.join(PATIENCE)
    assert given_back(yolo)
    thread.join(PATIENCE)
    assert came[0].timing.seconds["accelerate"] >= 0.3


def test_close_by_several_threads_waits_for_the_stream(design: Path, accelerator: Open) -> None:
    yolo = accelerator(design, threshold=0.9, time_scale=1.0)
    yolo.device.pace = slow(yolo, 0.3)
    thread, came = in_thread(lambda: [None for _ in yolo.stream(endless())])
    at_work(yolo)
    closers = [in_thread(lambda: (yolo.close(), given_back(yolo))) for _ in range(3)]
    for closer, _ in closers:
        closer.join(PATIENCE)
    assert [answer for _, answers in closers for answer in answers] == [(None, True)] * 3
    thread.join(PATIENCE)
    assert [(type(error), error.state) for error in came] == [(StateError, CLOSED["state"])]


def slow(yolo: Any, seconds: float) -> Any:
    """Return a pace at which a frame takes ``seconds``."""
    from dataclasses import replace

    pace = yolo.device.pace
    return replace(pace, time_scale=pace.time_scale * seconds / pace.seconds(0, yolo.manifest.passes))


@pytest.mark.parametrize("wait", ["poll", "interrupt"])
def test_close_after_timeout_stops_the_accelerator(design: Path, accelerator: Open, wait: str) -> None:
    with accelerator(design, timeout_s=0.2, wait=wait) as yolo:
        yolo.device.inject(faulty("hang"))
        with raises(FrameError) as caught:
            list(yolo.stream(endless()))
        assert type(caught.value.cause) is AcceleratorError
        assert "within 0.2 s" in caught.value.cause.reason
    assert given_back(yolo)


def test_close_after_exception_between_frames_frees_buffers(design: Path, accelerator: Open) -> None:
    def work() -> None:
        with yolo:
            flows.append(yolo.stream(endless()))
            raise ZeroDivisionError(next(flows[0]).index)

    yolo, flows = accelerator(design), list[Any]()
    with pytest.raises(ZeroDivisionError, match="0"):
        work()
    assert given_back(yolo)


@pytest.mark.parametrize("wait", ["poll", "interrupt"])
def test_close_after_ctrl_c_during_a_frame_frees_buffers(design: Path, accelerator: Open, wait: str) -> None:
    yolo = accelerator(design, timeout_s=PATIENCE, wait=wait)
    yolo.device.inject(faulty("hang"))

    def press() -> None:
        at_work(yolo)
        os.kill(os.getpid(), signal.SIGINT)

    thread, _ = in_thread(press)
    with pytest.raises(KeyboardInterrupt):
        yolo.detect(picture())
    thread.join(PATIENCE)
    with raises(StateError, state="stopped earlier (it was interrupted)", remedy="call reset() first"):
        yolo.detect(picture())
    yolo.close()
    assert given_back(yolo)


def test_close_with_unread_layers_frees_buffers(design: Path, accelerator: Open) -> None:
    yolo = accelerator(design)
    layers = yolo.layers(yolo.prepare(picture())[1])
    next(layers)
    yolo.close()
    assert given_back(yolo)
    with raises(StateError, **CLOSED):
        next(layers)


def test_close_after_cancelled_coroutine_waits_for_its_frame(design: Path, accelerator: Open) -> None:
    yolo = accelerator(design, time_scale=1.0)
    yolo.device.pace = slow(yolo, 0.3)

    async def cancelled() -> None:
        task = asyncio.create_task(yolo.detect_async(picture()))
        await asyncio.to_thread(at_work, yolo)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with raises(StateError, subject="the accelerator", state="is already in use"):
            yolo.detect(picture())
        yolo.close()

    asyncio.run(cancelled())
    assert given_back(yolo)


def test_open_on_a_used_device_takes_it_over(design: Path, accelerator: Open) -> None:
    from host import Accelerator, Options
    from host.contract.manifest import read_manifest
    from host.contract.simulation_library import find_library
    from host.simulated.device import SimulatedBoard

    board = SimulatedBoard(read_manifest(design), find_library(design, None))
    with Accelerator(design, Options(), device=board) as first:
        before = first.detect(picture())
        with Accelerator(design, Options(), device=board) as second:
            with raises(StateError, state="stopped earlier (another accelerator was loaded on its device since)"):
                first.detect(picture())
            first.close()
            assert np.array_equal(second.detect(picture()).outputs[0], before.outputs[0])
        assert given_back(second)
    board.close()


def test_close_of_unstoppable_accelerator_keeps_buffers(
    design: Path, accelerator: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    yolo = accelerator(design, timeout_s=0.1)
    yolo.device.inject(faulty("hang"))
    with raises(AcceleratorError) as caught:
        yolo.detect(picture())
    assert "within 0.1 s" in caught.value.reason
    with monkeypatch.context() as patch:

        def refuse(*_: Any) -> None:
            raise RuntimeError("the manager is gone")

        patch.setattr(yolo.overlay, "download", refuse)
        with raises(AcceleratorError, remedy="call close() again, or restart the board") as refused:
            yolo.close()
        assert "its bitstream does not load again (the manager is gone)" in refused.value.reason
        assert yolo.device.allocations > 0
    yolo.close()
    assert given_back(yolo)


ASKED: dict[str, Callable[[Any], Any]] = {
    "detect": lambda yolo: yolo.detect(picture()),
    "run": lambda yolo: yolo.run(np.zeros((3, 14, 18), np.uint8)),
    "stream": lambda yolo: list(yolo.stream([picture()])),
    "layers": lambda yolo: list(yolo.layers(np.zeros((3, 14, 18), np.uint8))),
    "check": lambda yolo: yolo.check(),
    "reset": lambda yolo: yolo.reset(),
    "verify": lambda yolo: yolo.verify(),
    "detect_async": lambda yolo: asyncio.run(yolo.detect_async(picture())),
    "overlay": lambda yolo: yolo.overlay,
    "ip": lambda yolo: yolo.ip,
    "has_interrupt": lambda yolo: yolo.has_interrupt,
    "buffers": lambda yolo: yolo.buffers,
}


@pytest.mark.parametrize("name", ASKED)
def test_call_of_closed_accelerator_is_refused(tiny: Path, accelerator: Open, name: str) -> None:
    with accelerator(tiny) as yolo:
        pass
    with raises(StateError, **CLOSED):
        ASKED[name](yolo)
    assert yolo.device.allocations == 0


@pytest.mark.parametrize("cacheable", [0, 1])
def test_write_to_freed_memory_ends_the_process(tiny: Path, cacheable: int) -> None:
    """Check that a write to a freed buffer ends the process, as on a board."""
    code = (
        "import sys, numpy as np; from pathlib import Path; from host import Accelerator; "
        f"yolo = Accelerator(Path(sys.argv[1])); own = yolo._loaded.allocate((9,), np.uint8, cacheable={cacheable}); "
        "own[0] = 7; print(own[0], flush=True); own.freebuffer(); own[0] = 8; print('and on')"
    )
    done = subprocess.run([sys.executable, "-c", code, tiny], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (-signal.SIGSEGV, "7\n"), done.stderr


def test_board_reports_buffer_freed_during_a_write(tiny: Path, centre: Path, accelerator: Open) -> None:
    """Check the report on which the other tests of this module rely."""
    for design in (tiny, centre):
        yolo = accelerator(design, timeout_s=0.1)
        yolo.device.inject(faulty("hang"))
        with raises(AcceleratorError):
            yolo.detect(picture())
        yolo._board.driver.free()
        assert yolo.device.freed_at_work != []
        assert "is at work on the buffer at 0x8" in yolo.device.freed_at_work[0]
        yolo.device.freed_at_work.clear()


def test_gate_closed_from_inside_is_refused() -> None:
    gate = Gate()
    with gate.inside(), raises(StateError, subject="the accelerator") as caught:
        gate.close()
    assert caught.value.state.startswith("cannot be closed by a signal handler or a callback")
    with gate.inside():
        pass
    gate.close()
    gate.close()
    with raises(StateError, **CLOSED), gate.inside():
        pass
