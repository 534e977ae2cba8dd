"""Test the width of sums in the SystemVerilog engine, with the largest sums of a layer, executed by Verilator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boards.board import load
from boards.errors import RangeError
from cnn.quantized import QuantizedNetwork
from contract.geometry import RTL, SUM_BITS
from scheduler.systolic.array import Array
from scheduler.systolic.layers import lower
from scheduler.systolic.shape import shapes_of
from systolic.styles.systolic.exploration import explore
from systolic.styles.systolic.options import SystolicOptions
from systolic.styles.systolic.simulate import simulate
from tests.support.accelerators import picture_for
from tests.support.errors import raises_among
from tests.support.quantised import Builder
from tests.support.rtl.engines import ARRAYS, SIX, SMALL, design_of
from tests.support.schedules import first_fit
from tests.support.traced import load_into

PLAIN: dict[str, Any] = {
    **{"map_depth": 0, "upscale": 1, "table_depth": 0, "table_slopes": 0, "windows": 0, "late_offsets": 0},
    **{"map_products": 0, "map_stride": 1},
}
ENGINES = {
    "8 bits": replace(SMALL, engine=RTL, **PLAIN),
    "4 bits": replace(ARRAYS[4], engine=RTL, **PLAIN),
    "six products": replace(SIX, engine=RTL, **PLAIN),
}
CHANNELS = {8: 16, 4: 192}


def extreme(bits: int) -> QuantizedNetwork:
    """Return a network with the largest possible sums.

    Its first layer gives the lowest and highest values, channel by channel. The second layer multiplies them by weights
    of the same or of the opposite sign. Layers with narrower weights have no larger sums.
    """
    network = Builder(3, 6, 6, seed=3, bits=bits).conv(CHANNELS[bits], 3).conv(8, 3, wide=True).network()
    picture, first, second = network.nodes
    signs = np.where(np.arange(CHANNELS[bits]) % 2 == 0, 1, -1)
    ends: Any = first.op
    first = replace(first, op=replace(ends, requantiser=replace(ends.requantiser, bias=signs << 27)))
    sums: Any = second.op
    directions = np.where(np.arange(8) % 2 == 0, 1, -1)[:, None, None, None]
    weights = (directions * signs[:, None, None] * np.ones_like(sums.weights) * sums.weight_type.high).astype(np.int8)
    return replace(network, nodes=(picture, first, replace(second, op=replace(sums, weights=weights))))


def needed(network: QuantizedNetwork, array: Array) -> int:
    """Return the bits that the network's widest sum needs on the array."""
    return max(shape.sum_bits for shape in shapes_of(network, lower(network), array))


def mismatches(network: QuantizedNetwork, array: Array, folder: Path, bits: int) -> int:
    """Return the mismatches of an engine whose sources state ``bits`` as the width of sums."""
    files, path = design_of(network, array), "src/systolic_geometry.sv"
    text = files.files[path].decode()
    assert text.count(f"SUM_BITS = {array.sum_bits};") == 1
    changed = {**files.files, path: text.replace(f"SUM_BITS = {array.sum_bits};", f"SUM_BITS = {bits};").encode()}
    return simulate(load_into(folder, replace(files, files=changed)), picture_for(network, 5)).mismatches


@pytest.mark.engine
@pytest.mark.parametrize("name", ENGINES)
def test_largest_sums_match_golden_model(verilated: None, name: str, tmp_path: Path) -> None:
    array = ENGINES[name]
    network = extreme(array.bits)
    array = replace(array, sum_bits=needed(network, array))
    # The largest sum has 9 · 16 products of −128 · −128 at 8 bits, or 9 · 192 of −8 · −8 at 4 bits.
    assert array.sum_bits == 1 + {8: 9 * 16 * 128 * 128, 4: 9 * 192 * 8 * 8}[array.bits].bit_length()
    assert mismatches(network, array, tmp_path / "enough", array.sum_bits) == 0
    if name == "8 bits":
        assert mismatches(network, array, tmp_path / "too few", array.sum_bits - 1) > 0


@pytest.mark.engine
def test_upper_nibbles_of_pixels_count_16_times(verilated: None, tmp_path: Path) -> None:
    array = ENGINES["4 bits"]
    network = Builder(3, 6, 6, seed=3, bits=4).conv(8, 3, wide=True).network()
    picture, first = network.nodes
    sums: Any = first.op
    weights = np.full_like(sums.weights, sums.weight_type.high)
    network = replace(network, nodes=(picture, replace(first, op=replace(sums, weights=weights))))
    array = replace(array, sum_bits=needed(network, array))
    # Nine steps of 4 bytes are summed, each of which gives −8 · −8 · 16 and −8 · −8.
    assert array.sum_bits == 1 + (9 * 4 * 8 * 8 * 17).bit_length()
    assert mismatches(network, array, tmp_path / "enough", array.sum_bits) == 0


def test_first_fit_with_too_narrow_sums_is_refused() -> None:
    network, array = extreme(8), ENGINES["8 bits"]
    few = needed(network, array) - 1
    with raises_among(RangeError, where="conv2", what="sum_bits of the array", got=22, low=23):
        first_fit(network, replace(array, sum_bits=few))


@pytest.mark.engine
def test_explore_takes_the_sum_bits_of_the_widest_layer() -> None:
    """Expect the width of the C++ engine's sums, which are ints, at 16 bits."""
    board, options = load("zcu104"), SystolicOptions(array="4x16x16", engine=RTL)
    network = Builder(3, 16, 16, seed=1).conv(16, 3).conv(64, 3).conv(16, 1).network()
    assert explore(network, board, 300, options).schedule.array.sum_bits == 1 + (9 * 16 * 128 * 128).bit_length()
    assert explore(network, board, 300, replace(options, engine="hls")).schedule.array.sum_bits == SUM_BITS
    wide = Builder(3, 16, 16, seed=1, bits=16).conv(16, 3).network()
    assert explore(wide, board, 300, options).schedule.array.sum_bits == SUM_BITS
