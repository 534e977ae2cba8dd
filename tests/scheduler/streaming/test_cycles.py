"""The cycles per frame of blocks and of whole foldings."""

from __future__ import annotations

from cnn.maps import Padding, Shape
from cnn.ops import MaxPool
from scheduler.streaming import graph as g
from scheduler.streaming.blocks.kinds import KINDS, WALK_DEPTH
from scheduler.streaming.lanes import out_lanes
from scheduler.streaming.lower import lower
from scheduler.streaming.model.converters import WIDTH_DEPTH, Converter, edge_of
from scheduler.streaming.model.cycles import (
    block_cycles,
    bottleneck,
    frame_cycles,
    resident,
    tile_beats,
)
from scheduler.streaming.model.depths import LEAST_UNIT_DEPTH, RESIDENT_DEPTH, SCAN_DEPTH, unit_depth
from tests.support.low_bit import Layers, ultranet


def graph_of(made: Layers) -> g.StreamGraph:
    return lower(made.network())


UNIT = LEAST_UNIT_DEPTH
"""The cycles in which a unit's pipeline runs empty before the next frame."""


def test_cycles_of_a_window_are_its_busier_side_and_its_wait() -> None:
    """A window takes the cycles of its busier side, and the wait for the first position: a row and two pixels.

    A parallel window needs a further row and pixel of padding for its last position.
    """
    graph = graph_of(Layers(8, 10, 10).conv(4, 3))
    assert block_cycles(graph, 1, g.Fold(simd=2)) == 12 * 4 + 2 + 100 * 9 * 4 + WALK_DEPTH
    assert block_cycles(graph, 1, g.Fold(simd=2, style="parallel")) == 111 * 4 + SCAN_DEPTH
    strided = graph_of(Layers(8, 10, 10).conv(4, 3, 2))
    assert (
        block_cycles(strided, 1, g.Fold(simd=2, style="parallel")) == 100 * 4 + SCAN_DEPTH
    )  # every input word has to be read


def test_cycles_of_units_are_groups_times_folds() -> None:
    graph = graph_of(Layers(8, 10, 10).conv(4, 3))
    assert block_cycles(graph, 2, g.Fold(simd=24, pe=2)) == 100 * 3 * 2 + UNIT
    assert block_cycles(graph, 2, g.Fold(simd=24, pe=2, pixels=2)) == 50 * 3 * 2 + UNIT
    depthwise = graph_of(Layers(8, 10, 10).depthwise())
    assert block_cycles(depthwise, 2, g.Fold(simd=3, pe=4)) == 100 * 3 * 2 + UNIT
    dense = graph_of(Layers(8, 2, 2).dense(10))
    assert block_cycles(dense, 1, g.Fold(simd=4, pe=5)) == 8 * 2 + UNIT


def test_cycles_of_a_label_select_are_its_words() -> None:
    """All words of a position are read for any number of labels. The tree has a stage per label and level."""
    graph = graph_of(Layers(8, 2, 2).conv(30, 1).choose(5))
    assert block_cycles(graph, 2, g.Fold()) == 4 * 30 + 3
    assert block_cycles(graph, 2, g.Fold(pe=6)) == 4 * 5 + 3 + 5 * 3
    assert block_cycles(graph, 2, g.Fold(pe=10)) == 4 * 3 + 3 + 5 * 4
    assert out_lanes(graph.blocks[2], g.Fold(pe=6)) == 5


def test_cycles_of_a_softmax_include_its_delay_lines() -> None:
    """4 positions of 30 channels are delayed by some positions and by the cycles of the division.

    The delays are two positions and 16 cycles for stable, one and 36 for latency, and one position for argmax. The
    pipeline has a stage per two values.
    """
    stages = {"stable": (2, 16), "latency": (1, 36), "argmax": (1, 0)}
    for method, (positions, division) in stages.items():
        graph = graph_of(Layers(8, 2, 2).conv(30, 1).shares(method))
        for pe, words in ((1, 30), (6, 5), (30, 1)):
            depth = 4 + pe if method == "argmax" else 10 + pe // 2
            assert block_cycles(graph, 2, g.Fold(pe=pe)) == (4 + positions) * words + division + depth
            assert out_lanes(graph.blocks[2], g.Fold(pe=pe)) == pe


