"""The lowering of a network before tiling, compared with explicit lists of channels, rows and places."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cnn.maps import Padding, Shape
from cnn.network import Network, Node
from cnn.ops import Concat, Convolution, DepthToSpace, Input, MaxPool, QAdd, Reorg, Slice, Upsample
from cnn.requantise import Requantiser
from scheduler.nodes import resolve
from scheduler.systolic.layers import lower
from scheduler.systolic.network import additions
from scheduler.systolic.network.copies import _new_name, _upsampled_in_steps, _with_whole_blocks
from scheduler.systolic.network.refusals import _refuse_upsample, fusible
from scheduler.systolic.network.reorg import block_order_weights, darknet_parts, depth_parts, is_in_parts
from scheduler.systolic.network.strips import Strips, _grown
from scheduler.systolic.network.views import ALIGNED, Span, aligned, group_of, lane_places, spans_of
from tests.support.cases import cases
from tests.support.quantised import Builder

# --- views ------------------------------------------------------------------------------------------------------------


def drawn(random: Any) -> Network:
    """Return a random network of maps, and of concats and slices of earlier nodes."""
    nodes = [Node("n0", Input(), (), Shape(5, 1, 1), "")]
    for index in range(1, 10):
        kind = int(random.integers(3)) if index > 3 else 2
        if kind == 0:
            inputs = tuple(int(i) for i in random.integers(1, index, int(random.integers(1, 4))))
            channels, op = sum(nodes[i].shape.channels for i in inputs), Concat()
        elif kind == 1:
            source = int(random.integers(1, index))
            whole = nodes[source].shape.channels
            channels = int(random.integers(1, whole + 1))
            inputs, op = (source,), Slice(int(random.integers(0, whole - channels + 1)), channels)  # type: ignore[assignment]
        else:
            channels, inputs, op = int(random.integers(1, 8)), (0,), Upsample(1)  # type: ignore[assignment]
        nodes.append(Node(f"n{index}", op, inputs, Shape(channels, 1, 1), ""))
    return Network("net", tuple(nodes))


def channels_of(network: Network, index: int) -> list[tuple[int, int]]:
    """Return the (node, channel) of each channel of a view."""
    node = network.nodes[index]
    if isinstance(node.op, Concat):
        return [channel for source in node.inputs for channel in channels_of(network, source)]
    if isinstance(node.op, Slice):
        return channels_of(network, node.inputs[0])[node.op.first : node.op.first + node.op.channels]
    return [(index, channel) for channel in range(node.shape.channels)]


def listed(spans: tuple[Span, ...]) -> list[tuple[int, int]]:
    return [(span.node, channel) for span in spans for channel in range(span.first, span.end)]


@cases("seed", range(40))
def test_spans_of_random_views_list_the_channels_in_order(seed: int) -> None:
    random = np.random.default_rng(seed)
    network = drawn(random)
    for index in range(1, 10):
        spans, channels = spans_of(network, index), channels_of(network, index)
        assert listed(spans) == channels
        starts = [sum(s.end - s.first for s in spans[:i]) for i in range(len(spans))]
        assert [span.start for span in spans] == starts
        assert all(span.channels == network.nodes[span.node].shape.channels for span in spans)
        assert [span.is_map for span in spans] == [(s.first, s.end) == (0, s.channels) for s in spans]
        for size in (1, 2, 3):
            for number in range(len(channels) // size):
                part = group_of(spans, number, size)
                assert listed(part) == channels[number * size : (number + 1) * size]
                assert part[0].start == 0


def test_spans_of_neighbouring_slices_are_merged() -> None:
    network = Builder(3, 2, 2).conv(9, 1).part(0, 3).at(1).part(3, 2).at(1).part(6, 3).concat(2, 3, 4).network()
    assert spans_of(network, 5) == (Span(1, 9, 0, 5, 0), Span(1, 9, 6, 9, 5))
    again = Builder(3, 2, 2).conv(9, 1).part(3, 2).at(1).part(0, 3).concat(2, 3).network()
    assert spans_of(again, 4) == (Span(1, 9, 3, 5, 0), Span(1, 9, 0, 3, 2))


@cases("lanes", [1, 2, 4, 8])
def test_lane_places_random_views_count_lanes_over_all_blocks(lanes: int) -> None:
    # All lanes of all blocks of each span are counted, also unused ones.
    random = np.random.default_rng(lanes)
    for _ in range(20):
        network = drawn(random)
        for index in range(1, 10):
            spans = spans_of(network, index)
            lies: list[tuple[int, int]] = []
            for span in spans:
                blocks = sorted({channel // lanes for channel in range(span.first, span.end)})
                assert span.blocks(lanes) == len(blocks)
                lies += [(span.node, block * lanes + lane) for block in blocks for lane in range(lanes)]
            places = lane_places(spans, lanes)
            assert len(places) == len(listed(spans))
            assert [lies[place] for place in places] == listed(spans)
            assert (np.diff(places) > 0).all()


def test_aligned_is_true_if_every_span_begins_a_block() -> None:
    whole = ALIGNED
    first, second = Span(1, whole, 0, whole, 0), Span(2, 2 * whole, whole, 2 * whole, whole)
    assert aligned((first,))
    assert aligned((first, second))
    assert not aligned((second, first))
    assert not aligned((replace(first, start=1),))
    assert not aligned((replace(first, first=1),))
    assert not aligned((first, replace(second, start=whole - 1)))


def test_resolve_concat_of_one_input_gives_that_input() -> None:
    nodes = [
        Node("a", Input(), (), Shape(2, 1, 1), ""),
        *(Node("r", Concat(), (i,), Shape(2, 1, 1), "") for i in (0, 1)),
    ]
    nodes.append(Node("j", Concat(), (0, 2), Shape(4, 1, 1), ""))
    assert [resolve(Network("net", tuple(nodes)), index) for index in range(4)] == [0, 0, 0, 3]


# --- strips -----------------------------------------------------------------------------------------------------------


def is_run(strip: tuple[int, ...], nodes: tuple[int, ...]) -> bool:
    """Return whether the nodes are neighbours in the strip."""
    places = sorted(strip.index(node) for node in nodes)
    return places == list(range(places[0], places[0] + len(nodes)))


def test_grown_extends_a_strip_at_one_end_or_gives_none() -> None:
    # A strip whose nodes are neighbours already is not changed.
    random = np.random.default_rng(3)
    outcomes = set()
    for _ in range(400):
        strip = tuple(int(i) for i in random.permutation(6)[: int(random.integers(1, 5))])
        nodes = tuple(int(i) for i in random.permutation(6)[: int(random.integers(1, 5))])
        if not set(strip) & set(nodes):
            continue
        lacking = tuple(node for node in nodes if node not in strip)
        ways = [strip + lacking, lacking + strip] if lacking else [strip]
        wanted = next((way for way in ways if is_run(way, nodes)), None)
        assert _grown(strip, nodes) == wanted
        outcomes.add(None if wanted is None else wanted.index(strip[0]) > 0 or len(wanted) > len(strip))
    assert outcomes == {None, True, False}


@cases("seed", range(10))
def test_are_adjacent_is_true_without_a_channel_between(seed: int) -> None:
    # The reference is a list of all channels of the strip.
    random = np.random.default_rng(seed)
    strips = Strips(((4, 2, 7), (1, 3)), {})
    sizes = {node: int(random.integers(1, 4)) for node in range(9)}
    assert [strips.of(node) for node in (2, 1, 5)] == [(4, 2, 7), (1, 3), (5,)]
    counts = {True: 0, False: 0}
    for _ in range(300):
        nodes = [int(n) for n in random.permutation(8)[: int(random.integers(1, 4))]]
        spans = []
        for node in nodes:
            first = int(random.integers(0, sizes[node]))
            spans.append(Span(node, sizes[node], first, int(random.integers(first + 1, sizes[node] + 1))))
        strip = strips.of(nodes[0])
        lie = [(node, channel) for node in strip for channel in range(sizes[node])]
        places = sorted(
            lie.index(channel) if channel in lie else -99 * (1 + n) for n, channel in enumerate(listed(tuple(spans)))
        )
        wanted = places[0] >= 0 and places == list(range(places[0], places[0] + len(places)))
        assert strips.are_adjacent(tuple(spans)) is wanted
        counts[wanted] += 1
        if set(nodes) <= set(strip):
            ordered = [span.node for span in strips.in_stored_order(tuple(spans))]
            assert ordered == sorted(nodes, key=strip.index)
    assert min(counts.values()) > 5


# --- space and depth --------------------------------------------------------------------------------------------------


def executed(parts: Any, values: Any, shape: tuple[int, int, int], columns: int = 1) -> Any:
    """Return the map that the parts write, computed value by value. A part with a group reads that group's channels.

    columns: Output columns per position.
    """
    result = np.full(shape, -1, np.int64)
    for part, weights in parts:
        filters, channels, height, width = weights.shape
        for n, f in product(range(part.writes.count), range(filters)):
            row = part.writes.first + n * part.writes.step
            for x in range((values.shape[2] - width) // part.column_stride + 1):
                for spread in range(columns):
                    first = (part.group * columns + spread) * channels
                    total = 0
                    for c, i, j in product(range(channels), range(height), range(width)):
                        y = part.reads.first + part.reads.step * (n * part.stride + i)
                        total += int(weights[f, c, i, j]) * int(values[first + c, y, x * part.column_stride + j])
                    assert n * part.stride + height <= part.reads.count
                    result[part.channel + f, row, x * columns + spread] = total
    return result


@cases("channels, height, width", [(4, 2, 2), (4, 6, 4), (8, 4, 2), (12, 10, 2), (4, 4, 6)])
def test_darknet_parts_together_compute_the_reorg(channels: int, height: int, width: int) -> None:
    values = np.arange(1, 1 + channels * height * width).reshape(channels, height, width)
    parts = list(darknet_parts(Shape(channels, height, width)))
    wanted = Reorg(2).move([values])
    np.testing.assert_array_equal(executed(parts, values, wanted.shape), wanted)
    assert {(part.column_stride, part.group) for part, _ in parts} == {(2, 0)}
    assert all(set(np.unique(weights)) <= {0, 1} for _, weights in parts)


def test_darknet_parts_many_channels_are_split_into_halves() -> None:
    # A half is a part if it begins with a whole block on every array, which needs 2 · 64 filters of 32 channels.
    firsts = {part.channel for part, _ in darknet_parts(Shape(32, 4, 2))}
    assert firsts == {0, 64}
    assert {part.channel for part, _ in darknet_parts(Shape(16, 4, 2))} == {0}


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_block_order_weights_compute_the_reorg(stride: int) -> None:
    values = np.arange(1, 1 + 3 * 36).reshape(3, 6, 6)
    weights, wanted = block_order_weights(3, stride), Reorg(stride, "block").move([values])
    for f, y, x in np.ndindex(wanted.shape):
        window = values[:, y * stride : (y + 1) * stride, x * stride : (x + 1) * stride]
        assert (weights[f] * window).sum() == wanted[f, y, x]


@cases("rows, columns", [(1, 2), (2, 1), (2, 2), (3, 2)])
def test_depth_parts_give_one_part_per_row_of_a_block(rows: int, columns: int) -> None:
    """Channel (row · columns + column) · C + c is channel c at that row and column of its block."""
    values = np.arange(1, 1 + 2 * rows * columns * 6).reshape(2 * rows * columns, 3, 2)
    wanted = np.zeros((2, 3 * rows, 2 * columns), np.int64)
    for c, y, x in np.ndindex(wanted.shape):
        wanted[c, y, x] = values[(y % rows * columns + x % columns) * 2 + c, y // rows, x // columns]
    parts = list(depth_parts(DepthToSpace(rows, columns), Shape(len(values), 3, 2)))
    assert [(p.group, p.reads.first, p.reads.step, p.reads.count) for p, _ in parts] == [
        (r, 0, 1, 3) for r in range(rows)
    ]
    np.testing.assert_array_equal(executed(parts, values, wanted.shape, columns), wanted)


@cases("op, parted", [(Reorg(2), True), (Reorg(1), False), (Reorg(2, "block"), False)])
def test_is_in_parts_is_true_for_darknet_order(op: Reorg, parted: bool) -> None:
    assert is_in_parts(op) is parted


# --- additions --------------------------------------------------------------------------------------------------------


def adds(bias: int = 3, multiplier: int = 5, negative: int = 5, shift: int = 4, count: int = 2) -> Any:
    columns = ([number] * count for number in (bias, multiplier, negative, shift))
    by = Requantiser(*(np.array(column, np.int64) for column in columns))
    return QAdd((7, 11), by)


@pytest.mark.parametrize(("bias", "shift"), [(0, 1), (-9, 3), (100, 8)])
def test_numbers_merge_both_multiplications_exactly(bias: int, shift: int) -> None:
    # The reference is ((7 a + 11 b + bias) · m + half) >> s, for all small a and b.
    addition = additions._numbers(adds(bias, 13, 13, shift), (4, 6), (7, 11))
    assert addition is not None
    assert (addition.own_node, addition.other_node, addition.shift, addition.least_sum) == (4, 6, shift, None)
    for a, b in product(range(-8, 9), repeat=2):
        twice = ((7 * a + 11 * b + bias) * 13 + 2 ** (shift - 1)) >> shift
        ours = (a * addition.own_multiplier + b * addition.other_multiplier + addition.offset) >> addition.shift
        assert ours == twice


def test_numbers_beyond_the_saver_give_none() -> None:
    # A multiplier has 32 bits and the offset has 48 bits, both signed.
    assert additions._numbers(adds(negative=0), (1, 2), (7, 11)) is not None
    assert additions._numbers(adds(negative=0), (1, 2), (7, 11)).least_sum == 0  # type: ignore[union-attr]
    assert additions._numbers(adds(negative=1), (1, 2), (7, 11)) is None
    different = adds()
    different.requantiser.bias[1] += 1
    assert additions._numbers(different, (1, 2), (7, 11)) is None
    big = 1 << 15
    for own, fits in (((1 << 16) - 1, True), (1 << 16, False), (-(1 << 16) + 1, True), (-(1 << 16), False)):
        for pair in ((own, 1), (1, own)):
            assert (additions._numbers(adds(0, big, big, 1), (1, 2), pair) is not None) is fits
    for bias, fits in (((1 << 47) - 9, True), ((1 << 47) - 8, False), (-(1 << 47) - 7, True), (-(1 << 47) - 8, False)):
        assert (additions._numbers(adds(bias, 1, 1, 4), (1, 2), (1, 1)) is not None) is fits


# --- pools, upsamples, names ------------------------------------------------------------------------------------------


def test_fusible_is_true_for_pools_by_2_without_padding_before() -> None:
    source = Shape(3, 5, 6)
    for size, stride, top, left in product((1, 2, 3), (1, 2, 3), (0, 1), (0, 1)):
        for pooled in (source, Shape(3, 4, 6), Shape(3, 5, 5), Shape(3, 2, 3)):
            wanted = (size, top, left) == (2, 0, 0) and (stride == 2 or (stride == 1 and pooled == source))
            assert fusible(MaxPool(size, stride, Padding(top, left, 1, 1)), source, pooled) is wanted


@cases(
    "op, height, width, factor",
    [
        (Upsample(1), 4, 4, None),
        (Upsample(2), 4, 4, None),
        (Upsample(3), 6, 6, "by 3,"),
        (Upsample(4), 8, 8, "by 4,"),
        (Upsample(3), 3, 3, None),
        (Upsample(3, across=5), 3, 5, None),
        (Upsample(2, across=1), 4, 2, "by 2 × 1,"),
        (Upsample(1, across=2), 2, 4, "by 1 × 2,"),
        (Upsample(2, 0.5), 4, 4, "by 0.5,"),
        (Upsample(3, 2.0), 3, 3, "by 2,"),
        (Upsample(3), 3, 6, "by 3,"),
    ],
)
def test_refuse_upsample_names_unsupported_factors(op: Upsample, height: int, width: int, factor: str | None) -> None:
    reason = _refuse_upsample(op, Shape(2, height, width))
    assert reason is None if factor is None else factor in str(reason)


@cases("factor, steps", [(1, [1]), (2, [2]), (3, [3]), (4, [2, 2]), (6, [3, 2]), (8, [2, 2, 2]), (12, [3, 2, 2])])
def test_upsampled_in_steps_halves_even_factors(factor: int, steps: list[int]) -> None:
    nodes = (
        Node("in", Input(), (), Shape(2, 3, 2), ""),
        Node("up", Upsample(factor), (0,), Shape(2, 3 * factor, 2 * factor), ""),
    )
    done = _upsampled_in_steps(Network("net", nodes)).nodes
    assert [node.op.stride for node in done[1:]] == steps  # type: ignore[union-attr]
    height = 3
    for node, step in zip(done[1:], steps, strict=True):
        height *= step
        assert (node.shape.height, node.shape.width) == (height, height // 3 * 2)
    assert [node.inputs for node in done[1:]] == [(i,) for i in range(len(steps))]
    assert done[-1].name == "up"
    assert len({node.name for node in done}) == len(done)
    alone = (replace(nodes[0], shape=Shape(2, 1, 1)), replace(nodes[1], shape=Shape(2, factor, factor)))
    assert _upsampled_in_steps(Network("net", alone)).nodes == alone


def test_with_whole_blocks_copies_partial_blocks_of_depth_to_space() -> None:
    # Each of 2 · 2 places gets a slice and a copy, followed by a concat. Places of 64 channels get none.
    weights = np.ones((8, 1, 1, 1), np.float32)
    conv = Convolution(weights, np.zeros(8, np.float32), None, 1, Padding(), 1, "linear")
    nodes = (
        Node("in", Input(), (), Shape(1, 2, 2), ""),
        Node("conv", conv, (0,), Shape(8, 2, 2), ""),
        Node("d", DepthToSpace(2, 2), (1,), Shape(2, 4, 4), ""),
    )
    done = _with_whole_blocks(Network("net", nodes)).nodes
    assert [type(node.op).__name__ for node in done[2:]] == ["Slice", "Convolution"] * 4 + ["Concat", "DepthToSpace"]
    slices: list[Any] = [node.op for node in done if isinstance(node.op, Slice)]
    assert [(op.first, op.channels) for op in slices] == [(0, 2), (2, 2), (4, 2), (6, 2)]
    assert done[-2].inputs == (3, 5, 7, 9)
    assert done[-1].inputs == (10,)
    wide = (nodes[0], replace(nodes[1], shape=Shape(256, 2, 2)), replace(nodes[2], shape=Shape(64, 4, 4)))
    assert _with_whole_blocks(Network("net", wide)).nodes == wide


def test_new_name_is_the_first_free_one() -> None:
    network: Any = SimpleNamespace(nodes=[SimpleNamespace(name=name) for name in ("a", "a1", "b")])
    used = {"c"}
    assert [_new_name(network, stem, used) for stem in ("a", "a", "b", "c", "d")] == ["a2", "a3", "b1", "c1", "d"]
    assert used == {"a2", "a3", "b1", "c", "c1", "d"}


# --- layers -----------------------------------------------------------------------------------------------------------


def test_layer_properties_follow_from_its_fields() -> None:
    layer = lower(Builder(3, 8, 6).conv(8, (3, 5), 2, Padding(1, 2, 1, 2)).network())[0]
    assert (layer.kernel, layer.column_stride, layer.separate_taps, layer.combines_maps, layer.reads_pixels) == (
        (3, 5),
        2,
        1,
        False,
        True,
    )
    assert layer.macs == 8 * 3 * 3 * 5 * layer.out.height * layer.out.width
    assert replace(layer, repeats=3).macs == 3 * layer.macs
    assert replace(layer, groups=2).macs == layer.macs // 2
    window, product_of = replace(layer, window=(3, 3)), replace(layer, multiplied=True, summed=2)
    assert (window.kernel, window.separate_taps) == ((3, 3), 9)
    assert (product_of.kernel, product_of.separate_taps, product_of.column_stride, product_of.combines_maps) == (
        (2, 1),
        2,
        1,
        True,
    )
    assert replace(layer, joined=3).kernel == (1, 5)
    assert replace(layer, stacked=2, repeats=3).frames == 6
