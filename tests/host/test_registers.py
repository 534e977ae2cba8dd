"""Control by registers, bit by bit: answers of the simulated accelerator, and reactions of the driver."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from host.board.interrupt import Line
from host.simulated.faults import Faults, InjectedFault
from host.simulated.registers import InterruptController
from host.systolic.simulated import SystolicModel

OFFSETS = {"first": 0x10, "count": 0x18, "current": 0x20, "maps_read_0_1": 0x28, "maps_read_0_2": 0x2C}
OFFSETS |= {"program_1": 0x34, "program_2": 0x38}


class Bench:
    """An accelerator whose starts end on request, and its interrupt line at a controller."""

    def __init__(self) -> None:
        self.goes = threading.Event()
        self.starts: list[Mapping[str, int]] = []
        self.faults, self.controller = Faults(), InterruptController()
        self.levels: list[bool] = []
        self.model = SystolicModel(OFFSETS, self._run, self.faults, self._irq)

    def _irq(self, level: bool) -> None:
        self.levels.append(level)
        self.controller.line(0, level)

    def _run(self, model: SystolicModel, registers: Mapping[str, int]) -> bool:
        self.starts.append(registers)
        while not self.goes.wait(0.001):
            if model.stopped.is_set():
                return False
        return True

    def end(self) -> None:
        """End the running starts."""
        self.goes.set()
        for thread in self.model._threads:
            thread.join(60)
        self.goes.clear()


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.model.stop()


def test_control_register_is_idle_busy_done_and_idle_for_a_start(bench: Bench) -> None:
    """Check the bits of UG1399, *S_AXILITE Control Register Map*.

    AP_START is 1, DONE 2, IDLE 4, READY 8. Reading clears DONE and READY.
    """
    model = bench.model
    assert model.read(0) == 4
    model.write(0x10, 7)
    model.write(0x18, 3)
    model.write(0, 0)
    assert model.starts == 0
    model.write(0, 1)
    assert model.read(0) == 1
    model.write(0, 1)
    assert model.starts == 1
    bench.end()
    assert [(start["first"], start["count"]) for start in bench.starts] == [(7, 3)]
    assert [model.read(0), model.read(0)] == [14, 4]
    model.write(0, 1)
    bench.end()
    assert (model.starts, len(bench.starts)) == (2, 2)


def test_interrupt_is_a_level_that_a_written_status_bit_toggles(bench: Bench) -> None:
    """Check IER, which has two bits; GIER, whose first bit enables the line; ISR, whose written bits toggle."""
    model = bench.model
    for offset, value in ((0x04, 1), (0x08, 5)):
        model.write(offset, value)
        assert model.read(offset) == value
    model.write(0, 1)
    assert bench.levels == [False, False, False]
    bench.end()
    assert bench.levels[-1] is True
    assert model.read(0x0C) == 1
    assert [model.read(0), model.read(0)] == [14 | 1 << 9, 4 | 1 << 9]
    model.write(0x0C, 1)
    assert (model.read(0x0C), bench.levels[-1], model.read(0)) == (0, False, 4)
    model.write(0x0C, 2)
    assert (model.read(0x0C), bench.levels[-1]) == (2, True)
    model.write(0x04, 2)
    assert bench.levels[-1] is False
    model.write(0x04, 3)
    assert bench.levels[-1] is True


def test_interrupt_status_has_only_enabled_bits() -> None:
    for enabled in (0, 1, 2, 3):
        bench = Bench()
        bench.model.write(0x08, enabled)
        bench.model.write(0, 1)
        bench.end()
        assert bench.model.read(0x0C) == enabled
        assert bench.levels[-1] is False
        bench.model.stop()


@pytest.mark.parametrize(
    ("kind", "seconds", "pending"),
    [("lost interrupt", 0.0, 0), ("late interrupt", 0.0, 1), ("double interrupt", 0.0, 1)],
)
def test_injected_interrupt_fault_loses_delays_or_doubles_it(
    bench: Bench, kind: str, seconds: float, pending: int
) -> None:
    bench.faults.inject(InjectedFault(kind, at=1, seconds=seconds))
    bench.model.write(0x04, 1)
    bench.model.write(0x08, 1)
    for number in range(3):
        before = len(bench.levels)
        bench.model.write(0, 1)
        bench.end()
        raised = bench.levels[before:].count(True)
        assert raised == ({"lost interrupt": 0, "late interrupt": 1, "double interrupt": 2}[kind] if number == 1 else 1)
        assert bench.model.read(0x0C) == (pending if number == 1 else 1)
        bench.model.write(0x0C, bench.model.read(0x0C))
        bench.model.read(0)


def test_started_accelerator_reaches_only_its_program_and_maps(bench: Bench) -> None:
    """Check that a start reaches its program, and every address from the maps' base on, also above 4 GB."""
    model = bench.model
    for name, value in (("maps_read_0_1", 0x1000), ("maps_read_0_2", 1), ("program_1", 0x500), ("program_2", 0)):
        model.write(OFFSETS[name], value)
    assert not model.reaches(0x500, 16)
    model.write(0, 1)
    assert [model.reaches(*place) for place in ((0x4F0, 16), (0x4F1, 16), (0x500, 1), (0x501, 64))] == [
        False,
        True,
        True,
        False,
    ]
    maps = 0x1_0000_1000
    assert [model.reaches(address, 8) for address in (maps - 8, maps - 7, maps, maps + (1 << 20))] == [
        False,
        True,
        True,
        True,
    ]
    model.show("current", 5)
    assert (model.read(0x20), model.named()["current"]) == (5, 5)
    bench.end()
    assert not model.reaches(0x500, 16)
    model.write(0, 1)
    model.stop()
    assert not model.reaches(0x500, 16)
    assert model.read(0) == 1  # it was stopped, and is not done


