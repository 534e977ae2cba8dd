"""Words and cycles of folds; weights in the order of the stream."""

from __future__ import annotations

import numpy as np
import pytest

from cnn.network import Padding
from scheduler.streaming import graph as g
from scheduler.streaming.lanes import in_lanes, out_lanes
from scheduler.streaming.lower import lower
from scheduler.streaming.model.converters import Converter, edge_of
from scheduler.streaming.model.cycles import block_cycles, bottleneck, frame_cycles
from scheduler.streaming.weights import weight_matrix, weight_tiles
from tests.low_bit import Layers, ultranet


def graph_of(made: Layers) -> g.StreamGraph:
    return lower(made.network())


def test_lanes_of_windows_and_units() -> None:
    _, window, unit, _ = graph_of(Layers(4, 8, 8).conv(6, 3)).blocks
    assert out_lanes(window, g.Fold(simd=2)) == 2
    assert out_lanes(window, g.Fold(simd=2, style="parallel")) == 18
    assert out_lanes(window, g.Fold(simd=4, style="parallel", m=2)) == 72
    assert (in_lanes(unit, g.Fold(simd=9, pe=3)), out_lanes(unit, g.Fold(simd=9, pe=3))) == (9, 3)
    vvu = graph_of(Layers(4, 8, 8).depthwise()).blocks[2]
    assert (in_lanes(vvu, g.Fold(simd=9, pe=2)), out_lanes(vvu, g.Fold(simd=9, pe=2))) == (18, 2)


def test_cycles_of_a_window_are_those_of_its_busier_side() -> None:
    graph = graph_of(Layers(8, 10, 10).conv(4, 3))
    assert block_cycles(graph, 1, g.Fold(simd=2)) == 100 * 9 * 4
    assert block_cycles(graph, 1, g.Fold(simd=2, style="parallel")) == 100 * 4
    strided = graph_of(Layers(8, 10, 10).conv(4, 3, 2))
    assert block_cycles(strided, 1, g.Fold(simd=2, style="parallel")) == 100 * 4  # all that comes has to be read


def test_cycles_of_units() -> None:
    graph = graph_of(Layers(8, 10, 10).conv(4, 3))
    assert block_cycles(graph, 2, g.Fold(simd=24, pe=2)) == 100 * 3 * 2
    assert block_cycles(graph, 2, g.Fold(simd=24, pe=2, pixels=2)) == 50 * 3 * 2
    depthwise = graph_of(Layers(8, 10, 10).depthwise())
    assert block_cycles(depthwise, 2, g.Fold(simd=3, pe=4)) == 100 * 3 * 2
    dense = graph_of(Layers(8, 2, 2).dense(10))
    assert block_cycles(dense, 1, g.Fold(simd=4, pe=5)) == 8 * 2


def test_padding_makes_vectors_longer() -> None:
    graph = graph_of(Layers(3, 10, 10).conv(5, 3))
    folds = (g.Fold(simd=3), g.Fold(simd=2, pad_in=1, pad_out=1), g.Fold(simd=12, pe=2, pad_in=1, pad_out=1), g.Fold())
    assert block_cycles(graph, 1, folds[1]) == 100 * 9 * 2
    assert block_cycles(graph, 2, folds[2]) == 100 * 3 * 3
    assert edge_of(graph, folds, 1).converters == (Converter(3, 2, 3, 4, 100),)
    assert edge_of(graph, folds, 2).converters == (Converter(2, 12, 36, 36, 100),)
    assert edge_of(graph, folds, 3).converters == (Converter(2, 1, 6, 5, 100),)
    assert weight_matrix(graph, folds, 2).shape == (6, 36)
    assert not weight_matrix(graph, folds, 2)[5].any()
    assert not weight_matrix(graph, folds, 2)[:, 3::4].any()


def test_no_converter_stands_where_words_are_alike() -> None:
    graph = graph_of(Layers(3, 8, 8).conv(4, 3))
    folds = (g.Fold(simd=3), g.Fold(simd=3, style="parallel"), g.Fold(simd=27, pe=2), g.Fold(simd=2))
    assert [edge_of(graph, folds, i).converters for i in (1, 2, 3)] == [(), (), ()]


