"""The values per word at the inputs and outputs of folded blocks."""

from __future__ import annotations

from scheduler.streaming import graph as g
from scheduler.streaming.lanes import in_lanes, out_lanes
from scheduler.streaming.lower import lower
from tests.support.low_bit import Layers


def graph_of(made: Layers) -> g.StreamGraph:
    return lower(made.network())


def test_lanes_of_windows_and_units_follow_from_the_fold() -> None:
    _, window, unit, _ = graph_of(Layers(4, 8, 8).conv(6, 3)).blocks
    assert out_lanes(window, g.Fold(simd=2)) == 2
    assert out_lanes(window, g.Fold(simd=2, style="parallel")) == 18
    assert out_lanes(window, g.Fold(simd=4, style="parallel", m=2)) == 72
    assert (in_lanes(unit, g.Fold(simd=9, pe=3)), out_lanes(unit, g.Fold(simd=9, pe=3))) == (9, 3)
    vvu = graph_of(Layers(4, 8, 8).depthwise()).blocks[2]
    assert (in_lanes(vvu, g.Fold(simd=9, pe=2)), out_lanes(vvu, g.Fold(simd=9, pe=2))) == (18, 2)
