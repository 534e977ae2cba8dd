"""The values that wait before joins of paths with different delays."""

from __future__ import annotations

from boards.board import load
from cnn.maps import Padding, Shape
from cnn.ops import MaxPool, Reorg
from scheduler.streaming import graph as g
from scheduler.streaming.lower import lower
from scheduler.streaming.model.lags import waits
from scheduler.streaming.model.waiting import _first_position, depth_of, depths, waiting
from tests.support.cases import cases
from tests.support.low_bit import Layers, skipping, ultranet

ULTRA96, PYNQ = load("ultra96-v2"), load("pynq-z2")


def test_waiting_of_a_skip_connection_covers_its_rows() -> None:
    graph = lower(skipping())
    index = next(i for i, block in enumerate(graph.blocks) if isinstance(block.op, g.Concat))
    late = waiting(graph)
    assert set(late) == {(index, 1)} or set(late) == {(index, 0)}
    ((_, port),) = late
    words = depth_of(graph, index, port, g.Fold(simd=4))
    assert words == 2 + -(-late[index, port] // 4)
    folds = [g.Fold(simd=4)] * len(graph.blocks)
    least = {place: 2 + count for place, count in waits(graph, folds).items()}
    assert words < least[index, port]  # the lags also count the words in pipelines
    assert {(index, port): depth for index, port, depth in depths(graph, folds)} == least


def test_waiting_of_a_chain_is_empty() -> None:
    assert waiting(lower(ultranet())) == {}


ONE, TWO = Padding(1, 1, 1, 1), Padding(2, 2, 2, 2)


def values_that_wait(made: Layers, kind: type[g.BlockOp] = g.Add) -> dict[int, int]:
    """Return the values that wait at each input of the only block of this kind. No other block has any."""
    graph = lower(made.network())
    (join,) = (index for index, block in enumerate(graph.blocks) if isinstance(block.op, kind))
    assert {index for index, _ in waiting(graph)} <= {join}
    return {port: values for (_, port), values in waiting(graph).items()}


def pooled(made: Layers, size: int, stride: int, padding: Padding, shape: Shape, source: int) -> Layers:
    return made.add("pool", MaxPool(size, stride, padding), shape, source)


@cases(
    "kernel, padding, before",
    [
        (3, ONE, 12 + 1),  # the first window needs a row and a pixel
        (5, TWO, 2 * 12 + 2),
        (3, Padding(2, 0, 0, 2), 2),
        (3, Padding(0, 2, 2, 0), 2 * 12),
        (1, Padding(), 0),
    ],
)
def test_waiting_next_to_a_window_is_its_first_rows(kernel: int, padding: Padding, before: int) -> None:
    """Maps have 10×12 pixels of 4 values. One row is added. A pool gathers the same pixels as a convolution."""
    made = Layers(4, 10, 12).conv(4, 1)
    expected = {1: 4 * before + 4 * 12} if before else {}
    assert values_that_wait(Layers(4, 10, 12).conv(4, 1).conv(4, kernel, 1, padding).sum(2, 1)) == expected
    assert values_that_wait(Layers(4, 10, 12).conv(4, 1).conv(0, kernel, 1, padding, True).sum(2, 1)) == expected
    assert values_that_wait(pooled(made, kernel, 1, padding, Shape(4, 10, 12), 1).sum(2, 1)) == expected


def test_first_position_follows_kernel_and_padding() -> None:
    """The taps are 3×5 with distance 2, so that they cover 5×9 pixels.

    With 1 row and 2 columns of padding, the first window needs 3 rows of 10 pixels and 6 pixels.
    """
    shape = Shape(1, 16, 10)
    assert 160 * _first_position((3, 5), 2, Padding(1, 2), shape) == 36
    assert 160 * _first_position((5, 3), 1, Padding(), shape) == 4 * 10 + 2
    assert 160 * _first_position((1, 1), 1, Padding(1, 1, 1, 1), shape) == 0


def test_waiting_adds_up_along_a_path() -> None:
    """The first convolution delays its map by 13 pixels of 120, and the second by 13 more."""
    assert values_that_wait(Layers(4, 10, 12).conv(4, 1).conv(4, 3).conv(4, 3).sum(3, 1)) == {1: 4 * 26 + 4 * 12}
    assert values_that_wait(Layers(4, 10, 12).conv(4, 1).conv(4, 3).conv(4, 3).sum(1, 3)) == {0: 4 * 26 + 4 * 12}
    three = Layers(4, 10, 12).conv(4, 1).conv(4, 3).conv(4, 3).sum(3, 2, 1)
    assert values_that_wait(three) == {1: 4 * 13 + 4 * 12, 2: 4 * 26 + 4 * 12}


def test_waiting_after_a_stride_is_scaled() -> None:
    """A pool delays a map of 8×12 pixels by 13 pixels, and the window on its 4×6 output by 7 of 24, which is 28 of 96.

    The 3×3 convolution with stride 2 delays the other map by 13 pixels of 96.
    """
    made = Layers(4, 8, 12).conv(4, 1)
    made = pooled(made, 2, 2, Padding(), Shape(4, 4, 6), 1).conv(4, 3)
    fine = made.conv(4, 3, 2, ONE, False, 1).last
    assert values_that_wait(made.sum(3, fine)) == {1: (13 + 28 - 13) * 4 // 4 + 4 * 6}


@cases(
    "height, order, before",
    [
        (8, "darknet", 2 * 12 + 2),  # in groups of 4 rows, the first output needs the third row
        (6, "darknet", 6 * 12),  # rows of different groups are combined, so that the whole map is gathered
        (8, "block", 12 + 2),
        (6, "block", 12 + 2),
    ],
)
def test_waiting_next_to_a_reorg_follows_its_order(height: int, order: str, before: int) -> None:
    """The other path is a convolution of stride 2, whose 2×2 window gathers a row and a pixel."""
    made = Layers(4, height, 12).conv(4, 1).conv(16, 2, 2, Padding())
    made.add("reorg", Reorg(2, order), Shape(16, height // 2, 6), 1)
    found = values_that_wait(made.sum(2, 3))
    apart = (before - 13) * 16 * (height // 2) * 6 // (height * 12)
    assert found == {0: apart + 16 * 6}


def test_waiting_of_paths_over_the_whole_map_is_empty() -> None:
    """An average, a dense layer, and a window of the map's size all need its last pixel."""
    made = Layers(4, 5, 5).conv(4, 1)
    average = made.average().last
    made.add("average", made.nodes[average].op, Shape(4, 1, 1), 1)
    assert values_that_wait(made.sum(average, made.last)) == {}
    made = Layers(4, 5, 5).conv(4, 1).average()
    pooled(made, 5, 5, Padding(), Shape(4, 1, 1), 1)
    assert values_that_wait(made.sum(2, 3)) == {}
    made = Layers(4, 5, 5).conv(4, 1).dense(4)
    pooled(made, 5, 5, Padding(), Shape(4, 1, 1), 1)
    assert values_that_wait(made.sum(2, 3)) == {}


def test_depths_before_a_join_cover_the_waiting_words() -> None:
    """100 values are 34 words of 3 values, in addition to the minimum depth of 2."""
    graph = lower(Layers(4, 10, 12).conv(4, 1).conv(4, 3).sum(2, 1).network())
    (join,) = (index for index, block in enumerate(graph.blocks) if isinstance(block.op, g.Add))
    assert depth_of(graph, join, 1, g.Fold(pe=3)) == 2 + 34
    assert depth_of(graph, join, 0, g.Fold(pe=3)) == 2
    folds = [g.Fold(pe=2)] * len(graph.blocks)
    words = waits(graph, folds)
    assert words[join, 0] < words[join, 1] < 50  # the estimate has one row more, which is safe
    assert depths(graph, folds) == ((join, 0, 2 + words[join, 0]), (join, 1, 2 + 50))
