"""What stands in the simulated board's fabric for the accelerator, and what it asks of its board."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from host.simulated.ddr import SimulatedDdr
from host.simulated.dma import Stream
from host.simulated.faults import Faults
from host.simulated.registers import Slave


class FabricBoard(Protocol):
    """The board around the accelerator. trouble: what stopped it, for the host to tell."""

    memory: SimulatedDdr
    faults: Faults
    trouble: str

    def corrupt(self, registers: Mapping[str, int], start: int) -> None:
        """Spoils the words of DDR that the faults name for this start."""

    def keep_pace(self, stopped: threading.Event, passes: range, begin: float) -> bool:
        """Waits until so many passes would have taken their time; False where it was stopped meanwhile."""


class SimulatedFabric(Protocol):
    """A style's accelerator. stream: where an AXI DMA sends its packets, or None."""

    @property
    def stream(self) -> Stream | None: ...

    def slave(self, offsets: Mapping[str, int], irq: Callable[[bool], None]) -> Slave:
        """A new one, as after a bitstream: its registers by name, and its interrupt."""


def pointer(registers: Mapping[str, int], name: str) -> int:
    """Both halves of an address."""
    return registers[f"{name}_1"] | registers[f"{name}_2"] << 32
