"""Words that came before a word leaves, of single blocks by hand; what waits where branches meet."""

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
    """The only block of a kind, or the last one."""
    return max(index for index, block in enumerate(graph.blocks) if isinstance(block.op, kind))


def alone(made: Layers, kind: type, **fold: object) -> Lag:
    graph = lower(made.network())
    folds = [g.Fold(**fold)] * len(graph.blocks)  # type: ignore[arg-type]
    return lag_of(graph, folds, of(graph, kind))


def test_a_parallel_window_gives_with_the_last_pixel_that_it_sees() -> None:
    """8×10 pixels of a word: a row and a pixel come before the first position, with itself 12, and 5 more for the
    pipeline. At least as much has come as leaves: for the last position nothing more has to come."""
    lag = alone(Layers(4, 8, 10).conv(4, 3, 1, ONE), g.Window, simd=4, style="parallel")
    assert lag.up == pytest.approx((12 + 5) / 80)
    assert lag.low == pytest.approx(0)


def test_a_pool_of_two_gathers_a_row() -> None:
    """4×6 pixels, stride 2: a row and two pixels for the first of six positions; the pipeline takes 5 words."""
    made = Layers(4, 4, 6).conv(4, 1)
    made.add("pool", MaxPool(2, 2, Padding()), Shape(4, 2, 3), 1)
    assert alone(made, MaxPool, pe=4).up == pytest.approx((8 + 5) / 24)


def test_a_default_window_takes_evenly() -> None:
    """8×10 pixels, 3×3 taps: 1 row and 2 pixels for the first position; then 9 words leave for one that comes. 4 words
    land, 8 are of the pipeline."""
    lag = alone(Layers(4, 8, 10).conv(4, 3, 1, ONE), g.Window, simd=4)
    assert (12 + 4 + 8) / 80 <= lag.up <= (12 + 2 + 4 + 8) / 80


def test_a_unit_needs_its_position_and_what_its_pipeline_takes_meanwhile() -> None:
    """4 words a position that are gone over 3 times: in 32 stages 12 go through twice, and 8 more, of which 4 take."""
    lag = alone(Layers(4, 5, 5).conv(12, 1), g.MatrixVector, pe=4, simd=1)
    assert lag.low == 0
    assert lag.up == pytest.approx(1 / 25 + (2 * 4 + 4) / 100)


def test_a_unit_that_goes_over_weights_of_ddr_once_needs_the_whole_map() -> None:
    assert alone(Layers(4, 5, 5).conv(12, 1), g.MatrixVector, pe=4, simd=1, memory="external").up > 1
    assert alone(Layers(4, 5, 5).conv(4, 1).average(), g.GlobalPool, pe=2).up > 1


def test_a_softmax_holds_two_positions_and_its_division() -> None:
    """25 positions of 12 words: 2 · 12 + 16 words, and 10 of its pipeline."""
    lag = alone(Layers(4, 5, 5).conv(12, 1).shares("stable"), g.Softmax)
    assert lag.low == 0
    assert lag.up == pytest.approx((2 * 12 + 16 + 10) / 300)
    assert alone(Layers(4, 1, 1).conv(12, 1).shares("argmax"), g.Softmax).up > 1


def test_lags_add_up_to_a_frame() -> None:
    """A block begins a frame when it is done with the one before: nothing needs the next one's words."""
    lag = Lag(0.1, 0.7) + Lag(-0.2, 0.8)
    assert lag.low == pytest.approx(-0.1)
    assert lag.up == 1


def test_a_converter_of_channels_may_hold_a_pixel() -> None:
    graph = lower(Layers(4, 5, 5).conv(6, 1).conv(4, 1).network())
    folds = [g.Fold()] * len(graph.blocks)
    folds[1], folds[2] = g.Fold(pad_out=2), g.Fold(simd=6)
    (converter,) = edge_of(graph, folds, 2).converters
    assert converter.kind == "channels"
    assert edge_lag(edge_of(graph, folds, 2)) == Lag(-1 / 25, 1 / 25 + 3 / converter.words_in)


def test_a_map_that_passes_a_whole_average_waits_all_of_it() -> None:
    """Squeeze and excite: 6×6 words of 4, a pixel of the converters' and the rounding."""
    made = Layers(4, 6, 6).conv(4, 1)
    made.average().conv(4, 1).upsample(6).product(1, made.last)
    graph = lower(made.network())
    folds = [g.Fold(pe=4, simd=4)] * len(graph.blocks)
    assert waits(graph, folds)[of(graph, g.Multiply), 0] == 36 + 1


def test_a_concat_takes_a_pixel_of_one_map_after_that_of_the_other() -> None:
    """Both come straight from the fork: the second one's 4 words of a pixel wait, as well as the first one's."""
    made = Layers(4, 6, 6).conv(4, 1)
    graph = lower(made.concat(made.last, made.last).network())
    folds = [g.Fold()] * len(graph.blocks)
    words = waits(graph, folds)
    assert set(words) == {(of(graph, g.Concat), 0), (of(graph, g.Concat), 1)}
    assert min(words.values()) >= 4


def test_a_map_waits_until_those_have_left_that_leave_before_it() -> None:
    """Two outputs of 6×6 words leave in one packet."""
    made = Layers(4, 6, 6).conv(4, 1).conv(4, 1).wide()
    made.conv(4, 1, 1, None, False, 1).wide()
    graph = lower(made.network())
    first, second = (index for index, block in enumerate(graph.blocks) if isinstance(block.op, g.Sink))
    words = waits(graph, [g.Fold(pe=4, simd=4)] * len(graph.blocks))
    assert words[second, 0] == 36 + 1
    assert (first, 0) not in words