def test_the_bottleneck_may_be_a_converter() -> None:
    graph = graph_of(Layers(64, 8, 8).conv(4, 1))
    folds = (g.Fold(simd=64), g.Fold(simd=64, pe=4), g.Fold(simd=4))
    assert bottleneck(graph, folds)[1] == 64
    slow = (g.Fold(simd=1), g.Fold(simd=64, pe=4), g.Fold(simd=4))
    assert bottleneck(graph, slow) == ("input", 4096)


def test_ultranet_at_the_balance_of_the_fastest_contest_design() -> None:
    """Every layer at 102,400 cycles: PE · SIMD as its multiply-accumulates ask for."""
    graph = lower(ultranet())
    units = [i for i, b in enumerate(graph.blocks) if isinstance(b.op, g.MatrixVector)]
    ways = [(8, 27), (4, 144), (8, 72), (4, 72), *[(1, 72)] * 4, (6, 1)]
    assert [block_cycles(graph, i, g.Fold(pe=pe, simd=simd)) for i, (pe, simd) in zip(units, ways, strict=True)] == [
        *[102_400] * 8,
        200 * 6 * 64,
    ]


@pytest.mark.parametrize(("style", "simd"), [("default", 2), ("parallel", 1), ("parallel", 2), ("parallel", 4)])
def test_weights_are_in_the_order_that_the_window_gives(style: str, simd: int) -> None:
    """A window done by hand, in the contract's order, times the matrix equals the convolution."""
    graph = graph_of(Layers(4, 5, 6).conv(3, 3))
    unit = graph.blocks[2].op
    assert isinstance(unit, g.MatrixVector)
    folds = (g.Fold(), g.Fold(simd=simd, style=style), g.Fold(), g.Fold())
    patch = np.random.default_rng(1).integers(0, 16, (4, 3, 3))
    groups = [range(4)] if style == "default" else [range(c, c + simd) for c in range(0, 4, simd)]
    stream = [patch[c, y, x] for group in groups for y in range(3) for x in range(3) for c in group]
    expected = (unit.weights.astype(np.int64) * patch).sum(axis=(1, 2, 3))
    assert np.array_equal(weight_matrix(graph, folds, 2).astype(np.int64) @ np.array(stream), expected)


def test_weights_of_a_connected_layer_are_pixel_by_pixel() -> None:
    graph = graph_of(Layers(2, 3, 2).dense(4))
    weights = graph.blocks[1].op.weights  # type: ignore[union-attr]
    got = weight_matrix(graph, (g.Fold(),) * 3, 1)
    assert np.array_equal(got, weights.transpose(0, 2, 3, 1).reshape(4, -1))


def test_weights_of_a_depthwise_layer_are_a_row_of_taps_a_channel() -> None:
    graph = graph_of(Layers(4, 5, 5).depthwise())
    got = weight_matrix(graph, (g.Fold(), g.Fold(simd=2, style="parallel"), g.Fold(pe=2), g.Fold()), 2)
    assert np.array_equal(got, graph.blocks[2].op.weights.reshape(4, 9))  # type: ignore[union-attr]


def test_tiles_are_pe_by_folds_by_simd() -> None:
    tiles = weight_tiles(np.arange(24).reshape(4, 6), 2, 3)
    assert tiles.shape == (2, 4, 3)
    assert tiles[1].tolist() == [[6, 7, 8], [9, 10, 11], [18, 19, 20], [21, 22, 23]]


def test_the_frame_takes_what_its_slowest_block_does() -> None:
    graph = lower(ultranet())
    folds = tuple(g.Fold() for _ in graph.blocks)
    assert frame_cycles(graph, folds) == 80 * 160 * 32 * 144
    assert bottleneck(graph, folds)[0] == "conv3"


