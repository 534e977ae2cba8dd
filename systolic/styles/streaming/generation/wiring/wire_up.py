"""Builds a pipeline from a folding: the functions of each block, and the streams between them.

Each stream has one writer and one reader.

block                                        functions                                module
any block                                    its function of hls_templates/streaming  moving.py, units.py
a block whose reader has another word size   and a width converter                    moving.py
a unit with decoupled or external weights    and a weight streamer                    units.py
the source and the sinks                     unpacking and packing of the DMA's beats ends.py
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from cnn.ops import MaxPool, assert_never
from hls_templates.streaming.sources import Constant, Instance, Packet, Wire
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from systolic.styles.streaming.generation.wiring import ends, moving, units
from systolic.styles.streaming.generation.wiring.netlist import Netlist, Site, carrier, map_wire


@dataclass(frozen=True, eq=False)
class Wiring:
    """The pipeline's C++ top function as data: functions, streams, constants and packets.

    Attributes:
        instances: The functions.
        wires: The streams.
        constants: The constants.
        packet_in: The input packet.
        packet_out: The output packet.
        layers: The network's layer that each tap records.
        sinks: The indices of the sink blocks, in the order of their maps in the output packet.
        images: The memory images of the m_axi ports for weights, in the order of the ports.
        headers: The texts of the packages' headers, by file name.
    """

    instances: tuple[Instance, ...]
    wires: tuple[Wire, ...]
    constants: tuple[Constant, ...]
    packet_in: Packet
    packet_out: Packet
    layers: tuple[int, ...]
    sinks: tuple[int, ...]
    images: tuple[npt.NDArray[np.uint8], ...]
    headers: Mapping[str, str] = field(default_factory=dict)


def wire_up(folding: g.StreamingFolding, depths: Mapping[str, int], dsp: str) -> Wiring:
    """Return the C++ functions and streams of a folding's pipeline.

    Args:
        folding: The graph with its folds.
        depths: FIFO depths in words, by the name of the stream. Other streams have the estimated or the least depth.
        dsp: The DSP primitive of the board: DSP48E1 or DSP48E2.

    Raises:
        UnsupportedError: An output map is BIPOLAR, which a packet cannot hold.
        DoesNotFitError: A word at the DMA is wider than its widest beat.
        ConflictError: Two packages have different headers of one name.
    """
    net = Netlist(folding, depths, dsp)
    for index in range(len(folding.graph.blocks)):
        _block(net, index)
    ends.pack_outputs(net)
    return Wiring(
        tuple(net.instances),
        tuple(net.wires.values()),
        tuple(net.constants),
        net.packet_in,
        net.packet_out,
        tuple(net.layers),
        tuple(net.sinks),
        tuple(net.images),
        net.headers,
    )


def _block(net: Netlist, index: int) -> None:
    block, fold = net.graph.blocks[index], net.folding.folds[index]
    reads = tuple(moving.input_stream(net, index, port) for port in range(len(block.inputs)))
    writes = tuple(_output(net, index, output) for output in range(len(block.outputs)))
    _make(net, Site(index, block, fold, reads, writes))
    if block.node is not None and block.node not in net.layers and not isinstance(block.op, (g.Source, g.Sink)):
        net.tap(block.node, writes[0])
    if block.second is not None:
        net.tap(block.second, writes[1])


def _make(net: Netlist, site: Site) -> None:
    """Add the functions of one block to the pipeline, without the width converters before it."""
    op = site.block.op
    match op:
        case g.Source():
            ends.source(net, site)
        case g.Sink():
            ends.sink(net, site)
        case g.MatrixVector():
            units.matrix_vector(net, site, op)
        case g.VectorVector():
            units.vector_vector(net, site, op)
        case g.Activate():
            units.activate(net, site, op)
        case g.GlobalPool():
            units.global_pool(net, site, op)
        case g.Add():
            units.join(net, site, op)
        case g.Multiply():
            units.product(net, site, op)
        case g.LabelSelect():
            units.label_select(net, site, op)
        case g.Softmax():
            units.softmax(net, site, op)
        case g.Window():
            moving.window(net, site, op)
        case MaxPool():
            moving.max_pool(net, site, op)
        case g.Duplicate():
            moving.duplicate(net, site)
        case g.Discard():
            moving.discard(net, site)
        case g.Concat():
            moving.concat(net, site)
        case g.Split():
            moving.split(net, site, op)
        case g.Reorg():
            moving.reorg(net, site, op)
        case g.DepthToSpace():
            moving.depth_to_space(net, site, op)
        case g.Upsample():
            moving.upsample(net, site, op)
        case g.DownSample():
            moving.down_sample(net, site, op)
        case g.Custom():
            moving.custom(net, site, op)
        case _:
            assert_never(op)


def _output(net: Netlist, index: int, output: int) -> str:
    block, fold = net.graph.blocks[index], net.folding.folds[index]
    element = carrier(block.outputs[output].datatype, lanes.out_lanes(block, fold, output))
    return net.wire(map_wire(net.graph, g.Port(index, output)), element)
