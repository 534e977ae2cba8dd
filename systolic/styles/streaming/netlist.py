"""The pipeline while it is wired: functions, streams and constants, one block after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from cnn.datatype import DataType
from cnn.quantized import Requantising
from hls_templates.streaming.sources import Connection, Constant, Element, Instance, Packet, Tap, WeightPort, Wire
from scheduler.hardware.primitives import LEAST_FIFO_DEPTH
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from systolic.styles.streaming import constants as c

LEAST_BEAT = 8
"""Bytes of a beat of AXI DMA: what a high-performance port takes, and the least."""

RAM = {"auto": "RAM_AUTO", "lutram": "RAM_LUTRAM", "bram": "RAM_BRAM", "uram": "RAM_URAM"}
"""A fold's memory → enum of ram.h."""


def map_wire(graph: g.StreamGraph, port: g.Port) -> str:
    """The stream that carries output ``port``."""
    block = graph.blocks[port.block]
    return f"from_{block.name}" + (f"_{port.output}" if len(block.outputs) > 1 else "")


def carrier(datatype: DataType, lanes: int) -> Element:
    """How a value travels: BIPOLAR as one unsigned bit."""
    return Element(datatype.bits, datatype.signed and datatype.few != "BIPOLAR", lanes)


@dataclass(frozen=True)
class Site:
    """Where a block is put: taken, the streams before its inputs, behind all converters; given, those it writes."""

    index: int
    block: g.Block
    fold: g.Fold
    taken: tuple[str, ...]
    given: tuple[str, ...]

    @property
    def ends(self) -> list[tuple[str, str]]:
        """Of a block with one input and one output."""
        return [("in", self.taken[0]), ("out", self.given[0])]


@dataclass
class Netlist:
    """Grows block by block, in the graph's order. sinks: block → the stream that it takes."""

    folding: g.StreamingFolding
    depths: Mapping[str, int]
    dsp: str
    instances: list[Instance] = field(default_factory=list)
    wires: dict[str, Wire] = field(default_factory=dict)
    constants: list[Constant] = field(default_factory=list)
    layers: list[int] = field(default_factory=list)
    sinks: dict[int, str] = field(default_factory=dict)
    images: list[npt.NDArray[np.uint8]] = field(default_factory=list)
    packet_in: Packet = field(default_factory=lambda: Packet(1, LEAST_BEAT))
    packet_out: Packet = field(default_factory=lambda: Packet(1, LEAST_BEAT))

    @property
    def graph(self) -> g.StreamGraph:
        return self.folding.graph

    # --- what grows ------------------------------------------------------------------------------------------

    def wire(self, name: str, element: Element) -> str:
        self.wires[name] = Wire(name, element, max(LEAST_FIFO_DEPTH, self.depths.get(name, LEAST_FIFO_DEPTH)))
        return name

    def add(
        self,
        name: str,
        function: str,
        header: str,
        arguments: tuple[object, ...],
        ports: list[tuple[str, str]],
        *reasons: str,
        constants: tuple[str, ...] = (),
        weight_ports: tuple[WeightPort, ...] = (),
        per_frame: bool = True,
        storage: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.instances.append(
            Instance(
                name=name,
                function=function,
                header=header,
                arguments=tuple(_argument(one) for one in arguments),
                ports=tuple(Connection(*port) for port in ports),
                reasons=reasons,
                constants=constants,
                weight_ports=weight_ports,
                per_frame=per_frame,
                storage=storage,
            )
        )

    def activation(self, at: Site, of: Requantising | None, channels: int) -> str:
        """The constant's name."""
        name = f"{at.block.name}_activation"
        functor = c.activation(of, at.block.outputs[0].datatype, at.fold.pe, channels)
        self.constants.append(functor.constant(name, f"{at.block.name}: what a sum becomes"))
        return name

    def tap(self, node: int, stream: str) -> None:
        """The integers of ``node`` leave the function that was added last through ``stream``."""
        self.instances[-1] = replace(self.instances[-1], taps=(Tap(len(self.layers), stream),))
        self.layers.append(node)

    # --- what a block reads ----------------------------------------------------------------------------------

    def datatype_in(self, at: Site) -> DataType:
        return self.graph.type_of(at.block.inputs[0]).datatype

    def map_in(self, at: Site) -> tuple[int, int, int]:
        """Channels (padding included), height and width of the map that the block reads."""
        shape = lanes.in_shape(self.graph, at.index)
        return lanes.in_values(self.graph, at.index, at.fold), shape.height, shape.width


def _argument(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
