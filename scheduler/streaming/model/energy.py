"""Counts the operations per frame of a block and of the DMA for the estimate of energy.

All hardware of a block is assumed to work in every cycle that the block needs per frame.
"""

from __future__ import annotations

from scheduler.hardware.energy import Activity
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from scheduler.streaming.area.usage import StreamingUsage

BRAM18_PORT_BITS, URAM_PORT_BITS = 36, 72
"""The bits that a port of a BRAM18 or of a URAM transfers per cycle."""


def block_activity(usage: StreamingUsage, cycles: int) -> Activity:
    """Return a block's energy-consuming operations per frame, if all of its hardware works in each of its ``cycles``.

    Args:
        usage: The resources of the block, with the converters and FIFOs at its inputs.
        cycles: The cycles per frame.
    """
    return Activity(
        dsp=usage.dsp * cycles,
        bram=usage.bram18 * BRAM18_PORT_BITS * cycles,
        uram=usage.uram * URAM_PORT_BITS * cycles,
        lut=usage.lut * cycles,
        ddr=usage.ddr_bits,
    )


def dma_activity(graph: g.StreamGraph) -> Activity:
    """Return the DMA's energy-consuming operations per frame: the bits of the image and of all output maps in DDR."""
    bits = 0
    for index, block in enumerate(graph.blocks):
        if isinstance(block.op, g.Source):
            bits += block.outputs[0].shape.values * block.outputs[0].datatype.bits
        elif isinstance(block.op, g.Sink):
            bits += lanes.in_shape(graph, index).values * graph.type_of(block.inputs[0]).datatype.bits
    return Activity(ddr=bits)
