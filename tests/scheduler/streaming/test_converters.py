"""What stands between words that differ, and how long it takes."""

from __future__ import annotations

import pytest

from scheduler.streaming import graph as g
from scheduler.streaming.lower import lower
from scheduler.streaming.model.converters import Converter, edge_of
from scheduler.streaming.model.cycles import block_cycles
from scheduler.streaming.weights import weight_matrix
from tests.low_bit import Layers


def graph_of(made: Layers) -> g.StreamGraph:
    return lower(made.network())


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
