"""Maps that are stored next to each other in DDR: their places, their readers, and joins that are refused."""

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
from scheduler.systolic.on_chip import broken_stay_rules, handovers
from scheduler.systolic.program.maps import place_maps
from scheduler.systolic.schedule import SystolicSchedule
from tests.support.cases import cases
from tests.support.errors import faults_of, raises, raises_among
from tests.support.quantised import Builder
from tests.support.schedules import first_fit

ARRAY = Array(5, 8, 8, row_depth=1024, weight_depth=512, kept_depth=512, chunk=8, channel_tiles=16, upscale=2)


def neck() -> Builder:
    """Return the joins of yolov3-tiny: a concat of a map that a pool reads too, and of an upsampled map."""
    build = Builder(3, 12, 8).conv(12, 3).pool().conv(10, 1).upsample()
    return build.concat(4, 1).conv(9, 3)


def scheduled(build: Builder) -> SystolicSchedule:
    return first_fit(build.network(), ARRAY)


def test_lower_concat_and_slice_gives_no_layers() -> None:
    layers = lower(neck().part(2, 5).conv(4, 1).network())
    assert [layer.name for layer in layers] == ["conv1", "pool2", "conv3", "conv6", "conv8"]


def test_place_maps_concat_stores_operands_in_neighbouring_blocks() -> None:
    maps, words = place_maps(scheduled(neck()))
    upsampled, first, joined = maps[4], maps[1], maps[5]
    assert (upsampled.blocks, first.blocks, joined.blocks) == (2, 2, 4)
    assert upsampled.pitch == first.pitch == joined.pitch == joined.row_words == 4 * 8
    assert (upsampled.base, first.base, joined.base) == (joined.base, joined.base + 2 * 8, joined.base)
    assert words == max(region.base + region.words for region in maps.values())


def test_lane_places_concat_skips_unused_lanes() -> None:
    """10 channels fill two blocks of 8 lanes, and 12 channels two more. Lanes 10…15 are unused."""
    spans = spans_of(neck().network(), 5)
    assert lane_places(spans, 8).tolist() == [*range(10), *range(16, 28)]


def test_lane_places_slice_of_two_maps_gives_its_channels() -> None:
    """Channels 7…13 of 22 are the last three of the first map and the first four of the second."""
    spans = spans_of(neck().at(5).part(7, 7).network(), 7)
    assert [(span.node, span.first, span.end, span.start) for span in spans] == [(4, 7, 10, 0), (1, 0, 4, 3)]
    assert lane_places(spans, 8).tolist() == [7, 8, 9, 16, 17, 18, 19]


def test_place_maps_slice_does_not_enlarge_the_arena() -> None:
    # The region of a slice begins at its first block and has the row pitch of the whole map. It therefore ends after
    # the region of that map. The arena ends after the last map that is written.
    build = Builder(3, 8, 4).conv(4, 1).conv(20, 1).part(9, 8).conv(1, 1)
    maps, words = place_maps(scheduled(build))
    assert words == max(maps[node].base + maps[node].words for node in (0, 1, 2, 4))
    assert maps[3].base + maps[3].words > maps[2].base + maps[2].words


def test_strips_of_map_in_two_concats_gives_one_strip() -> None:
    """yolov4-tiny has the concats [1, 2] and [4, 2]. One strip holds the maps of both."""
    build = Builder(3, 8, 8).conv(8, 3).conv(8, 1).concat(1, 2).conv(8, 1).concat(4, 2).conv(4, 1)
    network = build.network()
    strips = strips_of(network)
    assert strips.nodes == ((1, 2, 4),)
    assert [span.node for span in strips.in_stored_order(spans_of(network, 5))] == [2, 4]
    assert lane_places(strips.in_stored_order(spans_of(network, 5)), 8).tolist() == [*range(8, 16), *range(8)]


def test_lower_addition_reads_operands_as_one_map() -> None:
    build = Builder(3, 8, 6).conv(12, 3).conv(12, 3).add(2, 1, multipliers=(3, 5)).conv(4, 1)
    total = lower(build.network())[2]
    assert (total.input, total.summed, total.stride, total.column_stride) == (2, 2, 2, 1)
    assert total.weights.shape == (12, 1, 2, 1)
    assert total.weights[7].tolist() == [[[3], [5]]]
    maps, _ = place_maps(scheduled(build))
    assert maps[1].base == maps[2].base + maps[2].row_words
    assert maps[1].pitch == 2 * maps[2].row_words


