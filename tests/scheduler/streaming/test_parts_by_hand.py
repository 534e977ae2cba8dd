"""All parts of small blocks on an Ultra96, counted by hand from the headers and from the shapes of the primitives.

8 LUTs as memory hold 32×14 or 64×7 bits. A constant memory of up to 64 words takes one LUT per bit, and so does a shift
register. Weights are 7 and values are UINT4. The largest sum of 8 products is therefore 8 · 7 · 15 = 840, which needs
11 bits with its sign.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from boards.board import load
from cnn.maps import Padding, Shape
from cnn.ops import MaxPool, QAdd
from cnn.requantise import Thresholds
from scheduler.hardware.budget import Budget
from scheduler.hardware.primitives import constant_luts, distributed_luts, product_luts, shift_luts
from scheduler.streaming import graph as g
from scheduler.streaming.area.budget import limits, unit_areas
from scheduler.streaming.area.memory import style
from scheduler.streaming.area.packing import PackedFields, Range, four_products, two_weights, value_range
from scheduler.streaming.area.parts import converter_usage, parts
from scheduler.streaming.area.total import edge_usage, usage, usage_by_block, usage_with
from scheduler.streaming.area.usage import NOTHING, StreamingUsage, sum_of
from scheduler.streaming.area.windows import reorg_pixels, window_pixels
from scheduler.streaming.lower import lower
from scheduler.streaming.model.converters import Converter, edges
from tests.support.cases import cases
from tests.support.kinds import as_kind
from tests.support.low_bit import Layers, requantiser

ULTRA96, PYNQ = load("ultra96-v2"), load("pynq-z2")
Counts = dict[str, tuple[int, ...]]
ONE = Padding(1, 1, 1, 1)


class Sevens(Layers):
    """Layers whose weights are all 7."""

    def drawn(self, *shape: int) -> npt.NDArray[np.int8]:
        return np.full(shape, 7, np.int8)


def counted(made: Layers, index: int, fold: g.Fold) -> Counts:
    """Return LUTs, LUTs as memory and DSPs per part. If any is used, BRAM18, URAM and bits from DDR follow."""
    return counts_of(lower(made.network()), index, fold)


def counts_of(graph: g.StreamGraph, index: int, fold: g.Fold) -> Counts:
    found = {}
    for part in parts(graph, index, fold, ULTRA96):
        used = part.usage
        more = (used.bram18, used.uram, used.ddr_bits)
        found[part.name] = (used.lut, used.lutram, used.dsp, *(more if any(more) else ()))
    return found


def unit(channels: int = 8) -> Layers:
    """Return layers whose block 2 multiplies 16 × 8 weights with the values of each of 4×4 positions."""
    return Sevens(channels, 4, 4).conv(8, 1).conv(16, 1)


def test_softmax_parts_are_as_counted_by_hand() -> None:
    """10 channels of UINT4 have 16 powers of 20 bits, and sums of 24 bits.

    With two lanes, a position is 5 words. The delay lines hold words of 8 bits, and 4 + 17 words of 40 bits. A product
    of 20 × 17 bits takes one DSP. With method latency and one lane, the line holds 9 + 37 words of 20 bits, and a
    product of 20 × 37 bits takes three DSPs.
    """
    made = Layers(3, 2, 2).conv(10, 1)
    assert counted(made.shares("stable"), 2, g.Fold(pe=2)) == {
        "control": (100, 0, 0),
        "greatest": (16, 0, 0),
        "values": (8, 8, 0),
        "powers": (40, 0, 0),
        "held": (24, 24, 0),
        "sum": (48, 0, 0),
        "division": (2 * 24 * 17, 0, 0),
        "products": (32, 0, 2),
    }
    assert counted(Layers(3, 2, 2).conv(10, 1).shares("latency"), 2, g.Fold()) == {
        "control": (100, 0, 0),
        "powers": (20, 0, 0),
        "held": (24, 24, 0),
        "sum": (24, 0, 0),
        "division": (2 * 24 * 37, 0, 0),
        "products": (16, 0, 3),
    }
    by_argmax = counted(Layers(3, 2, 2).conv(10, 1).shares("argmax"), 2, g.Fold(pe=5))
    assert by_argmax == {"control": (100, 0, 0), "greatest": (40, 0, 0), "shares": (40, 0, 0)}


def test_unit_parts_with_paired_weights_are_as_counted_by_hand() -> None:
    """With PE 4 and SIMD 2, 8 products take 4 DSPs, whose longest chains exceed 2. Each PE has 16 words of 8 bits."""
    assert counted(unit(), 2, g.Fold(pe=4, simd=2)) == {
        "control": (100, 0, 0),
        "multipliers": (0, 0, 4),
        "adders": (4 * 11, 0, 0),
        "weights": (4 * 8, 0, 0),
        "vector": (8, 8, 0),  # 4 words of 8 bits
        "parameters": (4 * 72, 0, 0),
        "requantise": (4 * (49 + 2 * 4 + 11 + 16), 0, 4 * 2),
    }


def test_unit_parts_of_two_pixels_are_as_counted_by_hand() -> None:
    """A DSP has four products. The second pixel's vector and result are stored: 4 words of 8 bits and 4 of 16 bits."""
    assert counted(unit(), 2, g.Fold(pe=4, simd=2, pixels=2)) == {
        "control": (100, 0, 0),
        "multipliers": (0, 0, 4),
        "adders": (8 * 11, 0, 0),
        "weights": (4 * 8, 0, 0),
        "vector": (16, 16, 0),  # 4 words of 16 bits
        "pixels": (200 + 8 + 16, 8 + 16, 0),
        "parameters": (4 * 72, 0, 0),
        "requantise": (8 * (49 + 2 * 4 + 11 + 16), 0, 8 * 2),
    }
    three = counted(unit(), 2, g.Fold(pe=4, simd=2, pixels=3))
    assert three["pixels"] == (200 + 2 * (8 + 16), 2 * (8 + 16), 0)
    assert "pixels" not in counted(unit(), 2, g.Fold(pe=4, simd=2, pixels=2, m=2))


