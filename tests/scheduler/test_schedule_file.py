"""Schedules as files: out and in again, and the rule's sentence for what a hand broke."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from boards.errors import ScheduleError
from scheduler.systolic.array import Array
from scheduler.systolic.program.emit import emit
from scheduler.systolic.schedule_file import SCHEMA, from_json, to_json
from tests.scheduler.quantised import Builder
from tests.support.schedules import first_fit

NETWORK = Builder(3, 40, 60).conv(16, 3).pool().conv(24, 3).pool(1).conv(8, 1).network("edited")
ARRAY = Array(5, 8, 8, row_depth=1024, weight_depth=1024, kept_depth=512, chunk=8, channel_tiles=16)
TEXT = to_json(first_fit(NETWORK, ARRAY))


def test_a_saved_schedule_comes_back_as_the_same_program() -> None:
    again = from_json(TEXT, NETWORK)
    assert to_json(again) == TEXT
    assert (emit(again).words == emit(first_fit(NETWORK, ARRAY)).words).all()


def test_a_batch_is_saved_with_the_schedule() -> None:
    schedule = first_fit(NETWORK, ARRAY, 3)
    text = to_json(schedule)
    again = from_json(text, NETWORK)
    assert again.batch == 3
    assert to_json(again) == text
    assert (emit(again).words == emit(schedule).words).all()
    schema().validate(json.loads(text))


def schema() -> Any:
    """What an editor checks with the schema."""
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    return jsonschema.Draft202012Validator(SCHEMA)


def test_the_schema_describes_what_is_saved() -> None:
    schema().validate(json.loads(TEXT))


def test_an_edit_by_hand_is_taken() -> None:
    values = json.loads(TEXT)
    values["layers"][0].update(order="streamed", tile_columns=20, overlap=False)
    tiling = from_json(json.dumps(values), NETWORK).tilings[0]
    assert [tile.columns for tile in tiling.columns.tiles] == [20, 20, 20]
    assert (tiling.weights_resident, tiling.overlap) == (False, False)


def test_a_map_is_kept_on_chip_by_hand() -> None:
    values = json.loads(TEXT)
    values["array"]["map_depth"] = 240
    values["layers"][0]["on_chip"] = True
    schema().validate(values)
    kept = from_json(json.dumps(values), NETWORK)
    assert [tiling.on_chip for tiling in kept.tilings] == [True, False, False]
    assert from_json(to_json(kept), NETWORK).array == kept.array


def layer(number: int, **change: Any) -> Callable[[dict[str, Any]], None]:
    return lambda v: v["layers"][number].update(change)


def top(**change: Any) -> Callable[[dict[str, Any]], None]:
    return lambda v: v.update(change)


def array(**change: Any) -> Callable[[dict[str, Any]], None]:
    return lambda v: v["array"].update(change)


def all_of(*edits: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    def edit(values: dict[str, Any]) -> None:
        for one in edits:
            one(values)

    return edit


EDITS: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "order": (layer(0, order="random"), "order is one of weights-resident, inputs-resident, streamed ('random')"),
    "cut window": (
        layer(0, tile_columns=31),
        "tile_columns is a multiple of the pool's stride, so that no window is cut",
    ),
    "stride 1": (layer(1, tile_columns=10), "a layer with a pool of stride 1 is one column tile"),
    "rows": (array(row_depth=64), "the row buffer holds the rows of a tile, of the next one where they overlap"),
    "weights": (array(weight_depth=20), "the weight buffer holds a tile and the one that follows"),
    "sums": (array(kept_depth=4), "the Saver keeps the sums that wait for the tile below (60 sums of kept_depth=4)"),
    "channels": (
        array(channel_tiles=1),
        "the Saver keeps the requantisers of all channel tiles (3 tiles of channel_tiles=1)",
    ),
    "last map": (
        layer(2, on_chip=True),
        "conv5: a map stays on chip for layers that read or add it, and not for the host (0 such layer(s), 0 other "
        "reader(s))",
    ),
    "map depth": (
        all_of(layer(0, on_chip=True), array(map_depth=239)),
        "conv1: a bank of a map buffer holds its rows of a map that stays on chip (240 words of map_depth=239)",
    ),
    "batch on chip": (
        all_of(layer(0, on_chip=True), array(map_depth=240), top(batch=2)),
        "conv1: a map stays on chip in designs of one frame a batch (a batch of 2)",
    ),
    "map depth below": (array(map_depth=-1), "edit.json: array.map_depth is an integer of 0…1048576, not -1"),
    "on chip type": (layer(0, on_chip=1), "edit.json: conv1: on_chip is of type bool, not 1"),
    "one tile": (array(rows=40, save_rows=2), "a layer of one row tile is streamed and not overlapped"),
    "array rule": (array(columns=12), "columns is a multiple of lanes"),
    "array type": (array(rows="5"), "edit.json: array.rows is an integer of 1…1048576, not '5'"),
    "array bool": (array(rows=True), "array.rows is an integer of 1…1048576, not True"),
    "array key": (array(speed=5), "edit.json: array: has unknown speed; the keys are rows, columns"),
    "array lacks": (lambda v: v["array"].pop("chunk"), "edit.json: array: lacks chunk; the keys are rows, columns"),
    "width": (layer(0, tile_columns=61), "edit.json: conv1: tile_columns is 1…60, not 61"),
    "width type": (layer(0, tile_columns=2.5), "edit.json: conv1: tile_columns is of type int, not 2.5"),
    "layer name": (layer(0, name="conv9"), "layers has to name conv1, conv3, conv5 in this order, as edited does"),
    "format": (
        top(format="x"),
        'edit.json is not a schedule: it has to be an object with "format": "systolic-schedule"',
    ),
    "version": (top(version=1), "edit.json has version 1; this program reads version 2: save the schedule again"),
    "batch": (top(batch=0), "edit.json: batch is an integer of 1…64, not 0"),
    "batch type": (top(batch=True), "edit.json: batch is an integer of 1…64, not True"),
    "key": (
        top(more=1),
        "edit.json: has unknown more; the keys are format, version, network, ddr, batch, array, layers",
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_illegal_edit_gets_the_sentence_of_its_rule(name: str) -> None:
    edit, sentence = EDITS[name]
    values = json.loads(TEXT)
    edit(values)
    with pytest.raises(ScheduleError) as raised:
        from_json(json.dumps(values), NETWORK, "edit.json")
    assert sentence in str(raised.value)


# Other edits are only illegal on this array or for this network.
FORM = (
    "order",
    "array type",
    "array bool",
    "array key",
    "array lacks",
    "width type",
    "format",
    "version",
    "batch",
    "batch type",
    "key",
    "map depth below",
    "on chip type",
)


@pytest.mark.parametrize("name", FORM)
def test_the_schema_refuses_the_form_that_reading_refuses(name: str) -> None:
    values = json.loads(TEXT)
    EDITS[name][0](values)
    assert not schema().is_valid(values)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": 1}', "[" * 100_000, "1" * (1 << 20) + "1"])
def test_what_is_no_schedule_is_refused(text: str) -> None:
    with pytest.raises(ScheduleError, match=r"edit\.json"):
        from_json(text, NETWORK, "edit.json")
