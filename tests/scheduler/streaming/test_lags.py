"""The lags of single blocks, computed by hand, and the words that wait where branches meet."""

from __future__ import annotations

import pytest

from cnn.maps import Padding, Shape
from cnn.ops import MaxPool
from scheduler.streaming import graph as g
from scheduler.streaming.lower import lower
from scheduler.streaming.model.converters import edge_of
from scheduler.streaming.model.lag import Lag
from scheduler.streaming.model.lags import edge_lag, lag_of, waits
from tests.support.low_bit import Layers

ONE = Padding(1, 1, 1, 1)


def of(graph: g.StreamGraph, kind: type) -> int:
    """Return the index of the last block of a kind."""
    return max(index for index, block in enumerate(graph.blocks) if isinstance(block.op, kind))


def alone(made: Layers, kind: type, **fold: object) -> Lag:
    graph = lower(made.network())
    folds = [g.Fold(**fold)] * len(graph.blocks)  # type: ignore[arg-type]
    return lag_of(graph, folds, of(graph, kind))


def test_lag_of_a_parallel_window_ends_at_its_last_pixel() -> None:
    """The map has 8×10 pixels of one word. The first position needs a row and two pixels, which are 12 words.

    The pipeline reads 5 more. The least lag is 0, because the last position needs no further pixel.
    """
    lag = alone(Layers(4, 8, 10).conv(4, 3, 1, ONE), g.Window, simd=4, style="parallel")
    assert lag.up == pytest.approx((12 + 5) / 80)
    assert lag.low == pytest.approx(0)


def test_lag_of_a_pool_of_two_is_a_row() -> None:
    """On 4×6 pixels with stride 2, the first position needs a row and two pixels. The pipeline reads 5 more words."""
    made = Layers(4, 4, 6).conv(4, 1)
    made.add("pool", MaxPool(2, 2, Padding()), Shape(4, 2, 3), 1)
    assert alone(made, MaxPool, pe=4).up == pytest.approx((8 + 5) / 24)


def test_lag_of_a_default_window_has_an_even_pace() -> None:
    """On 8×10 pixels with 3×3 taps, the first position needs a row and two pixels. Then 9 words are written per read.

    WALK_LANDING + 1 adds 4 words, and the pipeline 8.
    """
    lag = alone(Layers(4, 8, 10).conv(4, 3, 1, ONE), g.Window, simd=4)
    assert (12 + 4 + 8) / 80 <= lag.up <= (12 + 2 + 4 + 8) / 80


def test_lag_of_a_unit_is_its_position_and_pipeline() -> None:
    """A position has 4 words, which are used in 3 folds. The 32 stages cover two positions, and 4 words of a third."""
    lag = alone(Layers(4, 5, 5).conv(12, 1), g.MatrixVector, pe=4, simd=1)
    assert lag.low == 0
    assert lag.up == pytest.approx(1 / 25 + (2 * 4 + 4) / 100)


def test_lag_of_resident_units_and_global_pools_exceeds_a_frame() -> None:
    assert alone(Layers(4, 5, 5).conv(12, 1), g.MatrixVector, pe=4, simd=1, memory="external").up > 1
    assert alone(Layers(4, 5, 5).conv(4, 1).average(), g.GlobalPool, pe=2).up > 1


def test_lag_of_a_softmax_is_its_delay_lines_and_pipeline() -> None:
    """With 25 positions of 12 words, the delay lines have 2 · 12 + 16 words, and the pipeline 10."""
    lag = alone(Layers(4, 5, 5).conv(12, 1).shares("stable"), g.Softmax)
    assert lag.low == 0
    assert lag.up == pytest.approx((2 * 12 + 16 + 10) / 300)
    assert alone(Layers(4, 1, 1).conv(12, 1).shares("argmax"), g.Softmax).up > 1


def test_sum_of_lags_is_at_most_a_frame() -> None:
    """A block finishes a frame before it starts the next one, so that no word needs the next frame."""
    lag = Lag(0.1, 0.7) + Lag(-0.2, 0.8)
    assert lag.low == pytest.approx(-0.1)
    assert lag.up == 1


def test_lag_of_a_channel_converter_is_a_pixel() -> None:
    graph = lower(Layers(4, 5, 5).conv(6, 1).conv(4, 1).network())
    folds = [g.Fold()] * len(graph.blocks)
    folds[1], folds[2] = g.Fold(pad_out=2), g.Fold(simd=6)
    (converter,) = edge_of(graph, folds, 2).converters
    assert converter.kind == "channels"
    assert edge_lag(edge_of(graph, folds, 2)) == Lag(-1 / 25, 1 / 25 + 3 / converter.words_in)


def test_waits_of_squeeze_and_excite_are_the_whole_map() -> None:
    """In squeeze and excite, all 6×6 words of the direct branch wait, and one more for rounding."""
    made = Layers(4, 6, 6).conv(4, 1)
    made.average().conv(4, 1).upsample(6).product(1, made.last)
    graph = lower(made.network())
    folds = [g.Fold(pe=4, simd=4)] * len(graph.blocks)
    assert waits(graph, folds)[of(graph, g.Multiply), 0] == 36 + 1


def test_waits_of_a_concat_are_a_pixel() -> None:
    """Both inputs are outputs of the same fork. The 4 words of a pixel wait at either input."""
    made = Layers(4, 6, 6).conv(4, 1)
    graph = lower(made.concat(made.last, made.last).network())
    folds = [g.Fold()] * len(graph.blocks)
    words = waits(graph, folds)
    assert set(words) == {(of(graph, g.Concat), 0), (of(graph, g.Concat), 1)}
    assert min(words.values()) >= 4


def test_waits_of_a_second_output_are_the_whole_map() -> None:
    """Two outputs of 6×6 words are sent in one packet."""
    made = Layers(4, 6, 6).conv(4, 1).conv(4, 1).wide()
    made.conv(4, 1, 1, None, False, 1).wide()
    graph = lower(made.network())
    first, second = (index for index, block in enumerate(graph.blocks) if isinstance(block.op, g.Sink))
    words = waits(graph, [g.Fold(pe=4, simd=4)] * len(graph.blocks))
    assert words[second, 0] == 36 + 1
    assert (first, 0) not in words