def test_unit_parts_with_lut_multipliers_are_as_counted_by_hand() -> None:
    """32 products take 15 LUTs each. The tree of 8 products of 8 bits takes 4 · 9 + 2 · 10 + 11 LUTs.

    A unit with one fold of its filters stores no vector.
    """
    found = counted(unit(), 2, g.Fold(pe=4, simd=8, multiplier="lut"))
    assert found["multipliers"] == (32 * 15, 0, 0)
    assert found["adders"] == (4 * (67 + 11), 0, 0)
    assert "vector" in found
    assert "vector" not in counted(unit(), 2, g.Fold(pe=16, simd=2))


def test_unit_parts_with_streamed_weights_are_as_counted_by_hand() -> None:
    """There are 16 words of 4 · 8 bits. The stream adds 32 shift registers, 8 LUTs of its FIFO, and 100 of control."""
    assert counted(unit(), 2, g.Fold(pe=4, simd=2, memory="decoupled"))["weights"] == (32 + 32 + 8 + 100, 32, 0)
    assert counted(unit(), 2, g.Fold(pe=4, simd=2, memory="external", ram="lutram")) == {
        "control": (100, 0, 0),
        "multipliers": (0, 0, 4),
        "adders": (4 * 11, 0, 0),
        "weights": (32 + 8 + 100, 32, 0, 0, 0, 16 * 128),  # one beat per word
        "vectors": (16, 16, 0),  # 16 positions · 4 words of 8 bits
        "results": (24, 24, 0),  # 16 · 4 words of 16 bits
        "sums": (32, 32, 0),  # 16 words of 44 bits
        "parameters": (4 * 72, 0, 0),
        "requantise": (4 * (49 + 2 * 4 + 11 + 16), 0, 4 * 2),
    }


