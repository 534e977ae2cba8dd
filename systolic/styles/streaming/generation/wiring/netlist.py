"""The pipeline while it is wired: functions, streams and constants, one block after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from cnn.datatype import DataType
from cnn.requantise import Requantising
from cnn.tables import Table
from hls_templates.streaming.sources import Connection, Constant, Element, Instance, Packet, Tap, WeightPort, Wire
from scheduler.hardware.primitives import LEAST_FIFO_DEPTH
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from systolic.styles.streaming.generation.wiring import constants as c

LEAST_BEAT = 8
"""Bytes of a beat of AXI DMA: what a high-performance port takes, and the least."""

RAM = {"auto": "RAM_AUTO", "lutram": "RAM_LUTRAM", "bram": "RAM_BRAM", "uram": "RAM_URAM"}
"""A fold's memory → enum of ram.h."""

Ends = list[tuple[str, str]]
"""(port of a function, stream of the pipeline)."""


def map_wire(graph: g.StreamGraph, port: g.Port) -> str:
    """The stream that carries output ``port``."""
    block = graph.blocks[port.block]
    return f"from_{block.name}" + (f"_{port.output}" if len(block.outputs) > 1 else "")


def carrier(datatype: DataType, lanes: int) -> Element:
    """How a value travels: BIPOLAR as one unsigned bit."""
    return Element(datatype.bits, datatype.signed and datatype.few != "BIPOLAR", lanes)


@dataclass(frozen=True)
class Site:
    """Where a block is put. reads: the streams before its inputs, behind all converters; writes: those it fills."""

    index: int
    block: g.Block
    fold: g.Fold
    reads: tuple[str, ...]
    writes: tuple[str, ...]

    @property
    def ends(self) -> Ends:
        """Of a block with one input and one output."""
        return [("in", self.reads[0]), ("out", self.writes[0])]


@dataclass(frozen=True)
class Call:
    """A function of hls_templates/streaming, the header that has it, and its template arguments."""

    function: str
    header: str
    arguments: tuple[object, ...]


@dataclass(frozen=True)
class Store:
    """What a function keeps besides its streams: constants by name, the primitives that the folding chose for them,
    ports of weights from DDR. per_frame: False where it is called once a start, and keeps it from frame to frame."""

    constants: tuple[str, ...] = ()
    primitives: tuple[tuple[str, str], ...] = ()
    weight_ports: tuple[WeightPort, ...] = ()
    per_frame: bool = True


NOTHING = Store()


@dataclass
class Netlist:
    """Grows block by block, in the graph's order. sinks: block → the stream that it takes. headers: of
    packages, name → text."""

    folding: g.StreamingFolding
    depths: Mapping[str, int]
    dsp: str
    instances: list[Instance] = field(default_factory=list)
    wires: dict[str, Wire] = field(default_factory=dict)
    constants: list[Constant] = field(default_factory=list)
    layers: list[int] = field(default_factory=list)
    sinks: dict[int, str] = field(default_factory=dict)
    images: list[npt.NDArray[np.uint8]] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    packet_in: Packet = field(default_factory=lambda: Packet(1, LEAST_BEAT))
    packet_out: Packet = field(default_factory=lambda: Packet(1, LEAST_BEAT))

    @property
    def graph(self) -> g.StreamGraph:
        return self.folding.graph

    # --- what grows ------------------------------------------------------------------------------------------

    def wire(self, name: str, element: Element) -> str:
        """A new stream; its name."""
        self.wires[name] = Wire(name, element, max(LEAST_FIFO_DEPTH, self.depths.get(name, LEAST_FIFO_DEPTH)))
        return name

    def add(self, name: str, call: Call, ends: Ends, reason: str, store: Store = NOTHING) -> None:
        """An instance of a function between streams."""
        self.instances.append(
            Instance(
                name=name,
                function=call.function,
                header=call.header,
                arguments=tuple(_argument(value) for value in call.arguments),
                ports=tuple(Connection(*end) for end in ends),
                reasons=(reason,),
                constants=store.constants,
                per_frame=store.per_frame,
                storage=store.primitives,
                weight_ports=store.weight_ports,
            )
        )

    def activation(self, site: Site, requantising: Requantising | Table | None, channels: int) -> str:
        """A new constant; its name."""
        name = f"{site.block.name}_activation"
        out = site.block.outputs[0].datatype
        if isinstance(requantising, Table):
            functor = c.lookup(requantising, (self.datatype_in(site), out), site.fold.pe, site.fold.m)
        else:
            functor = c.activation(requantising, out, site.fold.pe, channels)
        self.constants.append(functor.constant(name, f"{site.block.name}: what a sum becomes"))
        return name

    def tap(self, node: int, stream: str) -> None:
        """The integers of ``node`` leave the function that was added last through ``stream``."""
        last = self.instances[-1]
        self.instances[-1] = replace(last, taps=(*last.taps, Tap(len(self.layers), stream)))
        self.layers.append(node)

    # --- what a block reads ----------------------------------------------------------------------------------

    def datatype_in(self, site: Site) -> DataType:
        """Of the first map that the block reads."""
        return self.graph.type_of(site.block.inputs[0]).datatype

    def map_in(self, site: Site) -> tuple[int, int, int]:
        """Channels (padding included), height and width of the map that the block reads."""
        shape = lanes.in_shape(self.graph, site.index)
        return lanes.in_values(self.graph, site.index, site.fold), shape.height, shape.width


def _argument(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
