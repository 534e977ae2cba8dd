"""SystemVerilog engines, one per format with all options, and designs for them."""

from __future__ import annotations

from dataclasses import replace

from boards.board import load
from cnn.quantized import QuantizedNetwork
from contract.geometry import RTL
from scheduler.hardware.ddr import ddr_timing
from scheduler.systolic.area.resources import PRODUCTS
from scheduler.systolic.array import Array
from systolic.files import DesignFiles
from systolic.model import DesignInputs
from systolic.styles.systolic.generation.generate import generate
from systolic.styles.systolic.mapping import price
from tests.support.accelerators import picture_for, start
from tests.support.schedules import first_fit, staying, with_on_chip

SMALL = Array(
    2,
    4,
    4,
    save_rows=1,
    map_ports=1,
    weight_ports=1,
    row_depth=1024,
    weight_depth=1024,
    kept_depth=512,
    chunk=8,
    channel_tiles=32,
    map_depth=1024,
    upscale=2,
    table_depth=256,
    table_slopes=True,
    windows=True,
    late_offsets=1,
    map_products=True,
    map_stride=2,
)


ARRAYS = {
    8: SMALL,
    4: replace(SMALL, rows=3, columns=8, lanes=8, bits=4, weight_ports=2),
    16: replace(SMALL, bits=16, map_ports=2, save_rows=2),
}
"""One array per format, with all options of an engine."""


FIRST = start(3, 8, 8).convolution(8).network()


def design_of(network: QuantizedNetwork, array: Array, stay: bool = False, products: str = "") -> DesignFiles:
    """Return the design of a network on an array.

    Args:
        network: The network.
        array: The array.
        stay: Whether every possible map stays on chip.
        products: Where requantisers multiply. By default, the placement decides.
    """
    schedule = first_fit(network, replace(array, engine=RTL))
    if stay:
        stays = staying(network, [scheduled.layer for scheduled in schedule.layers], array)
        schedule = with_on_chip(schedule, stays)
    board = load("pynq-z2" if array.dsp == "DSP48E1" else "zcu104")
    ddr = ddr_timing(board, board.clocks()[-1].mhz)
    mapping = price(schedule, board, ddr)
    if products:
        mapping = replace(mapping, placement={**mapping.placement, PRODUCTS.name: products})
    return generate(mapping, DesignInputs({}, picture_for(network, 5)))


SIX = replace(ARRAYS[4], columns=24, dsp_products=6)
"""An array whose DSPs compute six products."""