def test_depthwise_unit_parts_are_as_counted_by_hand() -> None:
    """A PE's 9 products take 9 DSPs, which also add them. The sums go up to 9 · 7 · 15 = 945, which needs 11 bits."""
    found = counted(Sevens(4, 4, 4).conv(4, 1).depthwise(), 3, g.Fold(pe=2, simd=9))
    assert found["multipliers"] == (0, 0, 18)
    assert found["adders"] == (2 * 11, 0, 0)
    assert found["weights"] == (2 * 36, 0, 0)
    assert "vector" not in found


def test_thresholds_have_comparators_for_all_levels() -> None:
    """15 levels of 11 bits are stored for 4 folds of 4 PEs, and compared in 4 PEs for 2 pixels."""
    graph = lower(unit().network())
    op = as_kind(g.MatrixVector, graph.blocks[2].op)
    levels = Thresholds(np.zeros((16, 15), np.int64), np.zeros(16, np.bool_))
    block = replace(graph.blocks[2], op=replace(op, activation=levels))
    graph = replace(graph, blocks=(*graph.blocks[:2], block, *graph.blocks[3:]))
    assert counts_of(graph, 2, g.Fold(pe=4, simd=2, pixels=2))["thresholds"] == (4 * 165 + 8 * 165, 0, 0)


def windowed() -> Layers:
    """Return layers whose block 2 is a 3×3 window over 6×6 pixels of 8 values."""
    return Sevens(8, 6, 6).conv(8, 1).conv(8, 3)


def test_default_window_parts_are_as_counted_by_hand() -> None:
    """The buffer holds 16 pixels of 2 words, and 12 words of margin: 44 words of 16 bits.

    The pixels are two rows, two pixels, the pixel that is read, and one pixel ahead.
    """
    assert counted(windowed(), 2, g.Fold(simd=4)) == {
        "control": (100, 0, 0),
        "rows": (24, 24, 0),
        "walk": (350 + 16, 0, 0),
    }


@cases(
    "op, source, target, pixels",
    [
        # kernel rows less one, kernel columns less one, one pixel, and the pixels that arrive during a row of windows
        (g.Window((3, 3), 1, ONE), (6, 6), (6, 6), 2 * 6 + 2 + 1 + 1),
        (g.Window((3, 3), 2, ONE), (6, 8), (3, 4), 2 * 8 + 2 + 1 + (2 * 8 - 3 * 2)),
        (g.Window((3, 3), 1, Padding(2, 2, 2, 2), dilation=2), (7, 9), (7, 9), 4 * 9 + 4 + 1 + 1),
        (g.Window((2, 5), 1, Padding()), (6, 9), (5, 5), 1 * 9 + 4 + 1 + (2 * 9 - 4)),  # no window covers the last row
        (g.Window((1, 1), 1, Padding(0, 0, 0, 3)), (4, 5), (4, 8), 1 + 1),
        (g.Window((3, 3), 3, Padding()), (9, 9), (3, 3), 2 * 9 + 2 + 1 + (3 * 9 - 2 * 3)),
        (g.Window((1, 1), 2, Padding()), (5, 6), (3, 3), 1 + (2 * 6 - 2 * 2)),  # one row is stored, and two are skipped
    ],
)
def test_window_pixels_are_as_counted_by_hand(
    op: g.Window, source: tuple[int, int], target: tuple[int, int], pixels: int
) -> None:
    assert window_pixels(op, Shape(1, *source), Shape(1, *target)) == pixels


