"""What the host has of each style, by the name that a manifest gives; nothing else in ``host`` asks which it is."""

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
"""A design's test frame uint8 [channels, height, width], and the golden model's maps for it."""


@dataclass(frozen=True)
class HostStyle:
    """ip: the module whose classes pynq takes as drivers of the IP. driver: under pynq. execution: by the simulation
    library alone, of a folder, its manifest, its library and as many batches in flight. fabric: in the simulated
    board. check_frame: of a manifest and its folder."""

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
