"""Parts of the drivers that need no board: turns, packets, test frames, and labels of times."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from boards.errors import (
    AcceleratorError,
    MismatchError,
    RangeError,
    ShapeError,
    StateError,
    UnsupportedError,
)
from host.board import overlay
from host.board.overlay import LoadedOverlay
from host.contract.libraries import StoppedError
from host.contract.manifest import of_style, parse_manifest
from host.contract.streaming import StreamingManifest
from host.simulated.ddr import BusError
from host.simulated.pace import Pace
from host.streaming.check import check_frame
from host.streaming.dma import StreamChannel, Turns
from host.streaming.driver import StreamingBatch, StreamingDriver
from host.streaming.simulated import StreamingFabric, StreamingModel
from tests.support.errors import raises
from tests.support.host import pipelines

# --- the test frame of a pipeline -------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, data in pipelines._data().items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    return tmp_path


def test_test_frame_has_picture_and_golden_outputs(folder: Path) -> None:
    pixels, maps = check_frame(parse_manifest(pipelines.manifest(), "manifest.json"), folder)
    assert pixels.shape == (3, pipelines.HEIGHT, pipelines.WIDTH)
    assert pixels.dtype == np.uint8
    (leaves,) = maps
    assert np.array_equal(leaves, pipelines.golden(pixels))


def test_test_frame_cut_off_is_refused(folder: Path) -> None:
    values = pipelines.manifest()
    (folder / "data/in.bin").write_bytes(b"\0" * 5)
    values["check"]["packet_in"]["crc32"] = 0xC622F71D  # of five zeros
    with raises(MismatchError, what="the number of bytes", got=5, expected=3 * pipelines.PIXELS, where="data/in.bin"):
        check_frame(parse_manifest(values, "manifest.json"), folder)


# --- turns ------------------------------------------------------------------------------------------------------------


def in_thread(call: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread


def test_turns_are_taken_in_the_order_of_numbers() -> None:
    turns, came = Turns(lambda: False, 5), []

    def come(number: int) -> None:
        with turns.turn(number):
            came.append(number)
            time.sleep(0.002)
            came.append(number)

    threads = [in_thread(lambda number=number: come(number)) for number in (3, 1, 2)]  # type: ignore[misc]
    time.sleep(0.01)
    assert came == []
    come(0)
    for thread in threads:
        thread.join(5)
    assert came == [0, 0, 1, 1, 2, 2, 3, 3]


def test_turns_when_broken_are_refused() -> None:
    broken, said = threading.Event(), []
    turns = Turns(broken.is_set, 5)

    def come() -> None:
        with raises(StateError, subject="an earlier frame", state="did not end", remedy="call reset()"), turns.turn(1):
            said.append("came")
        said.append("refused")

    thread = in_thread(come)
    time.sleep(0.01)
    assert thread.is_alive()
    broken.set()
    turns.notify()
    thread.join(5)
    assert said == ["refused"]
    with raises(StateError), turns.turn(0):
        said.append("came")
    assert len(said) == 1


def test_turn_that_fails_blocks_the_next() -> None:
    """Check that the next thread waits until the pipeline is broken, because its position in a frame is unknown."""
    broken = threading.Event()
    turns = Turns(broken.is_set, 5)
    with pytest.raises(ValueError, match="half"), turns.turn(0):
        raise ValueError("half")
    broken.set()
    with raises(StateError), turns.turn(1):
        pass


def test_turn_after_the_time_limit_is_refused() -> None:
    with raises(StateError, subject="an earlier frame", state="did not end"), Turns(lambda: False, 0.01).turn(1):
        pass


def driver() -> tuple[StreamingDriver, list[str]]:
    """Return a driver, and the list to which its channel adds each sent packet."""
    board = SimpleNamespace(timeout_s=0.01, broken="", check_whole=lambda: None, running=contextlib.nullcontext)
    made, log = StreamingDriver(board, parse_manifest(pipelines.manifest(), "manifest.json")), list[str]()  # type: ignore[arg-type]
    noted = SimpleNamespace(send=lambda sent: log.append("sent"), receive=lambda _: None, finish=lambda _: None)
    made._channel = noted  # type: ignore[assignment]
    return made, log


def test_driver_refused_or_interrupted_frame_leaves_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("host.streaming.driver.MIN_TURN_SECONDS", 0.01)
    made, log = driver()
    size = made._manifest.packet_in.beat_bytes
    batches = [StreamingBatch(index, np.zeros(size, np.uint8), None) for index in range(2)]
    good = np.zeros((3, pipelines.HEIGHT, pipelines.WIDTH), np.uint8)
    for batch in batches:
        with raises(ShapeError, what="the input"):
            made.load(batch, (good[:, :1],))
        made.load(batch, (good,))  # the caller is interrupted before the frame is executed
        made.load(batch, (good,))
        made.execute(batch, "poll")
    made.load(batches[1], (good,))
    made.load(batches[0], (good,))
    made.execute(batches[1], "poll")
    made.execute(batches[0], "poll")
    assert log == ["sent"] * 4


# --- packets ----------------------------------------------------------------------------------------------------------


class Half:
    """One direction of a DMA. Its packet has ended after ``looks`` reads of ``idle``."""

    def __init__(self, looks: int = 0) -> None:
        self.looks, self.error, self.transferred = looks, False, 0
        self.log: list[str] = []

    @property
    def idle(self) -> bool:
        self.looks -= 1
        return self.looks < 0

    def transfer(self, buffer: Any) -> None:
        self.log.append(buffer.name)
        self.transferred = buffer.nbytes

    def wait(self) -> None:
        self.log.append("wait")

    def start(self) -> None:
        self.log.append("start")


def channel(**numbers: Any) -> tuple[StreamChannel, Any]:
    written: list[tuple[int, int]] = []
    dma = SimpleNamespace(
        sendchannel=Half(),
        recvchannel=Half(),
        buffer_max_size=100,
        device=SimpleNamespace(),
        read=lambda offset: {0x04: 0x2, 0x34: 0x51}[offset],
        write=lambda offset, value: written.append((offset, value)),
        written=written,
    )
    vars(dma).update(numbers)
    return StreamChannel(dma, 0.02), dma


def packet(name: str, size: int = 10) -> Any:
    return SimpleNamespace(name=name, nbytes=size)


def test_channel_receives_before_it_sends_and_both_end() -> None:
    made, dma = channel()
    assert made.exchange(packet("in", 12), packet("out", 100)) == 100
    assert (dma.recvchannel.log, dma.sendchannel.log) == (["out", "wait"], ["in", "wait"])


def test_channel_packet_is_sent_after_the_previous_one_and_ends_once() -> None:
    made, dma = channel()
    first, second = packet("first"), packet("second")
    made.send(first)
    assert dma.sendchannel.log == ["first"]
    made.send(second)
    assert dma.sendchannel.log == ["first", "wait", "second"]
    made.finish(first)  # has ended already
    assert dma.sendchannel.log == ["first", "wait", "second"]
    made.finish(second)
    made.finish(second)
    assert dma.sendchannel.log == ["first", "wait", "second", "wait"]


@pytest.mark.parametrize("size", [0, 101])
def test_channel_packet_has_the_bytes_of_the_length_register(size: int) -> None:
    made, dma = channel()
    for call in (
        lambda: made.exchange(packet("in", size), packet("out")),
        lambda: made.exchange(packet("in"), packet("out", size)),
        lambda: made.send(packet("in", size)),
        lambda: made.receive(packet("out", size)),
    ):
        with raises(RangeError, what="the number of bytes of a packet", got=size, low=1, high=100):
            call()
    assert dma.sendchannel.log == dma.recvchannel.log == []
    for least in (1, 100):
        made.send(packet("in", least))


def test_channel_state_names_the_bits() -> None:
    """Check 0x2, which is idle, and 0x51, which is 0x40 + 0x10 + 0x1."""
    made, dma = channel()
    assert made.state() == "MM2S 0x2 (idle), S2MM 0x51 (halted, internal error, decode error)"
    dma.read = lambda _: 0x10020
    assert made.state() == "MM2S 0x10020 (slave error), S2MM 0x10020 (slave error)"
    dma.read = lambda _: 0
    assert made.state() == "MM2S 0x0 (busy), S2MM 0x0 (busy)"


def test_channel_reset_is_of_both_directions() -> None:
    made, dma = channel()
    made.send(packet("in"))
    made.reset()
    assert dma.written == [(0x00, 0x4), (0x30, 0x4)]
    assert (dma.sendchannel.log, dma.recvchannel.log) == (["in", "start"], ["start"])
    made.send(packet("next"))
    assert dma.sendchannel.log == ["in", "start", "next"]


def test_channel_packet_without_end_is_refused_in_time() -> None:
    made, _ = channel(recvchannel=Half(10**9))
    begin = time.perf_counter()
    with raises(AcceleratorError, state=made.state(), remedy="call reset()") as caught:
        made.receive(packet("out"))
    assert caught.value.reason.startswith("the stream did not end within 0.02 s: 10 bytes with TLAST")
    assert 0.02 <= time.perf_counter() - begin < 1
    made, _ = channel(sendchannel=Half(10**9))
    made.send(packet("in"))
    with raises(AcceleratorError, state=made.state(), remedy="call reset()") as caught:
        made.send(packet("next"))
    assert caught.value.reason.startswith("the accelerator did not take a packet within 0.02 s: it stalls")
    made, _ = channel(recvchannel=Half(3))
    made.receive(packet("out"))


def test_channel_error_ends_the_wait_at_once() -> None:
    made, dma = channel(recvchannel=Half(10**9))
    dma.recvchannel.error = True
    with raises(AcceleratorError, reason="the DMA reports an error", state=made.state(), remedy="call reset()"):
        made.receive(packet("out"))
    made, _ = channel(recvchannel=Half(10**9), device=SimpleNamespace(stop_reason="it is hot"))
    with raises(AcceleratorError, reason="the accelerator stopped; the simulated board says: it is hot"):
        made.receive(packet("out"))


def test_dma_of_one_direction_is_refused() -> None:
    for lacking in ("sendchannel", "recvchannel"):
        with raises(UnsupportedError, subject="an AXI DMA of one direction"):
            channel(**{lacking: None})


# --- sources of times -------------------------------------------------------------------------------------------------


def loaded(batch: int = 1, **device: Any) -> LoadedOverlay:
    """Return an overlay that has only a manifest of two passes and a device."""
    made = LoadedOverlay.__new__(LoadedOverlay)
    made.folder = Path("nowhere")
    made.manifest = SimpleNamespace(passes=2, batch=batch)  # type: ignore[assignment]
    made.simulated = "overruns" in device
    made.device = SimpleNamespace(**device)
    return made


def test_label_names_the_source_of_the_time() -> None:
    """Use two passes of 100,000 and 300,000 cycles, which take 2 ms at 200 MHz."""
    pace = Pace((1e5, 3e5), 200.0, 4.0, "traced")
    start = "simulated board 4 × slower than the design, whose "
    end = "(traced cycles at 200 MHz, a target)"
    assert loaded(pace=pace, overruns=0).label == f"{start}frame takes 2.000 ms {end}"
    assert loaded(pace=pace, overruns=3).label == f"{start}frame takes 2.000 ms {end}, 3 frames took longer to execute"
    assert loaded(5, pace=pace, overruns=2).label == (
        f"{start}batch of 5 frames takes 2.000 ms {end}, 2 batches took longer to execute"
    )
    assert loaded(pace=None, overruns=0).label == (
        "simulated board at the speed of its execution: not the design's speed"
    )
    for remote, words in ((False, ""), (True, ", driven over the network")):
        board = loaded(name="Zynq", has_capability=lambda name, remote=remote: remote and name == "REMOTE")
        assert board.label == f"measured on Zynq{words}"


def test_fit_pace_is_twice_the_second_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a design of 1 s per start. The first start takes 100 s and the second 3.25 s.

    Twice the second start is 6.5 s, which is rounded up to a time scale of 7.
    """
    now, took = [50.0], [3.25, 100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(overlay, "pace", lambda folder, manifest, scale: Pace((1e5, 3e5), 0.4, scale, "traced"))
    board = loaded(pace=None, overruns=0)
    board.fit_pace(lambda: now.__setitem__(0, now[0] + took.pop()))
    assert took == []
    assert board.device.pace == Pace((1e5, 3e5), 0.4, 7, "traced")


# --- a frame of the simulated pipeline --------------------------------------------------------------------------------


def test_model_start_processes_the_registered_frames() -> None:
    """Check the control register: AP_START is 1, DONE 2, IDLE 4, READY 8.

    A read clears DONE and READY. Reads of other registers clear nothing.
    """
    model = StreamingModel({"frames": 0x10})
    model.write(0x10, 2)
    assert (model.read(0x00), model.running) == (4, False)
    model.write(0x00, 1)
    assert (model.read(0x00), model.read(0x10), model.running, model.starts) == (1, 2, True, 1)
    model.frame_done()
    assert (model.read(0x00), model.running) == (1, True)
    model.frame_done()
    assert (model.values[0x00], model.running) == (2 | 4 | 8, False)
    assert [model.read(0x00) for _ in range(2)] == [2 | 4 | 8, 4]
    model.values[0x10] = 2 | 8
    assert [model.read(0x10) for _ in range(2)] == [2 | 8, 2 | 8]


def test_model_with_auto_restart_starts_again() -> None:
    """Check bit 0x80. A write of AP_START during a run changes only this bit."""
    model = StreamingModel({"frames": 0x10})
    model.write(0x10, 1)
    model.write(0x00, 0x81)
    for starts in (1, 2, 3):
        assert (model.read(0x00), model.running, model.starts) == (0x81, True, starts)
        model.frame_done()
    model.write(0x00, 1)
    assert (model.read(0x00), model.starts) == (1, 4)
    model.frame_done()
    assert (model.read(0x00), model.running) == (2 | 4 | 8, False)
    model.write(0x00, 1)
    model.stalled = True
    assert not model.running


def fabric(run: Callable[..., Any]) -> StreamingFabric:
    """Return a fabric without DDR. ``run`` replaces the function of its library; an address is its own content."""
    made = StreamingFabric.__new__(StreamingFabric)
    made._manifest = of_style(StreamingManifest, parse_manifest(pipelines.manifest(), "manifest.json"))
    made._board = SimpleNamespace(memory=SimpleNamespace(to_buffer_end=lambda address: address))
    made._library = SimpleNamespace(run=run)  # type: ignore[assignment]
    return made


REGISTERS = {"weights_centre_1": 0x10, "weights_centre_2": 0x2}
BYTES = 3 * pipelines.PIXELS  # 756; in whole beats of 8 bytes 760


@pytest.mark.parametrize("size", [BYTES, 760])
def test_fabric_frame_excludes_padding_of_the_last_beat(size: int) -> None:
    """Check that the last beat's padding is cut off, and that the output is padded to whole beats.

    The address of the weights has two halves, each in a register.
    """
    told: list[Any] = []

    def run(images: list[int], frames: Any) -> Any:
        told.append((images, frames.shape))
        return [np.full(4030, 5, np.uint8)]

    sent, trouble = fabric(run)._run(REGISTERS, bytes(size))
    assert told == [([0x2_0000_0010], (1, BYTES))]
    assert (sent, trouble) == (b"\5" * 4030 + b"\0" * 2, "")


@pytest.mark.parametrize("size", [0, BYTES - 1, BYTES + 1, 759, 761])
def test_fabric_packet_of_another_length_is_reported(size: int) -> None:
    sentence = f"a packet has {size} bytes, but a frame has 756"
    assert fabric(lambda *_: 1 / 0)._run(REGISTERS, bytes(size)) == (b"", sentence)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (BusError(0x10), "no buffer answers at 0x10"),
        (StoppedError("a word was read that was not there", "centre"), "a word was read that was not there"),
        (RuntimeError("no more of it"), "RuntimeError: no more of it"),
    ],
)
def test_fabric_error_of_a_frame_is_reported(error: Exception, sentence: str) -> None:
    def run(*_: Any) -> None:
        raise error

    assert fabric(run)._run(REGISTERS, bytes(BYTES)) == (b"", sentence)