def test_parallel_window_parts_are_as_counted_by_hand() -> None:
    """Two rows have 6 words of 16 bits for each of 2 groups. 36 values of 4 bits are masked in the padding."""
    assert counted(windowed(), 2, g.Fold(simd=4, style="parallel")) == {
        "control": (100, 0, 0),
        "rows": (24, 24, 0),  # 12 words of 32 bits
        "columns": (0, 0, 0),  # 2 groups: registers
        "scan": (200 + 36 * 4, 0, 0),
    }
    single = counted(windowed(), 2, g.Fold(simd=1, style="parallel"))
    assert single["columns"] == (16, 16, 0)  # 8 groups of 3 rows of 2 values: 24 bits
    assert single["rows"] == (16, 16, 0)  # 48 words of 8 bits
    assert counted(windowed(), 2, g.Fold(simd=2, style="parallel"))["columns"] == (0, 0, 0)  # 4 groups: registers
    two = counted(windowed(), 2, g.Fold(simd=8, style="parallel", m=2))
    assert two["rows"] == (80, 80, 0)  # 3 words of 2 rows of 64 bits
    assert two["scan"] == (200 + 2 * 72 * 4, 0, 0)


def test_pool_parts_are_as_counted_by_hand() -> None:
    """3 columns of 4 groups of 2 values are stored until the next row. A comparison of two values takes 6 LUTs."""
    made = Sevens(8, 6, 6).conv(8, 1).pool()
    assert counted(made, 2, g.Fold(pe=2)) == {
        "control": (100, 0, 0),
        "rows": (8, 8, 0),
        "columns": (0, 0, 0),
        "compare": (100 + 2 * 2 * 6, 0, 0),
    }
    assert counted(made, 2, g.Fold(pe=1))["columns"] == (8, 8, 0)  # 8 groups of one value
    made = Sevens(8, 6, 6).conv(8, 1).pool(3, 3)
    found = counted(made, 2, g.Fold(pe=2))
    assert found["rows"] == (16, 16, 0)  # 8 words of 2 rows of 2 values
    assert found["compare"] == (100 + 4 * 2 * 6, 0, 0)
    made = Sevens(8, 6, 6).conv(8, 1)
    made.add("pool", MaxPool(3, 1, ONE), Shape(8, 6, 6))
    found = counted(made, 2, g.Fold(pe=1, m=2))
    assert found["columns"] == (16, 16, 0)  # 8 groups of 2 words of 2 values: 16 bits
    assert found["rows"] == (16, 16, 0)  # 3 · 8 words of 2 rows of 2 values: 16 bits
    assert found["compare"] == (100 + 4 * 2 * 6, 0, 0)


def test_upsample_and_reorg_parts_are_as_counted_by_hand() -> None:
    """An up-sampler stores two rows of 4 pixels of 2 words, and 12 words of margin: 28 words of 16 bits.

    A reorg of stride 2 stores 5 rows and 2 pixels, and the margin: 54 words.
    """
    found = counted(Sevens(8, 4, 4).conv(8, 1).upsample(2), 2, g.Fold(simd=4))
    assert found == {"control": (100, 0, 0), "rows": (16, 16, 0), "walk": (350, 0, 0)}
    made = Sevens(8, 4, 4).conv(8, 1)
    found = counted(made.reorg(2, made.last), 2, g.Fold(simd=4))
    assert found == {"control": (100, 0, 0), "rows": (24, 24, 0), "walk": (350, 0, 0)}


@cases(
    "multipliers, bits, adders, dsps",
    [((1, 1), 6, 1, 0), ((1, 1, 1), 7, 2, 0), ((3, 1), 7, 1, 1), ((2, 5), 8, 1, 2), ((4,), 7, 1, 1)],
)
def test_add_parts_are_as_counted_by_hand(multipliers: tuple[int, ...], bits: int, adders: int, dsps: int) -> None:
    """A sum is at most 15 · Σ multipliers. A multiplier other than 1 takes a DSP per lane.

    The block has PE 2 for 8 channels, and words of 1 or 2 pixels.
    """
    made = Sevens(8, 4, 4).conv(8, 1)
    op = QAdd(multipliers, requantiser(8))
    made.add("add", op, Shape(8, 4, 4), *[1] * len(multipliers))
    graph = lower(made.network())
    index = next(i for i, block in enumerate(graph.blocks) if isinstance(block.op, g.Add))
    for pixels in (1, 2):
        assert counts_of(graph, index, g.Fold(pe=2, m=pixels)) == {
            "control": (100, 0, 0),
            "adders": (bits * 2 * pixels * adders, 0, 2 * pixels * dsps),
            "parameters": (2 * 72, 0, 0),
            "requantise": (2 * pixels * (49 + 8 + bits + 16), 0, 2 * pixels * 2),
        }


