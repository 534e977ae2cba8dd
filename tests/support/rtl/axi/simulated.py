"""Helpers of both benches inside the simulator: the ports of a variant, clock and reset, waiting, and pauses."""

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
"""The simulated variants, and the channels that pause: one channel, "all" or "none".

With "asked", READY is given only after VALID.
"""
PATIENCE = 6000
"""The most cycles to wait for an event."""
PERIOD_NS = 10


class Ports:
    """The ports of one variant, by their own names. ``paused`` selects the channels that pause."""

    def __init__(self, dut: Any, variant: str, paused: str) -> None:
        self.dut, self.variant, self.paused = dut, variant, paused

    def __getattr__(self, name: str) -> Any:
        return getattr(self.dut, f"{self.variant}_{name}")

    def pause(self, channels: dict[str, Any], seed: int) -> None:
        """Add random pauses to the selected ones of these channels."""
        for turn, (name, channel) in enumerate(channels.items()):
            if self.paused in ("all", name):
                channel.set_pause_generator(closed(seed + turn))

    def wires(self, bus: str, names: Iterable[str]) -> dict[str, int]:
        """Return the current values of a bus."""
        return {name: int(getattr(self, f"{bus}{name}").value) for name in names}


async def begun(dut: Any, ports: Ports, inputs: Iterable[str]) -> None:
    """Start the clock with the inputs at 0 and the reset on."""
    for name in inputs:
        getattr(ports, name).value = 0
    dut.reset.value = 1
    cocotb.start_soon(Clock(dut.clk, PERIOD_NS, unit="ns").start())
    for _ in range(8):
        await RisingEdge(dut.clk)


async def settled(dut: Any) -> None:
    """Wait for the middle of a cycle, at which the values of its end are settled."""
    await FallingEdge(dut.clk)


async def until(dut: Any, holds: Callable[[], bool], sentence: str) -> None:
    """Wait for the middle of the first cycle in which ``holds`` returns true.

    Raises:
        AssertionError: No cycle does. The message starts with ``sentence``.
    """
    for _ in range(PATIENCE):
        await settled(dut)
        if holds():
            return
    raise AssertionError(f"{sentence}, in {PATIENCE} cycles")


def each_cycle(dut: Any, look: Callable[[], None]) -> None:
    """Call ``look`` in the middle of every cycle until the end of the test. An exception in ``look`` fails the test."""

    async def watch() -> None:
        while True:
            await settled(dut)
            look()

    cocotb.start_soon(watch())


def closed(seed: int) -> Iterator[bool]:
    """Yield whether a channel pauses in each cycle. Some pauses are long, so that the buffers before it fill."""
    dice = random.Random(seed)
    while True:
        yield from [True] * dice.choice([0, 1, 1, 2, 3, 40])
        yield from [False] * dice.randrange(1, 12)
