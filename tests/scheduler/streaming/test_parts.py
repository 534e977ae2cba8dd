"""The resources of blocks, compared with counts by hand, and the sources of all parts."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from boards.board import load
from cnn.datatype import DataType
from cnn.maps import Padding, Shape
from cnn.requantise import MultiplyShift, Requantising, Thresholds
from scheduler.hardware.primitives import product_luts
from scheduler.streaming import graph as g
from scheduler.streaming.area.parts import block_usage, converter_usage, parts
from scheduler.streaming.area.total import edge_usage, usage
from scheduler.streaming.area.units import tree_luts
from scheduler.streaming.area.usage import NOTHING, StreamingUsage
from scheduler.streaming.area.windows import _bundles, reorg_pixels, window_pixels
from scheduler.streaming.lower import lower
from scheduler.streaming.model.converters import Converter, edge_of
from tests.support.cases import cases
from tests.support.kinds import as_kind
from tests.support.low_bit import Layers, cnv, mobilenet, skipping, ultranet

ULTRA96, PYNQ = load("ultra96-v2"), load("pynq-z2")


def part(graph: g.StreamGraph, name: str, fold: g.Fold, called: str) -> StreamingUsage:
    index = next(i for i, block in enumerate(graph.blocks) if block.name == name)
    return next(p.usage for p in parts(graph, index, fold, ULTRA96) if p.name == called)


def activated(of: Requantising) -> g.StreamGraph:
    graph = lower(Layers(8, 4, 4).conv(16, 1).network())
    unit = replace(graph.blocks[1], op=replace(as_kind(g.MatrixVector, graph.blocks[1].op), activation=of))
    return replace(graph, blocks=(graph.blocks[0], unit, *graph.blocks[2:]))


def column(value: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.full(16, value, np.int64)


@cases("make", [ultranet, cnv, mobilenet, skipping])
def test_parts_have_sources_and_add_up(make: object) -> None:
    graph = lower(make())  # type: ignore[operator]
    total = NOTHING
    for index in range(len(graph.blocks)):
        found = parts(graph, index, g.Fold(), ULTRA96)
        assert all(p.source for p in found)
        total += sum((p.usage for p in found), NOTHING)
        assert block_usage(graph, index, g.Fold(), ULTRA96) == sum((p.usage for p in found), NOTHING)
        for port in range(len(graph.blocks[index].inputs)):
            total += edge_usage(edge_of(graph, [g.Fold()] * len(graph.blocks), index, port), ULTRA96)
    assert total == usage(g.StreamingFolding(graph, (g.Fold(),) * len(graph.blocks)), ULTRA96)


def test_multiplier_dsps_of_int4_pack_two_or_four_products() -> None:
    graph = lower(ultranet())
    assert part(graph, "conv9", g.Fold(pe=2, simd=36), "multipliers").dsp == 36
    assert part(graph, "conv9", g.Fold(pe=2, simd=36, pixels=2), "multipliers").dsp == 36
    assert part(graph, "conv9", g.Fold(pe=1, simd=36), "multipliers").dsp == 36
    luts = part(graph, "conv9", g.Fold(pe=2, simd=36, multiplier="lut"), "multipliers")
    assert luts == StreamingUsage(lut=72 * 15)


def test_product_and_tree_luts_are_as_counted_by_hand() -> None:
    assert [product_luts(4, 4), product_luts(8, 8), product_luts(4, 8), product_luts(1, 1), product_luts(2, 1)] == [
        15,
        63,
        27,
        1,
        2,
    ]
    assert tree_luts(1, 8, 20) == 0
    assert tree_luts(4, 8, 20) == 2 * 9 + 10
    assert tree_luts(4, 8, 9) == 2 * 9 + 9


def test_weight_memories_follow_their_aspect_ratio() -> None:
    graph = lower(ultranet())
    assert part(graph, "conv9", g.Fold(pe=1, simd=72, ram="bram"), "weights") == StreamingUsage(bram18=8)  # 512 × 288
    assert part(graph, "conv9", g.Fold(pe=4, simd=18, ram="bram"), "weights") == StreamingUsage(
        bram18=4 * 2
    )  # 512 words of 72 bits each
    assert part(graph, "conv9", g.Fold(pe=1, simd=72, ram="lutram"), "weights") == StreamingUsage(lut=288 * 8)
    wide = part(graph, "conv9", g.Fold(pe=2, simd=9, ram="bram", memory="decoupled"), "weights")
    assert wide.bram18 == 8  # 64 · 576 / 18 words of 72 bits


def test_external_weights_add_vectors_results_and_sums() -> None:
    graph = lower(ultranet())
    fold = g.Fold(pe=1, simd=72, memory="external", ram="bram")
    assert part(graph, "conv9", fold, "weights").ddr_bits == 512 * 3 * 128  # 72 weights of 4 bits are three beats
    assert part(graph, "conv9", fold, "vectors").bram18 == 8 * 4  # 200 · 8 words of 288 bits
    assert part(graph, "conv9", replace(fold, ram="uram"), "vectors").uram == 4
    assert part(graph, "conv9", fold, "results").bram18 == 4  # 200 · 64 words of 4 bits
    assert part(graph, "conv9", fold, "sums").bram18 == 1
    assert part(graph, "conv9", replace(fold, pixels=200), "weights").ddr_bits == 512 * 3 * 128
    with pytest.raises(StopIteration):
        part(graph, "conv9", replace(fold, pixels=200), "vectors")


def test_window_rows_are_as_counted_by_hand() -> None:
    op = g.Window((3, 3), 1, Padding(1, 1, 1, 1))
    assert window_pixels(op, Shape(1, 10, 20), Shape(1, 10, 20)) == 2 * 20 + 3 + max(20 - 19, 1, 20 - 19)
    graph = lower(ultranet())
    assert part(graph, "conv9_window", g.Fold(simd=2, style="parallel", ram="bram"), "rows") == StreamingUsage(bram18=1)
    # two rows of 20 pixels of 64 channels, 4 bits: 640 words of 16 bits
    assert part(graph, "conv9_window", g.Fold(simd=64, style="parallel", ram="bram"), "rows") == StreamingUsage(
        bram18=15
    )
    assert part(graph, "conv9_window", g.Fold(simd=64, style="parallel"), "columns") == NOTHING


def test_reorg_pixels_follow_its_order() -> None:
    shape = Shape(32, 16, 8)
    assert reorg_pixels(g.Reorg(2, "block"), shape) == 8 + 4
    assert reorg_pixels(g.Reorg(2), shape) == 5 * 8 + 2
    assert reorg_pixels(g.Reorg(2), Shape(32, 6, 8)) == 2 * 6 * 8


def test_multiply_shift_takes_a_dsp_per_lane() -> None:
    scaled = activated(MultiplyShift(column(7), column(0), column(9)))
    assert part(scaled, "conv1", g.Fold(pe=4), "requantise").dsp == 4
    assert part(scaled, "conv1", g.Fold(pe=4, pixels=2), "requantise").dsp == 8
    levels = Thresholds(np.zeros((16, 15), np.int64), np.zeros(16, np.bool_))
    found = part(activated(levels), "conv1", g.Fold(pe=4), "thresholds")
    assert found.dsp == 0
    assert found.lut > 4 * 15 * 10


def test_equal_shifts_take_no_shifter() -> None:
    alike = activated(MultiplyShift(column(7), column(0), column(9)))
    shifts = column(9)
    shifts[3] = 14
    apart = activated(MultiplyShift(column(7), column(0), shifts))
    a, b = (part(graph, "conv1", g.Fold(pe=1), "requantise").lut for graph in (alike, apart))
    assert b - a == 49 * 2  # two stages of 4:1 multiplexers for a spread of 5


def test_bipolar_multipliers_take_nothing() -> None:
    graph = lower(Layers(8, 6, 6, "BIPOLAR", "BIPOLAR").conv(8, 1).conv(8, 1).network())
    assert part(graph, "conv2", g.Fold(pe=4, simd=8), "multipliers") == StreamingUsage()


def test_converter_luts_are_few_if_one_width_divides_the_other() -> None:
    even = converter_usage(Converter(2, 8, 64, 64, 100), 4, ULTRA96)
    odd = converter_usage(Converter(6, 8, 48, 48, 100), 4, ULTRA96)
    assert even == StreamingUsage(lut=50 + 32)
    assert odd == StreamingUsage(lut=50 + 4 * 14 * 2)
    pixels = converter_usage(Converter(8, 16, 64, 64, 100, 1, 2), 4, ULTRA96)
    assert pixels.lutram > 0


def test_int8_multipliers_take_equal_dsps_on_both_families() -> None:
    graph = lower(Layers(8, 4, 4, "INT8", "INT8").conv(16, 1).network())
    both = [
        next(p.usage.dsp for p in parts(graph, 1, g.Fold(pe=2, simd=8), board) if p.name == "multipliers")
        for board in (ULTRA96, PYNQ)
    ]
    assert both == [8, 8]
    assert DataType(8, True).bits == 8


def test_bundles_of_a_parallel_window_cover_its_columns() -> None:
    """The expected words hold the columns that the outputs of one word read."""
    for kernel, dilation, left, pixels in product(range(1, 8), (1, 2, 3), range(4), (1, 2, 3, 4)):
        if left > (kernel - 1) * dilation:
            continue
        outputs = range(100 * pixels, 101 * pixels)
        columns = [x - left + tap * dilation for x in outputs for tap in range(kernel)]
        words = {column // pixels for column in range(min(columns), max(columns) + 1)}
        assert _bundles(kernel, dilation, left, pixels) == len(words), (kernel, dilation, left, pixels)