def test_average_parts_are_as_counted_by_hand() -> None:
    """A sum is at most 15 · 16 = 240, which needs 9 bits with its sign. There are 4 words of 2 sums."""
    assert counted(Sevens(8, 4, 4).conv(8, 1).average(), 2, g.Fold(pe=2)) == {
        "control": (100, 0, 0),
        "sums": (16, 16, 0),
        "adders": (2 * 9, 0, 0),
        "parameters": (2 * 72, 0, 0),
        "requantise": (2 * (49 + 8 + 9 + 16), 0, 4),
    }


def test_source_and_sink_parts_are_a_lut_per_bit() -> None:
    """The source's pixels have 8 bits, and a sink counts 8 bits per value."""
    made = Sevens(8, 4, 4).conv(8, 1)
    assert counted(made, 0, g.Fold(simd=3)) == {"control": (100, 0, 0), "words": (24, 0, 0)}
    assert counted(made, 2, g.Fold(simd=4, m=2)) == {"control": (100, 0, 0), "words": (64, 0, 0)}


@cases(
    "converter, luts, memory",
    [
        (Converter(4, 4, 8, 4, 100), 50 + 4 * 4, 0),
        (Converter(2, 8, 64, 64, 100), 50 + 4 * 8, 0),
        (Converter(3, 5, 15, 15, 100), 50 + 4 * 8 * 3, 0),  # a value can have 7 positions, which take 3 LUTs
        (Converter(5, 3, 15, 15, 100), 50 + 4 * 8 * 3, 0),
        (Converter(6, 4, 12, 12, 100), 50 + 4 * 10 * 2, 0),  # 4 positions of 2 values
        (Converter(8, 16, 64, 64, 100, 1, 2), 100 + 4 * 16 + 40, 40),  # 8 words of 64 bits
        (Converter(16, 8, 64, 64, 100, 2, 1), 100 + 4 * 16 + 40, 40),
        (Converter(8, 16, 512, 512, 100, 1, 2), 100 + 4 * 16 + 80, 80),  # 64 words
    ],
)
def test_converter_usage_is_as_counted_by_hand(converter: Converter, luts: int, memory: int) -> None:
    assert converter_usage(converter, 4, ULTRA96) == StreamingUsage(lut=luts, lutram=memory)


def test_usage_of_a_folding_is_its_blocks_converters_and_fifos() -> None:
    """The input has 8-bit values in 4 lanes, and the unit reads 2 lanes: a converter between two FIFOs.

    The unit writes 4-bit values in 3 lanes, as its reader takes them: one FIFO.
    """
    graph = lower(Sevens(4, 8, 8).conv(6, 1).network())
    folding = g.StreamingFolding(graph, (g.Fold(simd=4), g.Fold(simd=2, pe=3), g.Fold(simd=3)))
    first, second = edges(graph, folding.folds)
    converter = 50 + 8 * 4
    assert edge_usage(first, ULTRA96) == StreamingUsage(lut=16 + 8 + converter + 32 + 8, lutram=16 + 32)
    assert edge_usage(second, ULTRA96) == StreamingUsage(lut=12 + 8, lutram=12)
    blocks = [sum_of(part.usage for part in parts(graph, i, fold, ULTRA96)) for i, fold in enumerate(folding.folds)]
    fifos = StreamingUsage(lut=16 + 32 + 12 + 3 * 8, lutram=16 + 32 + 12)
    assert usage(folding, ULTRA96) == sum_of(blocks) + StreamingUsage(lut=converter) + fifos
    assert usage_by_block(folding, ULTRA96)[0] == blocks[0]
    traced = [(16, 2), (32, 2), (12, 40)]  # 40 words take two shift registers of 32, and a level of 7 bits 28 LUTs
    assert usage_with(folding, ULTRA96, traced) == usage(folding, ULTRA96) + StreamingUsage(lut=32, lutram=12)
    assert usage_with(folding, ULTRA96, ()) == sum_of(blocks) + StreamingUsage(lut=converter)
    assert sum_of([]) == NOTHING == StreamingUsage()


