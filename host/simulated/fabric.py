"""Interfaces between the simulated board and the accelerator in its fabric."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from host.simulated.ddr import SimulatedDdr
from host.simulated.dma import Stream
from host.simulated.faults import Faults
from host.simulated.registers import Slave


class FabricBoard(Protocol):
    """The interface of the simulated board that a simulated accelerator uses.

    Attributes:
        memory: The board's DDR.
        faults: Faults to inject.
        stop_reason: Why the accelerator stopped, for the host to report, or "".
    """

    memory: SimulatedDdr
    faults: Faults
    stop_reason: str

    def corrupt(self, registers: Mapping[str, int], start: int) -> None:
        """Invert the words of DDR that injected faults name for this start of the accelerator."""

    def wait_board_time(self, stopped: threading.Event, passes: range, begin: float) -> bool:
        """Wait for the time that the given engine instructions (passes) would take on the board; return False if
        stopped meanwhile."""


class SimulatedFabric(Protocol):
    """The interface of a style's simulated accelerator. ``stream`` processes the packets of an AXI DMA, if the style
    has one."""

    @property
    def stream(self) -> Stream | None: ...

    def slave(self, offsets: Mapping[str, int], irq: Callable[[bool], None]) -> Slave:
        """Return a new model of the accelerator's registers, as after loading a bitstream.

        Args:
            offsets: Register offsets by name.
            irq: Sets the level of the interrupt line.
        """


def pointer(registers: Mapping[str, int], name: str) -> int:
    """Return the 64-bit address whose halves are in the registers ``name_1`` (low) and ``name_2`` (high)."""
    return registers[f"{name}_1"] | registers[f"{name}_2"] << 32
