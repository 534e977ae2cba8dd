"""The host's part of each style, by the name in the manifest. No other module of ``host`` distinguishes styles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import host.streaming.check
import host.systolic.check
from host.backend import Backend, Driver
from host.board.overlay import LoadedOverlay
from host.contract.parts import Manifest
from host.contract.tensors import Integers, Pixels
from host.simulated.fabric import FabricBoard, SimulatedFabric
from host.streaming.driver import StreamingDriver
from host.streaming.execution import StreamingExecution
from host.streaming.simulated import StreamingFabric
from host.systolic.driver import SystolicDriver
from host.systolic.execution import SystolicExecution
from host.systolic.simulated import SystolicFabric

CheckFrame: TypeAlias = tuple[Pixels, Iterator[Integers]]
"""A design's test frame, uint8 ``(channels, height, width)``, and the golden model's maps of it."""


@dataclass(frozen=True)
class HostStyle:
    """The host's implementation of one style of accelerator, systolic or streaming.

    Attributes:
        ip: Module whose classes register with pynq as drivers of the IP.
        driver: Makes the driver that runs under pynq.
        execution: Makes the backend that runs the simulation library alone, from the design's folder, its manifest, the
            library and the number of batches in flight.
        fabric: Makes the design's part of the simulated board.
        check_frame: Returns the test frame, from the manifest and the design's folder.
    """

    ip: str
    driver: Callable[[LoadedOverlay, Manifest], Driver]
    execution: Callable[[Path, Manifest, Path, int], Backend]
    fabric: Callable[[FabricBoard, Manifest, Path], SimulatedFabric]
    check_frame: Callable[[Manifest, Path], CheckFrame]


STYLES: dict[str, HostStyle] = {
    "systolic": HostStyle(
        "host.systolic.ip", SystolicDriver, SystolicExecution, SystolicFabric, host.systolic.check.check_frame
    ),
    "streaming": HostStyle(
        "host.streaming.ip", StreamingDriver, StreamingExecution, StreamingFabric, host.streaming.check.check_frame
    ),
}
