"""Folding → the pipeline's functions and streams: a block is one function or a few, a stream has one writer and reader.

before                                       after
block                                        its function of hls_templates/streaming   moving.py, units.py
block whose reader takes other words         … and a width converter                   moving.py
unit with decoupled or external weights      … and a weight streamer                   units.py
source, sinks                                beats of the DMA unpacked and packed      ends.py
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
    """Everything of the pipeline's top function. layers: node of each tap. sinks: blocks whose maps leave, in order.

    images: what the m_axi ports of weights point to, in the order of those ports. headers: name → text of those that
    packages have.
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
    """The pipeline of a folding.

    depths: of FIFOs by name, where they are not the least. dsp: DSP48E1 or DSP48E2.

    Raises:
        UnsupportedError: The pipeline cannot write a map.
        DoesNotFitError: A word at the DMA is too wide.
        ConflictError: Two packages have different headers of one name.
    """
    net = Netlist(folding, depths, dsp)
    for index in range(len(folding.graph.blocks)):
        _block(net, index)
    ends.leave(net)
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
    reads = tuple(moving.arriving(net, index, port) for port in range(len(block.inputs)))
    writes = tuple(_output(net, index, output) for output in range(len(block.outputs)))
    _make(net, Site(index, block, fold, reads, writes))
    if block.node is not None and block.node not in net.layers and not isinstance(block.op, (g.Source, g.Sink)):
        net.tap(block.node, writes[0])
    if block.second is not None:
        net.tap(block.second, writes[1])


def _make(net: Netlist, site: Site) -> None:
    """Add the functions of one block."""
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
