"""Tilings: the reasons that a schedule gives for them, and the errors for layers without a tiling that fits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from boards.board import load
from boards.errors import DoesNotFitError, SeveralFaultsError
from cnn.quantized import QuantizedNetwork
from scheduler.systolic.array import Array
from scheduler.systolic.layers import lower
from scheduler.systolic.search.search import search
from scheduler.systolic.search.space import pin
from scheduler.systolic.tiling import column_cuts, input_columns
from tests.support.errors import faults_of, raises_among
from tests.support.quantised import Builder, tiny_yolo
from tests.support.schedules import first_fit
from tests.support.searches import problem, space_of

ZCU104 = load("zcu104")
ARRAY = Array(13, 16, 16, row_depth=2048, weight_depth=4096, kept_depth=1024, channel_tiles=64)
YOLO = tiny_yolo()


def test_schedule_tiny_yolo_cycles_equal_positions_times_steps() -> None:
    """3.486 GMAC on 3328 PEs take 1,064,960 cycles. The first layer takes three steps per position."""
    schedule = first_fit(YOLO, ARRAY)
    assert schedule.cycles == 1_064_960
    assert [t.shape.steps for t in schedule.layers] == [3, 9, 18, 36, 72, 144, 288, 576, 64]


def test_reasons_small_layers_keep_weights_and_large_ones_stream_them() -> None:
    schedule = first_fit(YOLO, ARRAY)
    assert [t.tiling.weights_resident for t in schedule.layers] == [True] * 5 + [False] * 4
    assert "weights resident: 3 steps in the buffer, read once per pass" in schedule.layers[0].reasons()[1]
    streamed = "weights streamed: 36864 steps, read once per row tile (1 of them) through a buffer of 4096 steps"
    assert streamed in schedule.layers[7].reasons()[1]


def test_first_fit_shallow_row_buffer_gives_column_tiles() -> None:
    network = Builder(3, 26, 60).conv(64, 3).conv(16, 3).network()
    whole, cut = first_fit(network, replace(ARRAY, row_depth=1024)), first_fit(network, replace(ARRAY, row_depth=256))
    assert whole.tilings[1].columns.count == 1
    tiles = cut.tilings[1].columns.tiles
    assert len(tiles) > 1
    assert [tile.first for tile in tiles] == [sum(t.columns for t in tiles[:i]) for i in range(len(tiles))]
    assert sum(tile.columns for tile in tiles) == 60


DOES_NOT_FIT: dict[str, tuple[dict[str, int], dict[str, Any]]] = {
    "weights": (
        {"weight_depth": 500},
        {"where": "conv14", "need": 1152, "have": 500, "nearest": "weight_depth 1152, or more lanes"},
    ),
    "rows": ({"row_depth": 64}, {"where": "conv7", "have": 64}),
    "sums": ({"kept_depth": 1}, {"have": 1, "resource": "sums that the Saver keeps"}),
}


@pytest.mark.parametrize("name", DOES_NOT_FIT)
def test_search_layers_that_do_not_fit_name_sufficient_depths(name: str) -> None:
    change, fields = DOES_NOT_FIT[name]
    space = pin(space_of(YOLO, ZCU104), rows=13, columns=16, lanes=16, **change)
    with raises_among(DoesNotFitError, **fields) as caught:
        search(problem(YOLO, ZCU104, space))
    count = len(caught.value.errors)
    assert caught.value.subject == f"tiny-yolo-416 on ZCU104: {count} layers do not fit the array 13×16×16"


@pytest.mark.engine
def test_search_depth_that_an_error_names_fits() -> None:
    space = pin(space_of(YOLO, ZCU104), rows=13, columns=16, lanes=16)
    search(problem(YOLO, ZCU104, pin(space, weight_depth=1152)))
    with raises_among(DoesNotFitError, nearest="weight_depth 1152, or more lanes"):
        search(problem(YOLO, ZCU104, pin(space, weight_depth=1151)))


def refusal(network: QuantizedNetwork, **pins: int) -> SeveralFaultsError | None:
    """Return the error for a network that no array of these numbers holds; None if one does."""
    space = pin(space_of(network, ZCU104), **pins)
    try:
        search(problem(network, ZCU104, space))
    except SeveralFaultsError as error:
        return error
    return None


def test_search_all_layers_that_do_not_fit_are_named() -> None:
    # One layer has too many weights for the weight buffer, and one has too many rows for the row buffer.
    network = Builder(3, 8, 8).conv(48, 1).conv(40, 3).conv(8, 7).network("large")
    error = refusal(network, rows=4, columns=8, lanes=8, row_depth=64, weight_depth=100, kept_depth=8)
    assert error is not None
    assert error.subject == "large on ZCU104: 2 layers do not fit the array 4×8×8"
    (weights,) = faults_of(error, DoesNotFitError, where="conv2", have=100)
    assert weights.subject == "the tile of 54 steps with the one that follows"
    (rows,) = faults_of(error, DoesNotFitError, where="conv3", need=105, have=64)
    assert rows.subject == "the narrowest column tile (1 columns)"
    assert rows.nearest == "row_depth 106, or more rows"


def test_search_sums_of_a_pool_beyond_kept_depth_are_refused() -> None:
    # The pool needs the depth for one channel tile only, because the inputs may stay on chip.
    network = Builder(3, 12, 30).conv(16, 3).pool(1).network()
    error = refusal(network, rows=5, columns=8, lanes=8, kept_depth=8)
    nearest = "kept_depth 30, or an even number of rows"
    assert faults_of(error, DoesNotFitError, where="conv1", need=30, have=8, nearest=nearest)


@pytest.mark.parametrize("number", ["row_depth", "weight_depth"])
def test_search_following_the_nearest_depths_fits(number: str) -> None:
    # The depths that the errors name are taken until every layer fits.
    depths = {"row_depth": 16, "weight_depth": 16}
    network = Builder(3, 20, 20).conv(24, 5).pool().conv(24, 5).network()
    for _ in range(8):
        error = refusal(network, rows=4, columns=8, lanes=8, **depths)
        if error is None:
            break
        for lack in faults_of(error, DoesNotFitError):
            name, depth = lack.nearest.partition(",")[0].split()
            depths[name] = int(depth)
    else:
        pytest.fail(f"still does not fit with {depths}")
    assert depths[number] > 16


def test_input_columns_equal_the_columns_of_the_kernels() -> None:
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