def test_words_of_two_pixels_halve_the_cycles_and_a_stride_takes_them_back() -> None:
    graph = graph_of(Layers(4, 8, 8).conv(6, 3).pool())
    window, unit, pool = (
        g.Fold(simd=4, style="parallel", m=2),
        g.Fold(simd=36, pe=6, m=2, pixels=2),
        g.Fold(pe=6, m=2),
    )
    assert [block_cycles(graph, i, fold) for i, fold in ((1, window), (2, unit), (3, pool))] == [32, 32, 32]
    assert out_lanes(graph.blocks[3], pool) == 6
    folds = (g.Fold(simd=4), window, unit, pool, g.Fold(simd=6))
    assert edge_of(graph, folds, 1).converters == (Converter(4, 8, 4, 4, 64),)
    assert [edge_of(graph, folds, i).converters for i in (2, 3, 4)] == [(), (), ()]


def test_parts_of_two_pixels_are_regrouped_one_pixel_at_a_time() -> None:
    graph = graph_of(Layers(4, 8, 8).conv(6, 3).pool())
    unit, pool = g.Fold(simd=4, pe=2, m=2, pixels=2), g.Fold(pe=3, m=2)
    folds = (g.Fold(), g.Fold(), unit, pool, g.Fold())
    assert edge_of(graph, folds, 3).converters == (
        Converter(4, 2, 6, 6, 64, 2, 1),
        Converter(2, 3, 6, 6, 64),
        Converter(3, 6, 6, 6, 64, 1, 2),
    )
    same = (*folds[:3], g.Fold(pe=2), g.Fold())
    assert edge_of(graph, same, 3).converters == (Converter(4, 2, 6, 6, 64, 2, 1),)
    assert [c.kind for c in edge_of(graph, folds, 3).converters] == ["pixels", "width", "pixels"]


def test_padding_is_dropped_pixel_by_pixel_before_words_of_more_than_a_pixel() -> None:
    graph = graph_of(Layers(8, 6, 3).conv(6, 1).dense(4))
    folds = (g.Fold(simd=8), g.Fold(simd=8, pe=2, pad_out=2), g.Fold(simd=9, pe=4), g.Fold(simd=4))
    assert edge_of(graph, folds, 2).converters == (Converter(2, 3, 8, 6, 18), Converter(3, 9, 6, 6, 18))
    assert [one.kind for one in edge_of(graph, folds, 2).converters] == ["channels", "width"]


def test_a_window_that_gathers_more_than_it_reads_walks_on_to_its_end() -> None:
    made = Layers(4, 8, 8).conv(6, 3, 1, Padding(2, 2, 2, 2))
    assert block_cycles(graph_of(made), 1, g.Fold(simd=4, style="parallel")) == 10 * 10


def test_weights_from_ddr_take_a_cycle_a_beat() -> None:
    graph = graph_of(Layers(8, 2, 2).dense(12))
    near, far = (g.Fold(simd=16, pe=6, memory=memory) for memory in ("decoupled", "external"))
    assert block_cycles(graph, 1, near) == 2 * 2
    assert block_cycles(graph, 1, far) == 2 * 2 * 3  # 96 weights of 4 bits are three beats of 128


def test_weights_from_ddr_meet_all_positions_of_a_frame() -> None:
    graph = graph_of(Layers(8, 10, 10).conv(8, 3))
    far = g.Fold(simd=24, pe=4, pixels=2, memory="external")
    assert block_cycles(graph, 2, far) == 50 * (3 + 3 * 2 + 2)
    wide = g.Fold(simd=72, pe=8, m=10, pixels=10, memory="external")
    assert block_cycles(graph, 2, wide) == 10 * (1 + 1) + 18  # 576 weights are 18 beats, and there are but 10 positions


@pytest.mark.parametrize(
    ("widths", "channels", "steps"),
    [
        ((3, 4), (3, 4), 1),  # a word becomes a wider one
        ((1, 4), (3, 4), 3),  # three words are taken before one leaves
        ((1, 2), (2, 8), 2 + 3),  # three words of zeros leave while none comes
        ((4, 5), (8, 10), 3),  # what is left of the second word leaves after it
        ((4, 2), (8, 6), 3),
        ((4, 1), (8, 3), 3),  # the second word comes, to be dropped, while the first one leaves
        ((1, 1), (6, 2), 6),
    ],
)
def test_channels_are_changed_pixel_by_pixel(widths: tuple[int, int], channels: tuple[int, int], steps: int) -> None:
    assert Converter(*widths, *channels, 100).cycles == 100 * steps
