"""The simple rule: what it decides, and what it says where a layer does not fit."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boards.errors import ScheduleError
from scheduler.hardware.arithmetic import ceil_div
from scheduler.systolic.array import Array
from scheduler.systolic.layers import lower
from scheduler.systolic.rules import check_schedule
from scheduler.systolic.tiling import input_columns, tile
from scheduler.systolic.work import cuts, needs, tiling_of, way_of, work_of
from tests.scheduler.quantised import Builder, tiny_yolo

ARRAY = Array(13, 16, 16, row_depth=2048, weight_depth=4096, kept_depth=1024, channel_tiles=64)
YOLO = tiny_yolo()


def test_tiny_yolo_takes_positions_times_steps() -> None:
    """3.486 GMAC on 3328 PEs, the first layer three steps a position: 1,064,960 cycles."""
    schedule = tile(YOLO, ARRAY)
    assert schedule.cycles == 1_064_960
    assert [t.steps for t in schedule.tilings] == [3, 9, 18, 36, 72, 144, 288, 576, 64]


def test_small_layers_keep_their_weights_large_ones_stream_them() -> None:
    schedule = tile(YOLO, ARRAY)
    assert [t.resident for t in schedule.tilings] == [True] * 5 + [False] * 4
    assert "weights resident: 3 steps in the buffer, read once a pass" in schedule.tilings[0].reasons(ARRAY)[1]
    streamed = "weights streamed: 36864 steps, read once a row tile (1 of them) through a buffer of 4096"
    assert streamed in schedule.tilings[7].reasons(ARRAY)[1]


def test_a_narrow_row_buffer_cuts_a_layer_into_strips() -> None:
    network = Builder(3, 26, 60).conv(64, 3).conv(16, 3).network()
    whole, cut = tile(network, replace(ARRAY, row_depth=1024)), tile(network, replace(ARRAY, row_depth=256))
    assert len(whole.tilings[1].strips) == 1
    strips = cut.tilings[1].strips
    assert len(strips) > 1
    assert [s.first for s in strips] == [sum(t.columns for t in strips[:i]) for i in range(len(strips))]
    assert sum(s.columns for s in strips) == 60


DOES_NOT_FIT: dict[str, tuple[dict[str, Any], str]] = {
    "weights": (
        {"weight_depth": 500},
        r"conv14: the weight buffer holds 500 steps of 16×16 weights, but this layer's tile of 576 and the one that "
        r"follows need 1152 \(652 too many\); weight_depth=1152 would fit, or more lanes",
    ),
    "requantisers": (
        {"channel_tiles": 20},
        r"conv13: 1024 filters are 64 channel tiles of 16, but the Saver keeps requantisers for 20; "
        r"channel_tiles=64 would fit",
    ),
    "rows": (
        {"row_depth": 64},
        r"the row buffer holds 64 words a bank, but the narrowest strip \(\d+ column\(s\)\) needs \d+ "
        r"\(\d+ too many\); row_depth=\d+ would fit, or more rows",
    ),
    "sums": ({"kept_depth": 1}, r"sums wait for the tile below, but the Saver keeps 1 "),
}


@pytest.mark.parametrize("name", DOES_NOT_FIT)
def test_what_does_not_fit_is_said_with_what_would(name: str) -> None:
    change, sentence = DOES_NOT_FIT[name]
    with pytest.raises(ScheduleError) as raised:
        tile(YOLO, replace(ARRAY, **change))
    assert re.match(r"\d+ layer\(s\) of tiny-yolo-416 do not fit the array 13×16×16:\n  ", str(raised.value))
    assert re.search(sentence, str(raised.value))


def test_the_depth_that_the_sentence_names_does_fit() -> None:
    tile(YOLO, replace(ARRAY, weight_depth=1152))
    with pytest.raises(ScheduleError):
        tile(YOLO, replace(ARRAY, weight_depth=1151))


@given(
    st.integers(2, 9),
    st.sampled_from((256, 512, 2048)),
    st.sampled_from((200, 400, 1000)),
    st.integers(7, 40),
    st.integers(7, 40),
    st.sampled_from((1, 2)),
)
def test_the_rule_is_within_the_rules_of_the_search(
    rows: int, row_depth: int, weight_depth: int, height: int, width: int, stride: int
) -> None:
    network = Builder(3, height, width).conv(24, 3, stride).pool().conv(40, 3).network()
    array = Array(rows, 16, 8, 1, 1, 2, row_depth, weight_depth, 256, 16, 8)
    try:
        schedule = tile(network, array)
    except ScheduleError:
        return
    check_schedule(schedule)


def test_ways_become_the_same_tilings_as_the_rule() -> None:
    """Needs and slots are stated twice, here for the rule and in scheduler.work for the search: they agree."""
    schedule = tile(YOLO, ARRAY)
    for job, tiling in zip(lower(YOLO), schedule.tilings, strict=True):
        way = way_of(YOLO, tiling, ARRAY)
        again = tiling_of(YOLO, job, ARRAY, way)
        names = (
            "strips",
            "row_tiles",
            "channel_tiles",
            "steps",
            "resident",
            "inputs_resident",
            "overlap",
            "slots",
            "pixels",
        )
        assert [getattr(again, n) for n in names] == [getattr(tiling, n) for n in names]
        need = needs(work_of(YOLO, job, ARRAY), ARRAY.rows, ARRAY.columns, way, 0)
        assert need.row_depth <= ARRAY.row_depth


@given(st.integers(1, 100), st.integers(1, 17))
def test_ceil_div(a: int, b: int) -> None:
    assert (ceil_div(a, b) - 1) * b < a <= ceil_div(a, b) * b


def test_strips_read_what_their_kernels_touch() -> None:
    network = Builder(3, 9, 30).conv(8, 3).conv(8, 5, 2).network()
    job = lower(network)[1]
    for cut in cuts(network, job, ARRAY):
        for strip in cut.strips:
            touched = [
                x * 2 - 2 + k
                for x in range(strip.first, strip.first + strip.columns)
                for k in range(5)
                if 0 <= x * 2 - 2 + k < 30
            ]
            assert input_columns(job, strip, 30, 1) == (min(touched), max(touched) + 1)
