"""Maps that lie side by side: where they lie, what reads them, and what has no place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from boards.errors import RangeError, SeveralFaultsError, UnsupportedError
from cnn.integer_model import run_integer
from cnn.ops import Yolo
from cnn.quantized import QNode, QuantizedNetwork
from scheduler.systolic.array import Array
from scheduler.systolic.layers import lower
from scheduler.systolic.network.copies import with_copies
from scheduler.systolic.network.strips import strips_of
from scheduler.systolic.network.views import lane_places, spans_of
from scheduler.systolic.on_chip import handovers, hindrances
from scheduler.systolic.program.maps import place_maps
from scheduler.systolic.schedule import SystolicSchedule
from tests.support.cases import cases
from tests.support.errors import faults_of, raises, raises_among
from tests.support.quantised import Builder
from tests.support.schedules import first_fit

ARRAY = Array(5, 8, 8, row_depth=1024, weight_depth=512, kept_depth=512, chunk=8, channel_tiles=16, upscale=2)


def neck() -> Builder:
    """The joins of yolov3-tiny: a map that a pool and a concat read, and one that is upsampled beside it."""
    build = Builder(3, 12, 8).conv(12, 3).pool().conv(10, 1).upsample()
    return build.concat(4, 1).conv(9, 3)


def scheduled(build: Builder) -> SystolicSchedule:
    return first_fit(build.network(), ARRAY)


def test_a_concat_and_a_slice_are_no_layers() -> None:
    layers = lower(neck().part(2, 5).conv(4, 1).network())
    assert [layer.name for layer in layers] == ["conv1", "pool2", "conv3", "conv6", "conv8"]


def test_maps_of_a_concat_lie_side_by_side_and_each_begins_at_a_whole_block() -> None:
    maps, words = place_maps(scheduled(neck()))
    upsampled, first, joined = maps[4], maps[1], maps[5]
    assert (upsampled.blocks, first.blocks, joined.blocks) == (2, 2, 4)
    assert upsampled.pitch == first.pitch == joined.pitch == joined.row_words == 4 * 8
    assert (upsampled.base, first.base, joined.base) == (joined.base, joined.base + 2 * 8, joined.base)
    assert words == max(region.base + region.words for region in maps.values())


def test_channels_of_a_concat_are_read_where_they_lie() -> None:
    """10 channels in two blocks of 8 lanes, then 12 in two: lanes 10…15 are of no channel."""
    spans = spans_of(neck().network(), 5)
    assert lane_places(spans, 8).tolist() == [*range(10), *range(16, 28)]


def test_a_slice_reads_the_blocks_of_its_channels() -> None:
    """Channels 7…13 of 22: the last three of the first map, and the first four of the second."""
    spans = spans_of(neck().at(5).part(7, 7).network(), 7)
    assert [(span.node, span.first, span.end, span.start) for span in spans] == [(4, 7, 10, 0), (1, 0, 4, 3)]
    assert lane_places(spans, 8).tolist() == [7, 8, 9, 16, 17, 18, 19]


def test_the_arena_ends_where_the_last_written_map_does() -> None:
    """A slice is counted from its first block on, and its rows lie as far apart as those of the whole map."""
    build = Builder(3, 8, 4).conv(4, 1).conv(20, 1).part(9, 8).conv(1, 1)
    maps, words = place_maps(scheduled(build))
    assert words == max(maps[node].base + maps[node].words for node in (0, 1, 2, 4))
    assert maps[3].base + maps[3].words > maps[2].base + maps[2].words


def test_a_map_lies_in_two_concats_where_both_can_lie_in_one_row() -> None:
    """yolov4-tiny's: [1, 2], and [3, 2] behind it."""
    build = Builder(3, 8, 8).conv(8, 3).conv(8, 1).concat(1, 2).conv(8, 1).concat(4, 2).conv(4, 1)
    network = build.network()
    strips = strips_of(network)
    assert strips.nodes == ((1, 2, 4),)
    assert [span.node for span in strips.in_stored_order(spans_of(network, 5))] == [2, 4]
    assert lane_places(strips.in_stored_order(spans_of(network, 5)), 8).tolist() == [*range(8, 16), *range(8)]


def test_operands_of_an_addition_are_one_map_of_twice_the_rows() -> None:
    build = Builder(3, 8, 6).conv(12, 3).conv(12, 3).add(2, 1, multipliers=(3, 5)).conv(4, 1)
    total = lower(build.network())[2]
    assert (total.input, total.summed, total.stride, total.column_stride) == (2, 2, 2, 1)
    assert total.weights.shape == (12, 1, 2, 1)
    assert total.weights[7].tolist() == [[[3], [5]]]
    maps, _ = place_maps(scheduled(build))
    assert maps[1].base == maps[2].base + maps[2].row_words
    assert maps[1].pitch == 2 * maps[2].row_words


def test_maps_whose_rows_are_read_in_turn_lie_in_ddr() -> None:
    """Also where the next layer alone reads one: the addition reads its operand in DDR."""
    build = Builder(3, 8, 6).conv(12, 3).conv(12, 3).add(2, 1).conv(4, 1)
    network = build.network()
    writers = handovers(network, lower(network))
    assert writers[0] is writers[1]
    (reason,) = hindrances(writers[1])
    assert reason.endswith("(they are added or multiplied by the array)")


def twice() -> Builder:
    return Builder(3, 8, 8).conv(8, 3).conv(8, 1)