def test_hindrances_operand_of_addition_on_the_array_must_be_in_ddr() -> None:
    # This is also true if the add is the only reader of an operand, and the next layer after it.
    build = Builder(3, 8, 6).conv(12, 3).conv(12, 3).add(2, 1).conv(4, 1)
    network = build.network()
    writers = handovers(network, lower(network))
    assert writers[0] is writers[1]
    (reason,) = broken_stay_rules(writers[1])
    assert reason.endswith("(they are added or multiplied by the array)")


def twice() -> Builder:
    return Builder(3, 8, 8).conv(8, 3).conv(8, 1)


REFUSED: dict[str, tuple[Builder, str, str]] = {
    # network, a word of the reason, and the refused layer
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
def test_with_copies_refused_join_computes_the_same_values(name: str) -> None:
    # The copies give every join a place, and all nodes of the original network have the same values.
    network = REFUSED[name][0].network()
    copied = with_copies(network)
    assert len(copied.nodes) > len(network.nodes)
    assert not strips_of(copied).refused
    picture = np.random.default_rng(5).integers(0, 256, (3, 8, 8), np.uint8)
    values = dict(zip((node.name for node in copied.nodes), run_integer(copied, picture), strict=True))
    for node, expected in zip(network.nodes, run_integer(network, picture), strict=True):
        np.testing.assert_array_equal(values[node.name], expected)


def test_with_copies_placed_joins_returns_the_network_itself() -> None:
    network = neck().network()
    assert with_copies(network) is network


def test_with_copies_upsample_by_4_gives_two_upsamples_by_2() -> None:
    network = with_copies(twice().upsample(4).conv(4, 1).network())
    assert [node.name for node in network.nodes[-3:]] == ["upsample3_by_2", "upsample3", "conv4"]
    assert [layer.upscale for layer in lower(network)] == [1, 2, 2, 1]


@cases("rows, columns, copies", [(3, 3, 9), (1, 2, 2), (4, 1, 4), (6, 6, 9), (8, 7, 56)])
def test_with_copies_upsample_by_other_factors_gives_depth_to_space(rows: int, columns: int, copies: int) -> None:
    # The values stay the same. An even factor is halved first, so that fewer copies are needed.
    network = twice().upsample(rows, columns).conv(4, 1).network()
    copied = with_copies(network)
    assert sum(node.name.startswith("upsample3") and "_copy" in node.name for node in copied.nodes) == copies
    lower(copied)
    picture = np.random.default_rng(5).integers(0, 256, (3, 8, 8), np.uint8)
    values = dict(zip((node.name for node in copied.nodes), run_integer(copied, picture), strict=True))
    for node, expected in zip(network.nodes, run_integer(network, picture), strict=True):
        np.testing.assert_array_equal(values[node.name], expected)


@pytest.mark.parametrize(("rows", "columns"), [(8, 9), (5, 13)])
def test_lower_upsample_to_too_many_places_is_refused(rows: int, columns: int) -> None:
    with raises_among(UnsupportedError, subject="upsample 'upsample3'") as caught:
        lower(with_copies(twice().upsample(rows, columns).conv(4, 1).network()))
    assert f"{rows} × {columns}" in str(caught.value)


@cases("name", REFUSED)
def test_lower_join_without_a_place_is_refused(name: str) -> None:
    build, word, subject = REFUSED[name]
    with raises(SeveralFaultsError) as caught:
        lower(build.network())
    (error,) = faults_of(caught.value, UnsupportedError, subject=subject)
    assert word in error.reason


def test_lower_joined_map_that_the_host_reads_is_refused_without_copies() -> None:
    build = twice().concat(1, 2).conv(4, 1)
    head = Yolo(((1.0, 1.0),), 3, False)
    nodes = (*build.nodes, QNode("yolo", head, (2,), build.nodes[2].shape, build.nodes[2].type, "test:9"))
    with raises_among(UnsupportedError, subject="convolution 'conv2'") as caught:
        lower(QuantizedNetwork("heads", nodes))
    assert "host" in str(caught.value)
    copied = with_copies(QuantizedNetwork("heads", nodes))
    assert [layer.name for layer in lower(copied)] == ["conv1", "conv2", "conv4", "conv2_copy"]
    assert copied.nodes[-1].inputs == (len(copied.nodes) - 2,)


def test_check_upsample_on_array_without_it_is_refused() -> None:
    with raises_among(RangeError, what="upscale of the array", got=1, low=2):
        first_fit(neck().network(), replace(ARRAY, upscale=1))
