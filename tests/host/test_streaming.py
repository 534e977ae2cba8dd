"""Frames through pynq's own DMA driver, with a time limit that the driver lacks."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boards.errors import AcceleratorError, RangeError
from host.contract.manifest import read_manifest
from host.streaming.dma import StreamChannel
from tests.support.errors import raises
from tests.support.host.hardware import streaming_description

pynq = pytest.importorskip("pynq", reason="these tests run the real pynq: pip install -e .[board], see .ci/host")
pytestmark = pytest.mark.pynq


def relu(packet: bytes) -> bytes | None:
    """Return the packet of the simulated accelerator, ReLU of its input.

    A first value of 99 stalls it, and one of 98 makes the packet twice as long.
    """
    values = np.frombuffer(packet, np.int16)
    if values[0] == 99:
        return None
    return np.maximum(values, 0).tobytes() * (2 if values[0] == 98 else 1)


@pytest.fixture
def channel(tiny: Path, tmp_path: Path) -> Iterator[StreamChannel]:
    from host.contract.simulation_library import find_library
    from host.simulated.device import SimulatedBoard

    (tmp_path / "stream.hwh").write_text(streaming_description())
    (tmp_path / "stream.bit").write_bytes(b"")
    board = SimulatedBoard(read_manifest(tiny), find_library(tiny, None), stream=relu)
    overlay = pynq.Overlay(str(tmp_path / "stream.bit"), device=board)
    assert type(overlay.axi_dma_0) is pynq.lib.dma.DMA
    yield StreamChannel(overlay.axi_dma_0, timeout_s=3.0)
    board.close()


def buffers(count: int = 256) -> tuple[Any, Any]:
    sent, received = (pynq.allocate(count, np.int16, cacheable=1) for _ in range(2))
    sent[:] = np.arange(count) - count // 2
    received[:] = 7
    return sent, received


def test_exchange_of_50_frames_equals_the_expected_values(channel: StreamChannel) -> None:
    sent, received = buffers()
    for step in range(50):
        sent[1:] = np.arange(255) - 100 + step
        assert channel.exchange(sent, received) == 512
        assert np.array_equal(received, np.maximum(sent, 0))


def test_exchange_without_an_end_times_out_with_the_register_state(channel: StreamChannel) -> None:
    sent, received = buffers()
    sent[0] = 99
    with raises(AcceleratorError, remedy="call reset()") as caught:
        channel.exchange(sent, received)
    assert caught.value.reason.startswith("the stream did not end within 3 s: 512 bytes with TLAST")
    assert re.fullmatch(r"MM2S .*idle.*, S2MM .*busy.*", caught.value.state)
    channel.reset()
    sent[0] = 1
    channel.exchange(sent, received)
    assert np.array_equal(received, np.maximum(sent, 0))


class Stopped:
    """A clock of a process that is suspended from the first reading of the clock until a channel is idle."""

    def __init__(self) -> None:
        self.now, self.asked = 0.0, False

    def perf_counter(self) -> float:
        self.asked = True
        return self.now

    def look(self, idle: Callable[[Any], bool], channel: Any) -> bool:
        """Return whether the channel is idle, as it was before the process was suspended."""
        if not self.asked or self.now:
            return idle(channel)
        while not idle(channel):
            time.sleep(0.001)
        self.now = 60.0
        return False

    sleep = staticmethod(time.sleep)


def test_exchange_accepts_an_end_found_after_the_time_limit(
    channel: StreamChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, kind = Stopped(), type(channel.dma.recvchannel)
    idle = kind.idle.fget
    monkeypatch.setattr("host.streaming.dma.time", clock)
    monkeypatch.setattr(kind, "idle", property(lambda one: clock.look(idle, one)))
    sent, received = buffers()
    assert channel.exchange(sent, received) == 512
    assert clock.now == 60
    assert np.array_equal(received, np.maximum(sent, 0))


def test_exchange_of_a_too_long_packet_raises_accelerator_error(channel: StreamChannel) -> None:
    sent, received = buffers()
    sent[0] = 98
    with raises(AcceleratorError, reason="the DMA reports an error", remedy="call reset()") as caught:
        channel.exchange(sent, received)
    assert "internal error" in caught.value.state
    channel.reset()
    sent[0] = 0
    assert channel.exchange(sent, received) == 512


def test_exchange_beyond_the_length_register_is_refused(channel: StreamChannel) -> None:
    channel.dma.buffer_max_size = 511
    with raises(RangeError, what="the number of bytes of a packet", got=512, low=1, high=511):
        channel.exchange(*buffers())


def test_exchange_of_the_largest_packet_checks_both_buffers(channel: StreamChannel) -> None:
    sent, received = buffers()
    channel.dma.buffer_max_size = 512
    assert channel.exchange(sent, received) == 512
    channel.dma.buffer_max_size = 511
    few = pynq.allocate(8, np.int16, cacheable=1)
    with raises(RangeError, what="the number of bytes of a packet", got=512, low=1, high=511):
        channel.exchange(few, received)


def test_exchange_returns_the_number_of_received_bytes(channel: StreamChannel) -> None:
    _, received = buffers()
    few = pynq.allocate(8, np.int16, cacheable=1)
    few[:] = 5
    assert channel.exchange(few, received) == 16
    assert (received[:8] == 5).all()