def test_bottleneck_may_be_the_input() -> None:
    graph = graph_of(Layers(64, 8, 8).conv(4, 1))
    folds = (g.Fold(simd=64), g.Fold(simd=64, pe=4), g.Fold(simd=4))
    assert bottleneck(graph, folds)[1] == 64 + unit_depth(64)
    slow = (g.Fold(simd=1), g.Fold(simd=64, pe=4), g.Fold(simd=4))
    assert bottleneck(graph, slow) == ("input", 4096 + KINDS[g.Source].depth)


def test_cycles_of_ultranet_balance_at_the_contest_design() -> None:
    """Every layer takes 102,400 cycles and its pipeline, with PE · SIMD in proportion to its multiply-accumulates."""
    graph = lower(ultranet())
    units = [i for i, b in enumerate(graph.blocks) if isinstance(b.op, g.MatrixVector)]
    ways = [(8, 27), (4, 144), (8, 72), (4, 72), *[(1, 72)] * 4, (6, 1)]
    assert [block_cycles(graph, i, g.Fold(pe=pe, simd=simd)) for i, (pe, simd) in zip(units, ways, strict=True)] == [
        *[102_400 + unit_depth(simd) for _, simd in ways[:8]],
        200 * 6 * 64 + UNIT,
    ]


def test_frame_cycles_are_those_of_the_slowest_block() -> None:
    graph = lower(ultranet())
    folds = tuple(g.Fold() for _ in graph.blocks)
    assert frame_cycles(graph, folds) == 80 * 160 * 32 * 144 + UNIT
    assert bottleneck(graph, folds)[0] == "conv3"


def test_words_of_two_pixels_halve_the_cycles() -> None:
    graph = graph_of(Layers(4, 8, 8).conv(6, 3).pool())
    window, unit, pool = (
        g.Fold(simd=4, style="parallel", m=2),
        g.Fold(simd=36, pe=6, m=2, pixels=2),
        g.Fold(pe=6, m=2),
    )
    assert [block_cycles(graph, i, fold) for i, fold in ((1, window), (2, unit), (3, pool))] == [
        37 + SCAN_DEPTH,
        32 + UNIT,
        33 + SCAN_DEPTH,
    ]
    assert out_lanes(graph.blocks[3], pool) == 6
    folds = (g.Fold(simd=4), window, unit, pool, g.Fold(simd=6))
    assert edge_of(graph, folds, 1).converters == (Converter(4, 8, 4, 4, 64),)
    assert [edge_of(graph, folds, i).converters for i in (2, 3, 4)] == [(), (), ()]


def test_cycles_of_a_padded_window_include_the_padding() -> None:
    made = Layers(4, 8, 8).conv(6, 3, 1, Padding(2, 2, 2, 2))
    assert block_cycles(graph_of(made), 1, g.Fold(simd=4, style="parallel")) == 10 * 10 + SCAN_DEPTH


def test_external_weights_take_a_cycle_per_beat() -> None:
    graph = graph_of(Layers(8, 2, 2).dense(12))
    near, far = (g.Fold(simd=16, pe=6, memory=memory) for memory in ("decoupled", "external"))
    assert block_cycles(graph, 1, near) == 2 * 2 + UNIT
    assert block_cycles(graph, 1, far) == 2 * 2 * 3 + UNIT  # 96 weights of 4 bits are three beats of 128 bits


def test_resident_units_read_weights_once_per_frame() -> None:
    graph = graph_of(Layers(8, 10, 10).conv(8, 3))
    far = g.Fold(simd=24, pe=4, pixels=2, memory="external")
    assert block_cycles(graph, 2, far) == 50 * (3 + 3 * 2 + 2) + UNIT + RESIDENT_DEPTH
    wide = g.Fold(simd=72, pe=8, m=10, pixels=10, memory="external")
    assert block_cycles(graph, 2, wide) == 10 * (1 + 1) + 18 + unit_depth(72) + RESIDENT_DEPTH  # 18 beats, 10 positions


