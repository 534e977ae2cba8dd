"""What both benches do inside the simulator: ports of one variant, its clock and reset, waiting, and pauses."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge

VARIANTS = os.environ.get("AXI_VARIANTS", "").split()
PAUSED = os.environ.get("AXI_PAUSED", "").split()
"""The variants that are looked at, each with these channels that pause: one, "all", "none", or "asked": READY only
after VALID."""
PATIENCE = 6000
"""Cycles."""
PERIOD_NS = 10


class Ports:
    """The ports of one variant, by their own names. paused: the channels that pause."""

    def __init__(self, dut: Any, variant: str, paused: str) -> None:
        self.dut, self.variant, self.paused = dut, variant, paused

    def __getattr__(self, name: str) -> Any:
        return getattr(self.dut, f"{self.variant}_{name}")

    def pause(self, channels: dict[str, Any], seed: int) -> None:
        """Random pauses on those channels that pause."""
        for turn, (name, channel) in enumerate(channels.items()):
            if self.paused in ("all", name):
                channel.set_pause_generator(closed(seed + turn))

    def wires(self, bus: str, names: Iterable[str]) -> dict[str, int]:
        """What the ports of a bus are now."""
        return {name: int(getattr(self, f"{bus}{name}").value) for name in names}


async def begun(dut: Any, ports: Ports, inputs: Iterable[str]) -> None:
    """The clock runs, ``inputs`` are 0 and the reset is on."""
    for name in inputs:
        getattr(ports, name).value = 0
    dut.reset.value = 1
    cocotb.start_soon(Clock(dut.clk, PERIOD_NS, unit="ns").start())
    for _ in range(8):
        await RisingEdge(dut.clk)


async def settled(dut: Any) -> None:
    """In the middle of a cycle: what is on the wires now is taken at its end."""
    await FallingEdge(dut.clk)


async def until(dut: Any, holds: Callable[[], bool], sentence: str) -> None:
    """In the middle of the first cycle in which it holds. AssertionError with the sentence where none does."""
    for _ in range(PATIENCE):
        await settled(dut)
        if holds():
            return
    raise AssertionError(f"{sentence}, in {PATIENCE} cycles")


def each_cycle(dut: Any, look: Callable[[], None]) -> None:
    """Calls ``look`` in the middle of every cycle, until the test ends, which fails where it does."""

    async def watch() -> None:
        while True:
            await settled(dut)
            look()

    cocotb.start_soon(watch())


def closed(seed: int) -> Iterator[bool]:
    """Of each cycle whether a channel pauses: now and then for long, so that what is before it fills up."""
    dice = random.Random(seed)
    while True:
        yield from [True] * dice.choice([0, 1, 1, 2, 3, 40])
        yield from [False] * dice.randrange(1, 12)
