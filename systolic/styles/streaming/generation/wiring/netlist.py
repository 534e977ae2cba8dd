"""The netlist of a pipeline's C++: its functions, streams and constants, which are added block by block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from cnn.datatype import DataType
from cnn.requantise import Requantising
from cnn.tables import Table
from hls_templates.streaming.sources import Connection, Constant, Element, Instance, Packet, Tap, WeightPort, Wire
from scheduler.hardware.primitives import MIN_FIFO_DEPTH
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from systolic.styles.streaming.generation.wiring import constants as c

MIN_BEAT = 8
"""The least bytes per beat of the AXI DMA that a design uses: the width of a high-performance port."""

RAM = {"auto": "RAM_AUTO", "lutram": "RAM_LUTRAM", "bram": "RAM_BRAM", "uram": "RAM_URAM"}
"""The enumerator of ram.h for each kind of RAM of a fold."""

Ends = list[tuple[str, str]]
"""Connections as pairs of a function's port and a stream of the pipeline."""


def map_wire(graph: g.StreamGraph, port: g.Port) -> str:
    """Return the name of the stream that a block's output ``port`` writes."""
    block = graph.blocks[port.block]
    return f"from_{block.name}" + (f"_{port.output}" if len(block.outputs) > 1 else "")


def carrier(datatype: DataType, lanes: int) -> Element:
    """Return the word type of a stream with ``lanes`` values per word. A BIPOLAR value is one unsigned bit."""
    return Element(datatype.bits, datatype.signed and datatype.few != "BIPOLAR", lanes)


@dataclass(frozen=True)
class Site:
    """A block of the pipeline with its fold and the names of the streams that it reads and writes.

    Attributes:
        index: The index of the block in the graph.
        block: The block.
        fold: The fold of the block.
        reads: The stream of each input, after all converters.
        writes: The stream of each output.
    """

    index: int
    block: g.Block
    fold: g.Fold
    reads: tuple[str, ...]
    writes: tuple[str, ...]

    @property
    def ends(self) -> Ends:
        """The connections (port, stream) of a block with one input and one output."""
        return [("in", self.reads[0]), ("out", self.writes[0])]


@dataclass(frozen=True)
class Call:
    """The C++ function of a block in hls_templates/streaming, with its header and its template arguments."""

    function: str
    header: str
    arguments: tuple[object, ...]


@dataclass(frozen=True)
class Store:
    """The C++ constants and DDR weight ports that a function of the pipeline gets.

    Attributes:
        constants: The names of the constants that the function gets.
        primitives: Pairs of a constant and the primitive that the folding chose for it.
        weight_ports: The ports for weights in DDR.
        per_frame: Whether the function is called once per frame. Otherwise it is called once per start, so that it can
            keep weights from frame to frame.
    """

    constants: tuple[str, ...] = ()
    primitives: tuple[tuple[str, str], ...] = ()
    weight_ports: tuple[WeightPort, ...] = ()
    per_frame: bool = True


NOTHING = Store()


@dataclass
class Netlist:
    """The C++ of a pipeline as data; it grows block by block, in the order of the graph.

    Attributes:
        folding: The graph with its folds.
        depths: FIFO depths in words, by the name of the stream. Other streams have the least depth.
        dsp: The DSP primitive of the board: DSP48E1 or DSP48E2.
        instances: The functions.
        wires: The streams by name.
        constants: The constants.
        layers: The network's layers whose outputs a simulation records, in the order of their taps.
        sinks: The stream of each output map, by the index of its sink block.
        images: The memory image of each weight port, uint8 of shape (tiles, bytes).
        headers: The texts of the packages' headers, by file name.
        packet_in: The input packet.
        packet_out: The output packet.
    """

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
    packet_in: Packet = field(default_factory=lambda: Packet(1, MIN_BEAT))
    packet_out: Packet = field(default_factory=lambda: Packet(1, MIN_BEAT))

    @property
    def graph(self) -> g.StreamGraph:
        return self.folding.graph

    # --- additions -------------------------------------------------------------------------------------------

    def wire(self, name: str, element: Element) -> str:
        """Add a stream to the pipeline, and return its name."""
        self.wires[name] = Wire(name, element, max(MIN_FIFO_DEPTH, self.depths.get(name, MIN_FIFO_DEPTH)))
        return name

    def add(self, name: str, call: Call, ends: Ends, reason: str, store: Store = NOTHING) -> None:
        """Add a function call to the pipeline.

        Args:
            name: The name of the instance.
            call: The function with its template arguments.
            ends: The connections of its ports.
            reason: The comment at the process.
            store: The constants and weight ports of the function.
        """
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
        """Add the C++ constant of a block's activation to the pipeline, and return the constant's name.

        Args:
            site: The block.
            requantising: The activation; None if the sums themselves are the output.
            channels: The output channels, including added channels.
        """
        name = f"{site.block.name}_activation"
        out = site.block.outputs[0].datatype
        if isinstance(requantising, Table):
            functor = c.lookup(requantising, (self.datatype_in(site), out), site.fold.pe, site.fold.m)
        else:
            functor = c.activation(requantising, out, site.fold.pe, channels)
        self.constants.append(functor.constant(name, f"{site.block.name}: parameters of the activation"))
        return name

    def tap(self, node: int, stream: str) -> None:
        """Let simulations record ``stream`` as the output of layer ``node``. The function added last must write it."""
        last = self.instances[-1]
        self.instances[-1] = replace(last, taps=(*last.taps, Tap(len(self.layers), stream)))
        self.layers.append(node)

    # --- inputs of a block -----------------------------------------------------------------------------------

    def datatype_in(self, site: Site) -> DataType:
        """Return the type of the values in the first map that the block reads."""
        return self.graph.type_of(site.block.inputs[0]).datatype

    def map_in(self, site: Site) -> tuple[int, int, int]:
        """Return (channels with padding channels, height, width) of the first map that the block reads."""
        shape = lanes.in_shape(self.graph, site.index)
        return lanes.in_values(self.graph, site.index, site.fold), shape.height, shape.width


def _argument(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