def test_bottleneck_may_be_a_converter_that_adds_channels() -> None:
    """Per pixel, 2 words are read and 4 are written, in 5 cycles.

    The first zeros are written with the values of the second word. Then 3 words of zeros are written without a read.
    """
    graph = graph_of(Layers(2, 10, 10).conv(4, 1))
    folds = (g.Fold(simd=1), g.Fold(simd=2, pe=4, pad_in=6), g.Fold(simd=4))
    assert block_cycles(graph, 1, folds[1]) == 100 * 4 + UNIT
    assert bottleneck(graph, folds) == ("the width converter before conv1", 100 * 5 + WIDTH_DEPTH)
    assert frame_cycles(graph, folds) == 500 + WIDTH_DEPTH


def test_bottleneck_of_equal_blocks_is_the_first() -> None:
    graph = graph_of(Layers(1, 1, 1).conv(1, 1).conv(1, 1))
    assert bottleneck(graph, [g.Fold()] * len(graph.blocks)) == ("conv1", 1 + UNIT)


def test_cycles_of_a_padded_pool_include_the_padding() -> None:
    """9×9 pixels are scanned, because 5 windows of 3 pixels with stride 2 and padding 2 end at the ninth pixel."""
    made = Layers(4, 8, 8).conv(6, 1)
    made.add("pool", MaxPool(3, 2, Padding(2, 2, 2, 2)), Shape(6, 5, 5))
    assert block_cycles(graph_of(made), 2, g.Fold(pe=2)) == 9 * 9 * 3 + SCAN_DEPTH
    assert block_cycles(graph_of(made), 2, g.Fold(pe=6, m=2)) == 9 * 5 + SCAN_DEPTH  # 9 columns are 5 words of 2


def test_cycles_of_a_pool_include_unused_pixels() -> None:
    """The pool reads 9×7 pixels and writes 3×2."""
    made = Layers(4, 9, 7).conv(6, 1)
    made.add("pool", MaxPool(3, 3, Padding()), Shape(6, 3, 2))
    assert block_cycles(graph_of(made), 2, g.Fold(pe=3)) == 9 * 7 * 2 + SCAN_DEPTH


def test_cycles_of_an_incomplete_last_word_are_rounded_up() -> None:
    """15 pixels of 6 values are 23 words of 4 values."""
    graph = graph_of(Layers(6, 3, 5).conv(2, 1))
    assert block_cycles(graph, 0, g.Fold(simd=4)) == 23 + KINDS[g.Source].depth
    assert (
        block_cycles(graph, 1, g.Fold(simd=6, pe=2, pixels=4)) == 15 + UNIT
    )  # the 15 input words exceed the 4 groups of positions
    assert block_cycles(graph, 1, g.Fold(simd=6, pe=1, pixels=1)) == 15 * 2 + UNIT


def test_resident_needs_external_weights_and_several_positions() -> None:
    """A unit is resident if it has more positions than ``pixels`` and its weights are in DDR.

    A dense layer has one position.
    """
    dense, conv = graph_of(Layers(8, 2, 2).dense(12)), graph_of(Layers(4, 2, 2).conv(2, 1))
    far = g.Fold(simd=4, pe=2, memory="external")
    assert not resident(dense.blocks[1], far)
    assert resident(conv.blocks[1], far)
    assert not resident(conv.blocks[1], g.Fold(simd=4, pe=2, memory="external", pixels=4))
    assert not resident(conv.blocks[1], g.Fold(simd=4, pe=2))
    assert not resident(conv.blocks[0], far)
    assert [tile_beats(conv.blocks[1], fold) for fold in (far, g.Fold(simd=4, pe=2))] == [1, 1]
    assert tile_beats(dense.blocks[1], g.Fold(simd=32, pe=1, memory="external")) == 1  # 128 bits
    assert tile_beats(dense.blocks[1], g.Fold(simd=32, pe=2, memory="external")) == 2
    assert tile_beats(dense.blocks[1], g.Fold(simd=11, pe=3, memory="external")) == 2  # 132 bits