REFUSED: dict[str, tuple[Builder, str, str]] = {
    # a word of the reason, and the layer
    "itself": (twice().concat(1, 1).conv(4, 1), "itself", "concat 'concat3'"),
    "a slice": (twice().part(0, 4).concat(3, 1).conv(4, 1), "slice", "concat 'concat4'"),
    "three concats": (
        twice().conv(8, 1).concat(1, 2).conv(8, 1).concat(2, 3).conv(8, 1).concat(1, 3).conv(8, 1),
        "(conv1, conv3)",
        "concat 'concat8'",
    ),
    "an addition of joined maps": (twice().concat(1, 2).conv(8, 1).add(4, 1).conv(4, 1), "(conv1)", "add 'add5'"),
    "an addition of a concat": (
        twice().concat(1, 2).conv(16, 1).add(3, 4).conv(4, 1),
        "concat or a slice",
        "add 'add5'",
    ),
    "doubled": (twice().add(1, 1).conv(4, 1), "itself", "add 'add3'"),
    "not read": (twice().concat(1, 2), "reads", "concat 'concat3'"),
    "out of order": (
        twice().concat(1, 2).conv(8, 1).concat(4, 2).part(4, 8).conv(4, 1),
        "side by side",
        "slice 'slice6'",
    ),
    "upsampled by 3": (twice().upsample(3).conv(4, 1), "by 3", "upsample 'upsample3'"),
    "five operands": (twice().conv(8, 1).conv(8, 1).conv(8, 1).add(1, 2, 3, 4, 5).conv(4, 1), "5 maps", "add 'add6'"),
}


CONTRADICTIONS = [name for name in REFUSED if name not in ("not read", "upsampled by 3", "five operands")]


@cases("name", CONTRADICTIONS)
def test_copies_give_every_join_a_place(name: str) -> None:
    """And no bit is another: what the network had, it has."""
    network = REFUSED[name][0].network()
    copied = with_copies(network)
    assert len(copied.nodes) > len(network.nodes)
    assert not strips_of(copied).refused
    picture = np.random.default_rng(5).integers(0, 256, (3, 8, 8), np.uint8)
    values = dict(zip((node.name for node in copied.nodes), run_integer(copied, picture), strict=True))
    for node, expected in zip(network.nodes, run_integer(network, picture), strict=True):
        np.testing.assert_array_equal(values[node.name], expected)


def test_a_network_whose_joins_have_places_is_not_changed() -> None:
    network = neck().network()
    assert with_copies(network) is network


def test_an_upsample_by_4_is_two_by_2() -> None:
    network = with_copies(twice().upsample(4).conv(4, 1).network())
    assert [node.name for node in network.nodes[-3:]] == ["upsample3_by_2", "upsample3", "conv4"]
    assert [layer.upscale for layer in lower(network)] == [1, 2, 2, 1]


@cases("rows, columns, copies", [(3, 3, 9), (1, 2, 2), (4, 1, 4), (6, 6, 9), (8, 7, 56)])
def test_an_upsample_by_other_factors_is_depth_to_space_of_copies(rows: int, columns: int, copies: int) -> None:
    """And no bit is another; of an even factor its half."""
    network = twice().upsample(rows, columns).conv(4, 1).network()
    copied = with_copies(network)
    assert sum(node.name.startswith("upsample3") and "_copy" in node.name for node in copied.nodes) == copies
    lower(copied)
    picture = np.random.default_rng(5).integers(0, 256, (3, 8, 8), np.uint8)
    values = dict(zip((node.name for node in copied.nodes), run_integer(copied, picture), strict=True))
    for node, expected in zip(network.nodes, run_integer(network, picture), strict=True):
        np.testing.assert_array_equal(values[node.name], expected)


@pytest.mark.parametrize(("rows", "columns"), [(8, 9), (5, 13)])
def test_an_upsample_to_too_many_places_is_refused(rows: int, columns: int) -> None:
    with raises_among(UnsupportedError, subject="upsample 'upsample3'") as caught:
        lower(with_copies(twice().upsample(rows, columns).conv(4, 1).network()))
    assert f"{rows} × {columns}" in str(caught.value)


@cases("name", REFUSED)
def test_a_join_without_a_place_is_refused(name: str) -> None:
    build, word, subject = REFUSED[name]
    with raises(SeveralFaultsError) as caught:
        lower(build.network())
    (error,) = faults_of(caught.value, UnsupportedError, subject=subject)
    assert word in error.reason


def test_a_joined_map_that_the_host_reads_too_is_refused() -> None:
    build = twice().concat(1, 2).conv(4, 1)
    head = Yolo(((1.0, 1.0),), 3, False)
    nodes = (*build.nodes, QNode("yolo", head, (2,), build.nodes[2].shape, build.nodes[2].type, "test:9"))
    with raises_among(UnsupportedError, subject="convolution 'conv2'") as caught:
        lower(QuantizedNetwork("heads", nodes))
    assert "host" in str(caught.value)
    copied = with_copies(QuantizedNetwork("heads", nodes))
    assert [layer.name for layer in lower(copied)] == ["conv1", "conv2", "conv4", "conv2_copy"]
    assert copied.nodes[-1].inputs == (len(copied.nodes) - 2,)


def test_an_array_without_an_upsample_is_asked_for_one() -> None:
    with raises_among(RangeError, what="upscale of the array", got=1, low=2):
        first_fit(neck().network(), replace(ARRAY, upscale=1))
