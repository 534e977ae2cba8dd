"""Tilings: what a schedule of them says of itself, and what is said where a layer has none that fits."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from boards.board import load
from boards.errors import ScheduleError
from cnn.quantized import QuantizedNetwork
from scheduler.systolic.array import Array
from scheduler.systolic.layers import lower
from scheduler.systolic.search.search import search
from scheduler.systolic.search.space import Request, pin, space_of
from scheduler.systolic.tiling import column_cuts, input_columns
from tests.scheduler.quantised import Builder, tiny_yolo
from tests.support.schedules import first_fit

ZCU104 = load("zcu104")
ARRAY = Array(13, 16, 16, row_depth=2048, weight_depth=4096, kept_depth=1024, channel_tiles=64)
YOLO = tiny_yolo()


def test_tiny_yolo_takes_positions_times_steps() -> None:
    """3.486 GMAC on 3328 PEs, the first layer three steps a position: 1,064,960 cycles."""
    schedule = first_fit(YOLO, ARRAY)
    assert schedule.cycles == 1_064_960
    assert [t.shape.steps for t in schedule.layers] == [3, 9, 18, 36, 72, 144, 288, 576, 64]


def test_small_layers_keep_their_weights_large_ones_stream_them() -> None:
    schedule = first_fit(YOLO, ARRAY)
    assert [t.tiling.weights_resident for t in schedule.layers] == [True] * 5 + [False] * 4
    assert "weights resident: 3 steps in the buffer, read once a pass" in schedule.layers[0].reasons()[1]
    streamed = "weights streamed: 36864 steps, read once a row tile (1 of them) through a buffer of 4096"
    assert streamed in schedule.layers[7].reasons()[1]


def test_a_narrow_row_buffer_cuts_a_layer_into_column_tiles() -> None:
    network = Builder(3, 26, 60).conv(64, 3).conv(16, 3).network()
    whole, cut = first_fit(network, replace(ARRAY, row_depth=1024)), first_fit(network, replace(ARRAY, row_depth=256))
    assert whole.tilings[1].columns.count == 1
    tiles = cut.tilings[1].columns.tiles
    assert len(tiles) > 1
    assert [tile.first for tile in tiles] == [sum(t.columns for t in tiles[:i]) for i in range(len(tiles))]
    assert sum(tile.columns for tile in tiles) == 60


DOES_NOT_FIT: dict[str, tuple[dict[str, int], str]] = {
    "weights": (
        {"weight_depth": 500},
        r"conv14: the weight buffer holds 500 steps of 16×16 weights, but this layer's tile of 576 and the one that "
        r"follows need 1152 \(652 too many\); weight_depth=1152 would fit, or more lanes",
    ),
    "rows": (
        {"row_depth": 64},
        r"conv7: the row buffer holds 64 words a bank, but the narrowest column tile \(\d+ column\(s\)\) needs \d+ "
        r"\(\d+ too many\); row_depth=\d+ would fit, or more rows",
    ),
    "sums": ({"kept_depth": 1}, r"sums wait for the tile below, but the Saver keeps 1 "),
}


@pytest.mark.parametrize("name", DOES_NOT_FIT)
def test_what_does_not_fit_is_said_with_what_would(name: str) -> None:
    change, sentence = DOES_NOT_FIT[name]
    space = pin(space_of(YOLO, ZCU104), rows=13, columns=16, lanes=16, **change)
    with pytest.raises(ScheduleError) as raised:
        search(YOLO, ZCU104, request=Request(space=space))
    expected = r"tiny-yolo-416 does not fit ZCU104: \d+ layer\(s\) of tiny-yolo-416 do not fit the array 13×16×16:\n  "
    assert re.match(expected, str(raised.value))
    assert re.search(sentence, str(raised.value))


def test_the_depth_that_the_sentence_names_does_fit() -> None:
    space = pin(space_of(YOLO, ZCU104), rows=13, columns=16, lanes=16)
    search(YOLO, ZCU104, request=Request(space=pin(space, weight_depth=1152)))
    with pytest.raises(ScheduleError, match="weight_depth=1152 would fit"):
        search(YOLO, ZCU104, request=Request(space=pin(space, weight_depth=1151)))


def sentence(network: QuantizedNetwork, **pins: int) -> str:
    """What is said of a network that no array of these numbers holds; nothing where one does."""
    space = pin(space_of(network, ZCU104), **pins)
    try:
        search(network, ZCU104, request=Request(space=space))
    except ScheduleError as error:
        return str(error)
    return ""


def test_all_layers_that_do_not_fit_are_told_with_what_would() -> None:
    """Weights beyond the weight buffer, rows beyond the row buffer."""
    network = Builder(3, 8, 8).conv(48, 1).conv(40, 3).conv(8, 7).network("large")
    text = sentence(network, rows=4, columns=8, lanes=8, row_depth=64, weight_depth=100, kept_depth=8)
    assert "2 layer(s) of large do not fit the array 4×8×8:\n" in text
    assert re.search(
        r"  conv2: .*weight buffer holds 100 steps of 8×8 weights, but this layer's tile of 54 and the one that "
        r"follows need \d+ \(\d+ too many\); weight_depth=\d+ would fit, or more lanes",
        text,
    )
    assert (
        "  conv3: the row buffer holds 64 words a bank, but the narrowest column tile (1 column(s)) needs 105 (41 too "
        "many); row_depth=106 would fit, or more rows"
    ) in text


def test_a_pool_whose_sums_wait_in_vain() -> None:
    """Of one channel tile, because inputs may stay."""
    text = sentence(Builder(3, 12, 30).conv(16, 3).pool(1).network(), rows=5, columns=8, lanes=8, kept_depth=8)
    assert text.endswith(
        "conv1: 30 sums wait for the tile below, but the Saver keeps 8 (22 too many); "
        "kept_depth=30 would fit, or an even number of rows"
    )


@pytest.mark.parametrize("number", ["row_depth", "weight_depth"])
def test_what_is_said_to_fit_does(number: str) -> None:
    """The numbers of the sentence are followed until every layer fits."""
    depths = {"row_depth": 16, "weight_depth": 16}
    network = Builder(3, 20, 20).conv(24, 5).pool().conv(24, 5).network()
    for _ in range(8):
        text = sentence(network, rows=4, columns=8, lanes=8, **depths)
        if not text:
            break
        told = dict(re.findall(r"(row_depth|weight_depth)=(\d+) would fit", text))
        assert told, text
        depths |= {name: int(value) for name, value in told.items()}
    else:
        pytest.fail(f"still does not fit with {depths}")
    assert depths[number] > 16


def test_column_tiles_read_what_their_kernels_touch() -> None:
    network = Builder(3, 9, 30).conv(8, 3).conv(8, 5, 2).network()
    layer = lower(network)[1]
    for cut in column_cuts(network, layer, ARRAY):
        for tile in cut.tiles:
            touched = [
                x * 2 - 2 + k
                for x in range(tile.first, tile.first + tile.columns)
                for k in range(5)
                if 0 <= x * 2 - 2 + k < 30
            ]
            assert input_columns(layer, tile, 30, 1) == (min(touched), max(touched) + 1)
