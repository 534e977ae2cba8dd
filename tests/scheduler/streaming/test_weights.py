"""Weights as matrices in the order of the stream, and as tiles."""

from __future__ import annotations

import numpy as np

from scheduler.streaming import graph as g
from scheduler.streaming.lower import lower
from scheduler.streaming.weights import weight_matrix, weight_tiles
from tests.support.cases import cases
from tests.support.low_bit import Layers


def graph_of(made: Layers) -> g.StreamGraph:
    return lower(made.network())


@cases("style, simd", [("default", 2), ("parallel", 1), ("parallel", 2), ("parallel", 4)])
def test_weight_matrix_after_a_window_has_its_order(style: str, simd: int) -> None:
    """The matrix times a window's values, listed by hand in the order of the stream, is the convolution."""
    graph = graph_of(Layers(4, 5, 6).conv(3, 3))
    unit = graph.blocks[2].op
    assert isinstance(unit, g.MatrixVector)
    folds = (g.Fold(), g.Fold(simd=simd, style=style), g.Fold(), g.Fold())
    patch = np.random.default_rng(1).integers(0, 16, (4, 3, 3))
    groups = [range(4)] if style == "default" else [range(c, c + simd) for c in range(0, 4, simd)]
    stream = [patch[c, y, x] for group in groups for y in range(3) for x in range(3) for c in group]
    expected = (unit.weights.astype(np.int64) * patch).sum(axis=(1, 2, 3))
    assert np.array_equal(weight_matrix(graph, folds, 2).astype(np.int64) @ np.array(stream), expected)


def test_weight_matrix_of_a_dense_layer_has_the_channels_of_each_pixel_together() -> None:
    graph = graph_of(Layers(2, 3, 2).dense(4))
    weights = graph.blocks[1].op.weights  # type: ignore[union-attr]
    got = weight_matrix(graph, (g.Fold(),) * 3, 1)
    assert np.array_equal(got, weights.transpose(0, 2, 3, 1).reshape(4, -1))


def test_weight_matrix_of_a_depthwise_layer_has_a_row_of_taps_per_channel() -> None:
    graph = graph_of(Layers(4, 5, 5).depthwise())
    got = weight_matrix(graph, (g.Fold(), g.Fold(simd=2, style="parallel"), g.Fold(pe=2), g.Fold()), 2)
    assert np.array_equal(got, graph.blocks[2].op.weights.reshape(4, 9))  # type: ignore[union-attr]


def test_weight_tiles_have_shape_pe_folds_simd() -> None:
    tiles = weight_tiles(np.arange(24).reshape(4, 6), 2, 3)
    assert tiles.shape == (2, 4, 3)
    assert tiles[1].tolist() == [[6, 7, 8], [9, 10, 11], [18, 19, 20], [21, 22, 23]]
