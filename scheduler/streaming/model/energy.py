"""What a block does in a frame, as energy is counted: in every cycle of its own all of its hardware works."""

from __future__ import annotations

from scheduler.hardware.energy import Activity
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from scheduler.streaming.area.usage import StreamingUsage

BRAM18_PORT_BITS, URAM_PORT_BITS = 36, 72
"""Bits of a word."""


def block_activity(usage: StreamingUsage, cycles: int) -> Activity:
    """usage: of the block with the converters and FIFOs before it. cycles: of a frame."""
    return Activity(
        dsp=usage.dsp * cycles,
        bram=usage.bram18 * BRAM18_PORT_BITS * cycles,
        uram=usage.uram * URAM_PORT_BITS * cycles,
        lut=usage.lut * cycles,
        ddr=usage.ddr_bits,
    )


def dma_activity(graph: g.StreamGraph) -> Activity:
    """The picture that comes and the maps that leave."""
    bits = 0
    for index, block in enumerate(graph.blocks):
        if isinstance(block.op, g.Source):
            bits += block.outputs[0].shape.values * block.outputs[0].datatype.bits
        elif isinstance(block.op, g.Sink):
            bits += lanes.in_shape(graph, index).values * graph.type_of(block.inputs[0]).datatype.bits
    return Activity(ddr=bits)