def test_limits_and_unit_areas_of_boards_are_known() -> None:
    """An Ultra96 has 70,560 LUTs, 28,800 of them as memory, 360 DSPs and 216 BRAM36.

    A PYNQ-Z2 has 53,200 LUTs, 17,400 of them as memory, 220 DSPs and 140 BRAM36.
    """
    assert limits(ULTRA96, Budget()) == StreamingUsage(56_448, 23_040, 349, 410)
    assert limits(PYNQ, Budget(lut=0.5, dsp=0.25, bram=0.5)) == StreamingUsage(26_600, 8_700, 55, 140)
    areas = unit_areas(ULTRA96)
    assert (areas.lut, areas.dsp, areas.bram18) == (10**9 // 70_560, 10**9 // 360, 10**9 // 432)
    kv260 = load("kv260")
    assert limits(kv260, Budget(uram=0.5)).uram == 32
    assert unit_areas(kv260).uram == 10**9 // 64


def test_luts_of_primitives_are_as_counted_by_hand() -> None:
    zynq7, plus = "zynq-7000", "zynq-ultrascale+"
    # F7 to F9 join the 8 tables of 512 words. On the 7 series, F7 and F8 join 4, and one LUT per bit joins two groups.
    assert [constant_luts(3, depth, plus) for depth in (1, 64, 65, 512, 513, 2049)] == [3, 3, 6, 24, 30, 105]
    assert [constant_luts(3, depth, zynq7) for depth in (64, 256, 257)] == [3, 12, 18]
    assert [distributed_luts(6, depth, zynq7) for depth in (0, 1, 32, 33, 65)] == [0, 4, 4, 8, 22]
    assert [shift_luts(5, depth) for depth in (1, 32, 33)] == [5, 5, 10]
    assert [product_luts(*bits) for bits in ((1, 8), (8, 1), (2, 2), (2, 8), (3, 5), (5, 3))] == [8, 8, 3, 9, 12, 12]


def test_parts_of_a_second_pixel_follow_simd() -> None:
    """With SIMD 4, 2 words of 16 bits are gathered, and 4 words of 16 bits are scattered."""
    assert counted(unit(), 2, g.Fold(pe=4, simd=4, pixels=2))["pixels"] == (200 + 16 + 16, 32, 0)


@cases(
    "fold, luts",
    [
        (g.Fold(pe=2, simd=16), 2 * (16 + 16)),  # fields of 19 bits hold 8 products each: 2 chains
        (g.Fold(pe=1, simd=16), 16),  # one product per DSP, and one cascade adds all of them
        (g.Fold(pe=1, simd=16, pixels=2), 2 * (48 + 16)),  # fields of 18 bits hold 4 products each: 4 chains
        (g.Fold(pe=2, simd=16, pixels=2), 4 * (16 + 16)),  # four products do not fit, two weights do
        (g.Fold(pe=2, simd=16, multiplier="lut"), 2 * (15 * 16 + 16)),
    ],
)
def test_adders_of_8_bit_products_follow_the_chains(fold: g.Fold, luts: int) -> None:
    """The sums go up to 16 · 7 · 255 = 28,560. They have 16 bits with their sign, like the products."""
    made = Sevens(16, 4, 4, "INT8", "UINT8").conv(16, 1).conv(4, 1)
    assert counted(made, 2, fold)["adders"] == (luts, 0, 0)


def test_padded_window_rows_are_as_counted_by_hand() -> None:
    """9 positions of 8 groups are 72 words of 8 bits: two banks of 16 LUTs, and 8 LUTs to select one."""
    made = Sevens(8, 7, 7).conv(8, 1).conv(8, 3, 1, Padding(2, 2, 2, 2))
    assert counted(made, 2, g.Fold(simd=1, style="parallel"))["rows"] == (40, 40, 0)


def test_non_square_window_parts_are_as_counted_by_hand() -> None:
    """The previous row takes 6 · 8 words of 4 bits, and each of 8 groups has 2 rows of 3 pixels of 4 bits."""
    graph = lower(windowed().network())
    block = replace(graph.blocks[2], op=g.Window((2, 4), 1, Padding(0, 0, 1, 3)))
    graph = replace(graph, blocks=(*graph.blocks[:2], block, *graph.blocks[3:]))
    found = counts_of(graph, 2, g.Fold(simd=1, style="parallel"))
    assert (found["rows"], found["columns"]) == ((8, 8, 0), (16, 16, 0))
    assert found["scan"] == (200 + 8 * 4, 0, 0)


def test_pool_comparators_of_8_bits_take_12_luts() -> None:
    made = Sevens(8, 6, 6, "INT8", "UINT8").conv(8, 1).pool()
    assert counted(made, 2, g.Fold(pe=1))["compare"] == (100 + 2 * (8 + 4), 0, 0)


def test_reorg_pixels_of_stride_3_are_as_counted_by_hand() -> None:
    assert reorg_pixels(g.Reorg(3, "block"), Shape(4, 9, 8)) == 2 * 8 + 6
    assert reorg_pixels(g.Reorg(3), Shape(9, 9, 8)) == (2 * 3 * 2 + 1) * 8 + 3
    assert reorg_pixels(g.Reorg(3), Shape(9, 6, 8)) == 2 * 6 * 8


def test_packing_ranges_fit_their_fields() -> None:
    assert [value_range(4, True), value_range(4, True, True), value_range(4, False)] == [
        Range(-8, 7),
        Range(-7, 7),
        Range(0, 15),
    ]
    assert Range(-3, 5).paired(4) == Range(-3 * 17, 5 * 17)
    assert [Range(-8, 7).in_bits(4), Range(-9, 7).in_bits(4), Range(-8, 8).in_bits(4)] == [True, False, False]
    assert two_weights(Range(-7, 7), Range(0, 15), "DSP48E2") == PackedFields(23, ((1 << 22) - 1) // 105)
    assert four_products(Range(-1, 1), Range(0, 3), "DSP48E2").field == 11  # two fields have at most 23 bits
    assert two_weights(Range(-7, 7), Range(0, 1 << 17), "DSP48E2") == PackedFields(0, 0)  # the value fits neither port


def test_memory_style_changes_at_its_limits() -> None:
    assert [style(18, depth, "auto") for depth in (64, 65)] == ["lutram", "bram"]
    assert [style(*size, "auto") for size in ((8, 128), (8, 129))] == ["lutram", "bram"]
    assert style(1, 1, "uram") == "uram"


def test_usages_add_and_multiply_per_resource() -> None:
    used = StreamingUsage(1, 2, 3, 4, 5, 6)
    assert used + used == StreamingUsage(2, 4, 6, 8, 10, 12)
    assert used.times(3) == StreamingUsage(3, 6, 9, 12, 15, 18)
    assert [StreamingUsage(bram18=count).bram36 for count in (0, 1, 2, 3)] == [0, 1, 1, 2]
    assert (Budget().bram, Budget().uram) == (0.95, 0.95)  # memories have their own columns on the device
