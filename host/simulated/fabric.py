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
    """The board as the accelerator sees it.

    Attributes:
        memory: The board's DDR.
        faults: Faults to inject.
        trouble: Why the accelerator stopped, for the host to report, or "".
    """

    memory: SimulatedDdr
    faults: Faults
    trouble: str

    def corrupt(self, registers: Mapping[str, int], start: int) -> None:
        """Corrupt the words of DDR that the faults name for this start."""

    def keep_pace(self, stopped: threading.Event, passes: range, begin: float) -> bool:
        """Wait until the passes would have ended on the board.

        Return False if the accelerator was stopped meanwhile.
        """


class SimulatedFabric(Protocol):
    """A style's accelerator. ``stream`` processes the packets of an AXI DMA. A style without a DMA has none."""

    @property
    def stream(self) -> Stream | None: ...

    def slave(self, offsets: Mapping[str, int], irq: Callable[[bool], None]) -> Slave:
        """Return new registers, as after loading a bitstream.

        Args:
            offsets: Register offsets by name.
            irq: Sets the level of the interrupt line.
        """


def pointer(registers: Mapping[str, int], name: str) -> int:
    """Return the address whose two halves are in the registers ``name_1`` and ``name_2``."""
    return registers[f"{name}_1"] | registers[f"{name}_2"] << 32
