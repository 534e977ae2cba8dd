"""The converters between words of different sizes, and their cycles."""

from __future__ import annotations

from itertools import product

from scheduler.streaming import graph as g
from scheduler.streaming.blocks.kinds import WALK_DEPTH
from scheduler.streaming.lower import lower
from scheduler.streaming.model.converters import WIDTH_DEPTH, Converter, Edge, Words, edge_of
from scheduler.streaming.model.cycles import block_cycles
from scheduler.streaming.model.depths import LEAST_UNIT_DEPTH
from scheduler.streaming.weights import weight_matrix
from tests.support.cases import cases
from tests.support.low_bit import Layers


def graph_of(made: Layers) -> g.StreamGraph:
    return lower(made.network())


def test_channel_padding_lengthens_vectors() -> None:
    graph = graph_of(Layers(3, 10, 10).conv(5, 3))
    folds = (g.Fold(simd=3), g.Fold(simd=2, pad_in=1, pad_out=1), g.Fold(simd=12, pe=2, pad_in=1, pad_out=1), g.Fold())
    assert block_cycles(graph, 1, folds[1]) == 12 * 2 + 2 + 100 * 9 * 2 + WALK_DEPTH
    assert block_cycles(graph, 2, folds[2]) == 100 * 3 * 3 + LEAST_UNIT_DEPTH
    assert edge_of(graph, folds, 1).converters == (Converter(3, 2, 3, 4, 100),)
    assert edge_of(graph, folds, 2).converters == (Converter(2, 12, 36, 36, 100),)
    assert edge_of(graph, folds, 3).converters == (Converter(2, 1, 6, 5, 100),)
    assert weight_matrix(graph, folds, 2).shape == (6, 36)
    assert not weight_matrix(graph, folds, 2)[5].any()
    assert not weight_matrix(graph, folds, 2)[:, 3::4].any()


def test_edges_between_equal_words_have_no_converter() -> None:
    graph = graph_of(Layers(3, 8, 8).conv(4, 3))
    folds = (g.Fold(simd=3), g.Fold(simd=3, style="parallel"), g.Fold(simd=27, pe=2), g.Fold(simd=2))
    assert [edge_of(graph, folds, i).converters for i in (1, 2, 3)] == [(), (), ()]


def test_words_of_partial_pixels_are_converted_per_pixel() -> None:
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


def test_channel_padding_is_dropped_before_words_of_several_pixels() -> None:
    graph = graph_of(Layers(8, 6, 3).conv(6, 1).dense(4))
    folds = (g.Fold(simd=8), g.Fold(simd=8, pe=2, pad_out=2), g.Fold(simd=9, pe=4), g.Fold(simd=4))
    assert edge_of(graph, folds, 2).converters == (Converter(2, 3, 8, 6, 18), Converter(3, 9, 6, 6, 18))
    assert [one.kind for one in edge_of(graph, folds, 2).converters] == ["channels", "width"]


@cases(
    "widths, channels, steps",
    [
        ((3, 4), (3, 4), 1),  # one word is written per word read
        ((1, 4), (3, 4), 3),  # three words are read before one is written
        ((1, 2), (2, 8), 2 + 3),  # three words of zeros are written without a read
        ((4, 5), (8, 10), 3),  # the rest of the second word is written one step later
        ((4, 2), (8, 6), 3),
        ((4, 1), (8, 3), 3),  # the second word is read and dropped while the first output is written
        ((1, 1), (6, 2), 6),
    ],
)
def test_channel_converter_cycles_are_steps_per_pixel(
    widths: tuple[int, int], channels: tuple[int, int], steps: int
) -> None:
    assert Converter(*widths, *channels, 100).cycles == 100 * steps + WIDTH_DEPTH


