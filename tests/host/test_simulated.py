"""The simulated board behaves as a real board does when a program makes mistakes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from host.contract.manifest import read_manifest
from host.contract.simulation_library import find_library
from host.simulated.ddr import BusError
from tests.support.errors import raises
from tests.support.host.hardware import Open

pynq = pytest.importorskip("pynq", reason="these tests run the real pynq: pip install -e .[board], see .ci/host")
pytestmark = pytest.mark.pynq

CTRL, GIER, IER, ISR = 0x00, 0x04, 0x08, 0x0C


@pytest.fixture
def board(tiny: Path, tmp_path: Path) -> Iterator[Any]:
    """Yield a simulated board with a bitstream and 1 MiB of DDR."""
    from host.simulated.device import SimulatedBoard

    (tmp_path / "design.hwh").write_text(next(tiny.glob("**/*.hwh")).read_text("utf-8"))
    (tmp_path / "design.bit").write_bytes(b"")
    made = SimulatedBoard(read_manifest(tiny), find_library(tiny, None), ddr_bytes=1 << 20)
    made.overlay = pynq.Overlay(str(tmp_path / "design.bit"), device=made)
    yield made
    made.close()


def test_cached_buffer_reaches_ddr_only_by_a_flush(board: Any) -> None:
    one = pynq.allocate((64,), np.uint8, cacheable=1, target=board)
    assert set(np.asarray(one)) == {0xA5}
    assert set(board.ddr(one.device_address, 64)) == {0x5A}, "nothing may rely on zeros, in either copy"
    one[:] = 3
    assert set(board.ddr(one.device_address, 64)) == {0x5A}
    one.flush()
    assert set(board.ddr(one.device_address, 64)) == {3}
    board.ddr(one.device_address, 64)[:] = 4
    assert set(np.asarray(one)) == {3}
    one.invalidate()
    assert set(np.asarray(one)) == {4}


def test_uncached_buffer_writes_ddr_directly(board: Any) -> None:
    one = pynq.allocate((64,), np.uint8, cacheable=0, target=board)
    one[:] = 3
    assert set(board.ddr(one.device_address, 64)) == {3}


def test_simulated_ddr_refuses_allocations_when_full_and_reuses_freed_memory(board: Any) -> None:
    first = pynq.allocate((1 << 19,), np.uint8, cacheable=1, target=board)
    at = first.device_address
    second = pynq.allocate((1 << 19,), np.uint8, cacheable=1, target=board)
    assert second.device_address - at == 1 << 19
    with pytest.raises(RuntimeError, match="BO allocation failed: 1 bytes of contiguous memory are not free"):
        pynq.allocate((1,), np.uint8, cacheable=1, target=board)
    del first
    assert board.allocations == 1
    assert pynq.allocate((1,), np.uint8, cacheable=1, target=board).device_address == at
    with raises(BusError, address=second.device_address + (1 << 19), subject="buffer"):
        board.ddr(second.device_address, (1 << 19) + 1)


def test_interrupt_status_of_the_simulated_board_toggles_on_write(board: Any) -> None:
    ip = board.overlay.systolic_top_0
    outside = int(ip.mmio.base_addr) + (1 << 20)
    with raises(BusError, address=outside, subject="slave"):
        pynq.MMIO(outside, 16).read(0)
    ip.write(GIER, 1)
    ip.write(IER, 1)
    ip.write(CTRL, 1)  # all pointers are 0, where nothing answers: it does not end
    assert ip.read(CTRL) & 1
    until = time.perf_counter() + 60
    while not board.stop_reason and time.perf_counter() < until:
        time.sleep(0.001)
    assert "no buffer answers at 0x0" in board.stop_reason
    ip.write(ISR, 1)
    assert ip.read(ISR) == 1, "a bit that is not set is set by writing it"
    ip.write(ISR, 1)
    assert ip.read(ISR) == 0


def test_accelerator_buffers_are_cached(tiny: Path, accelerator: Open) -> None:
    yolo = accelerator(tiny)
    for one in (yolo.buffers.inner, yolo.buffers.program, *yolo.buffers.weights, yolo.buffers.batches[0].input):
        before = yolo.device.ddr(one.device_address, 1)[0]
        one[0] = before ^ 0xFF
        assert yolo.device.ddr(one.device_address, 1)[0] == before