# --- the driver ------------------------------------------------------------------------------------------------------


@pytest.fixture
def ip(bench: Bench) -> Any:
    """Return the driver on the registers of the model, with an interrupt."""
    from host.systolic.ip import SystolicIP

    made: Any = SystolicIP.__new__(SystolicIP)
    made._offsets, made._values, made._started, made._seconds = OFFSETS, {}, (0, 0), {}
    made.missed_interrupts, made.device = 0, SimpleNamespace(stop_reason="")
    made.read, made.write = bench.model.read, bench.model.write
    made.line = None
    return made


def later(bench: Bench, after: Callable[[], bool]) -> threading.Thread:
    """End the running start as soon as a condition holds."""

    def wait() -> None:
        while not after():
            time.sleep(0.001)
        bench.end()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_poll_ends_when_the_accelerator_is_idle(bench: Bench, ip: Any) -> None:
    ip.start(4, 2)
    assert (ip.idle, ip.may_write, bench.model.starts) == (False, True, 1)
    assert not ip.poll(0.01)
    assert ip._seconds == {}
    thread = later(bench, lambda: True)
    assert ip.poll(60)
    thread.join()
    assert (ip.idle, ip.may_write) == (True, False)
    assert bench.starts == [{**dict.fromkeys(OFFSETS, 0), "first": 4, "count": 2}]
    assert list(ip._seconds) == [(4, 2)]
    ip._seconds[4, 2] = 0.01
    bench.goes.set()
    ip.start(4, 2)
    assert ip.poll(60)
    assert ip._seconds[4, 2] == 0.005  # it slept through the end, and sleeps half as long the next time


def test_poll_and_interrupted_end_at_once_after_a_device_error(bench: Bench, ip: Any) -> None:
    ip.start(0, 1)
    ip.line = Line(bench.controller, Uio(bench.controller), 0)
    ip.device.stop_reason = "a decode error"
    assert ip.cannot_finish
    assert not ip.poll(3600)
    assert not asyncio.run(ip.interrupted(3600))


def test_state_names_the_registers_and_their_bits(bench: Bench, ip: Any) -> None:
    bench.model.write(0x04, 1)
    assert ip.state() == "CTRL 0x04 (AP_IDLE), first 0, count 0, current 0, IP_IER 0x0, IP_ISR 0x0"
    ip.enable_interrupt()
    ip.start(3, 9)
    bench.model.show("current", 6)
    assert ip.state() == "CTRL 0x01 (AP_START), first 3, count 9, current 6, IP_IER 0x1, IP_ISR 0x0"
    assert ip.current_pass == 6
    bench.end()
    assert ip.state().startswith("CTRL 0x20e (AP_DONE AP_IDLE AP_READY), first 3")
    assert ip.state().endswith("IP_IER 0x1, IP_ISR 0x1")
    bench.model.values[0] = 0x80
    assert ip.state().startswith("CTRL 0x280 (AUTO_RESTART)")
    bench.model.values[0], bench.model.values[0x0C] = 0, 0
    assert ip.state().startswith("CTRL 0x00 (no bit set)")


def test_put_pointer_writes_only_changed_registers(bench: Bench, ip: Any) -> None:
    written: list[tuple[int, int]] = []

    def write(offset: int, value: int) -> None:
        written.append((offset, value))
        bench.model.write(offset, value)

    ip.write = write
    for address in (0x1_2345_6789, 0x1_2345_6789, 0x9_2345_6789):
        ip.put_pointer("program", address)
    assert written == [(0x34, 0x23456789), (0x38, 1), (0x38, 9)]
    ip.put(0x10, -1)
    assert written[-1] == (0x10, 0xFFFFFFFF)


class Uio:
    """A replacement for pynq's controller of the UIO device of an interrupt line."""

    def __init__(self, controller: InterruptController) -> None:
        self.controller = controller

    def add_event(self, event: Any, number: int) -> None:
        """Add the event to the controller, as pynq's controller does."""
        self.controller.add_event(event, number)


@pytest.mark.parametrize("lost", [False, True])
def test_interrupted_acknowledges_an_interrupt_and_counts_a_lost_one(bench: Bench, ip: Any, lost: bool) -> None:
    """Check that a lost interrupt is counted as missed, and that the driver reads the registers instead."""
    if lost:
        bench.faults.inject(InjectedFault("lost interrupt", at=0))
    ip.enable_interrupt()

    async def frames() -> list[bool]:
        ip.line = Line(bench.controller, Uio(bench.controller), 0)
        ended = []
        for _ in range(2):
            ip.start(0, 1)
            thread = later(bench, lambda: bool(bench.controller.values[0x08]))
            ended.append(await ip.interrupted(60))
            thread.join()
            assert bench.model.read(0x0C) == 0
            assert bench.controller.values[0x00] & 1 == 0
        return ended

    assert asyncio.run(frames()) == [True, True]
    assert ip.missed_interrupts == int(lost)
    assert bench.controller.values[0x1C] == 3


def test_interrupted_without_an_interrupt_ends_at_the_time_limit(bench: Bench, ip: Any) -> None:
    ip.enable_interrupt()

    async def frame() -> bool:
        ip.line = Line(bench.controller, Uio(bench.controller), 0)
        ip.start(0, 1)
        return bool(await ip.interrupted(0.12))

    assert not asyncio.run(frame())
    assert ip.missed_interrupts == 0