def stepped(lanes_in: int, lanes_out: int, words_in: int, words_out: int) -> int:
    """Return the iterations of the loop in hls_templates/streaming/moving/width.h, by executing it until its end."""
    needed = min(-(-words_out * lanes_out // lanes_in), words_in)
    read = written = values = steps = 0
    while read < words_in or written < words_out:
        steps += 1
        if read < words_in and (values < lanes_out or read >= needed):
            values += lanes_in if read < needed else 0
            read += 1
        if written < words_out and (values >= lanes_out or read == words_in):
            values = max(0, values - lanes_out)
            written += 1
    return steps


WIDTHS = range(1, 8)


@cases("lanes_in, lanes_out", list(product(WIDTHS, WIDTHS)))
def test_converter_steps_are_the_iterations_of_the_loop(lanes_in: int, lanes_out: int) -> None:
    """A channel converter runs the loop per pixel. A width converter runs it per frame of whole words on both sides."""
    for channels_in, channels_out in product(range(lanes_in, 25, lanes_in), range(lanes_out, 25, lanes_out)):
        if channels_in != channels_out:
            steps = stepped(lanes_in, lanes_out, channels_in // lanes_in, channels_out // lanes_out)
            assert Converter(lanes_in, lanes_out, channels_in, channels_out, 7).steps == 7 * steps
    for channels, pixels in product(range(1, 13), (1, 6, 35)):
        values = channels * pixels
        if values % lanes_in == 0 == values % lanes_out:
            converter = Converter(lanes_in, lanes_out, channels, channels, pixels)
            assert (converter.kind, converter.words_in, converter.words_out) == (
                "width",
                values // lanes_in,
                values // lanes_out,
            )
            assert converter.steps == stepped(lanes_in, lanes_out, values // lanes_in, values // lanes_out)


def test_pixel_converter_steps_are_the_words_of_the_busier_side() -> None:
    """3 lanes of 6 values per pixel and 20 pixels are 40 words of one pixel, or 10 words of four pixels."""
    wider, narrower = Converter(3, 12, 6, 6, 20, 1, 4), Converter(12, 3, 6, 6, 20, 4, 1)
    assert (wider.kind, wider.words_in, wider.words_out, wider.steps) == ("pixels", 40, 10, 40)
    assert (narrower.kind, narrower.words_in, narrower.words_out, narrower.steps) == ("pixels", 10, 40, 40)


@cases(
    "written, read, expected",
    [
        # every word has whole pixels, so that values are in order and one converter suffices
        (Words(2, 6, 6), Words(3, 6, 6), (Converter(12, 18, 6, 6, 12),)),
        (Words(2, 6, 6), Words(1, 4, 6), (Converter(12, 4, 6, 6, 12),)),
        (Words(1, 3, 6), Words(1, 2, 6), (Converter(3, 2, 6, 6, 12),)),
        # a word has parts of several pixels
        (Words(2, 3, 6), Words(4, 3, 6), (Converter(6, 12, 6, 6, 12, 2, 4),)),
        (Words(4, 3, 6), Words(2, 3, 6), (Converter(12, 6, 6, 6, 12, 4, 2),)),
        (Words(2, 3, 6), Words(3, 3, 6), (Converter(6, 3, 6, 6, 12, 2, 1), Converter(3, 9, 6, 6, 12, 1, 3))),
        (Words(2, 3, 6), Words(1, 2, 6), (Converter(6, 3, 6, 6, 12, 2, 1), Converter(3, 2, 6, 6, 12))),
        (Words(1, 2, 6), Words(2, 3, 6), (Converter(2, 3, 6, 6, 12), Converter(3, 6, 6, 6, 12, 1, 2))),
        # padding channels are added and dropped
        (Words(1, 3, 6), Words(1, 4, 8), (Converter(3, 4, 6, 8, 12),)),
        (
            Words(2, 4, 8),
            Words(2, 4, 4),
            (Converter(8, 4, 8, 8, 12, 2, 1), Converter(4, 4, 8, 4, 12), Converter(4, 8, 4, 4, 12, 1, 2)),
        ),
        (
            Words(2, 3, 6),
            Words(2, 3, 9),
            (Converter(6, 3, 6, 6, 12, 2, 1), Converter(3, 3, 6, 9, 12), Converter(3, 6, 9, 9, 12, 1, 2)),
        ),
        (Words(1, 2, 4), Words(1, 9, 6), (Converter(2, 3, 4, 6, 12), Converter(3, 9, 6, 6, 12))),
        (Words(1, 4, 8), Words(1, 9, 6), (Converter(4, 3, 8, 6, 12), Converter(3, 9, 6, 6, 12))),
    ],
)
def test_converters_between_words_are_as_expected(written: Words, read: Words, expected: tuple[Converter, ...]) -> None:
    graph = graph_of(Layers(6, 3, 4).conv(6, 1))

    class Between(Edge):
        """An edge with the words of the test's case."""

        @property
        def written(self) -> Words:
            return written

        @property
        def read(self) -> Words:
            return read

    assert Between(graph, 1, 0, g.Fold(), g.Fold()).converters == expected


def test_words_are_in_order_if_pixels_are_whole_or_single() -> None:
    for words in (Words(1, 3, 6), Words(2, 3, 6), Words(2, 6, 6)):
        assert words.size == words.pixels * words.lanes
    assert [words.are_in_order for words in (Words(1, 3, 6), Words(2, 3, 6), Words(2, 6, 6))] == [True, False, True]
