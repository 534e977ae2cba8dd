"""Schedules as files: written and read again, and the error for an edit that breaks a rule."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from boards.errors import (
    ChoiceError,
    DamagedFileError,
    DoesNotFitError,
    InvalidValueError,
    MismatchError,
    MissingValueError,
    RangeError,
    SeveralFaultsError,
    SystolicError,
    UnknownKeyError,
    UnsupportedError,
)
from scheduler.hardware.ddr import MIN_GBPS
from scheduler.systolic.array import Array
from scheduler.systolic.program.emit import emit
from scheduler.systolic.schedule_file import SCHEMA, from_json, saved_ddr, to_json
from scheduler.systolic.tiling import ORDERS, TILING_RULES
from tests.support.cases import cases
from tests.support.errors import faults_of, raises, raises_among
from tests.support.quantised import Builder
from tests.support.schedules import first_fit

NETWORK = Builder(3, 40, 61).conv(16, 3).pool().conv(24, 3).pool(1).conv(8, 1).network("edited")
ARRAY = Array(5, 8, 8, row_depth=1024, weight_depth=1024, kept_depth=512, chunk=8, channel_tiles=16)
TEXT = to_json(first_fit(NETWORK, ARRAY))


def test_schedule_file_round_trip_gives_the_same_program() -> None:
    again = from_json(TEXT, NETWORK)
    assert to_json(again) == TEXT
    assert (emit(again).words == emit(first_fit(NETWORK, ARRAY)).words).all()


def test_schedule_file_saves_the_batch() -> None:
    schedule = first_fit(NETWORK, ARRAY, 3)
    text = to_json(schedule)
    again = from_json(text, NETWORK)
    assert again.batch == 3
    assert to_json(again) == text
    assert (emit(again).words == emit(schedule).words).all()
    schema().validate(json.loads(text))


def schema() -> Any:
    """Return a validator of the schema, as an editor uses it."""
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    return jsonschema.Draft202012Validator(SCHEMA)


def test_schema_accepts_saved_schedules() -> None:
    schema().validate(json.loads(TEXT))


def test_schedule_file_edit_by_hand_is_read() -> None:
    values = json.loads(TEXT)
    values["layers"][0].update(order="streamed", tile_columns=22, overlap=False)
    tiling = from_json(json.dumps(values), NETWORK).tilings[0]
    assert [tile.columns for tile in tiling.columns.tiles] == [22, 22, 17]
    assert (tiling.weights_resident, tiling.overlap) == (False, False)


def test_schedule_file_map_on_chip_by_hand_is_read() -> None:
    values = json.loads(TEXT)
    values["array"]["map_depth"] = 248
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


RULES: dict[str, tuple[Callable[[dict[str, Any]], None], type[SystolicError], dict[str, Any]]] = {
    "order": (layer(0, order="random"), ChoiceError, {"what": "order", "got": "random", "choices": ORDERS}),
    "cut window": (
        layer(0, tile_columns=31),
        InvalidValueError,
        {"where": "conv1", "what": "tile_columns", "got": 31, "nearest": (30, 32)},
    ),
    "stride 1": (
        layer(1, tile_columns=10),
        InvalidValueError,
        {"where": "conv3", "what": "tile_columns", "got": 10, "nearest": (31,)},
    ),
    "one column": (
        layer(0, tile_columns=20),
        InvalidValueError,
        {"where": "conv1", "what": "tile_columns", "got": 20},
    ),
    "rows": (array(row_depth=64), DoesNotFitError, {"where": "conv1", "have": 64}),
    "weights": (array(weight_depth=20), DoesNotFitError, {"where": "conv3", "have": 20}),
    "sums": (
        array(kept_depth=4),
        DoesNotFitError,
        {"where": "conv1", "need": 62, "have": 4, "nearest": "kept_depth 62"},
    ),
    "channels": (
        array(channel_tiles=1),
        DoesNotFitError,
        {"where": "conv3", "need": 3, "have": 1, "nearest": "channel_tiles 3"},
    ),
    "last map": (layer(2, on_chip=True), UnsupportedError, {"where": "conv5", "subject": "on_chip"}),
    "map depth": (
        all_of(layer(0, on_chip=True), array(map_depth=247)),
        DoesNotFitError,
        {"where": "conv1", "need": 248, "have": 247},
    ),
    "batch on chip": (
        all_of(layer(0, on_chip=True), array(map_depth=248), top(batch=2)),
        UnsupportedError,
        {"where": "conv1", "subject": "on_chip"},
    ),
    "one tile": (
        array(rows=40, save_rows=2),
        InvalidValueError,
        {"where": "conv1", "what": "order", "got": "weights-resident with overlap"},
    ),
    "array rule": (array(columns=12), InvalidValueError, {"what": "columns", "got": 12, "nearest": (8, 16)}),
}
"""Edits that break a rule of the schedule or of its array."""

FORM: dict[str, tuple[Callable[[dict[str, Any]], None], type[SystolicError], dict[str, Any]]] = {
    "map depth below": (array(map_depth=-1), RangeError, {"what": "array.map_depth", "got": -1, "low": 0}),
    "flag": (array(windows=2), RangeError, {"what": "array.windows", "got": 2, "low": 0, "high": 1}),
    "flag type": (array(windows=True), RangeError, {"what": "array.windows", "got": True}),
    "on chip type": (
        layer(0, on_chip=1),
        InvalidValueError,
        {"where": "edit.json: conv1", "what": "on_chip", "got": 1},
    ),
    "array type": (array(rows="5"), RangeError, {"what": "array.rows", "got": "5", "low": 1, "integer": True}),
    "array bool": (array(rows=True), RangeError, {"what": "array.rows", "got": True}),
    "array text": (array(dsp=48), InvalidValueError, {"what": "array.dsp", "got": 48}),
    "no array": (top(array=[5, 8, 8]), InvalidValueError, {"what": "array", "got": [5, 8, 8]}),
    "array key": (array(speed=5), UnknownKeyError, {"where": "edit.json: array", "keys": ["speed"]}),
    "array lacks": (
        lambda v: v["array"].pop("chunk"),
        MissingValueError,
        {"where": "edit.json: array", "what": "the key chunk"},
    ),
    "width": (
        layer(0, tile_columns=62),
        RangeError,
        {"where": "edit.json: conv1", "what": "tile_columns", "got": 62, "low": 1, "high": 61},
    ),
    "width type": (layer(0, tile_columns=2.5), InvalidValueError, {"what": "tile_columns", "got": 2.5}),
    "layer name": (
        layer(0, name="conv9"),
        MismatchError,
        {"got": ["conv9", "conv3", "conv5"], "expected": ["conv1", "conv3", "conv5"]},
    ),
    "another network": (
        all_of(layer(0, name="conv9"), top(network="other")),
        MismatchError,
        {"what": "the network", "got": "other", "expected": "edited"},
    ),
    "format": (top(format="x"), DamagedFileError, {"path": "edit.json"}),
    "version": (top(version=1), MismatchError, {"where": "edit.json", "got": 1, "expected": 2}),
    "batch": (top(batch=0), RangeError, {"where": "edit.json", "what": "batch", "got": 0, "low": 1, "high": 64}),
    "batch type": (top(batch=True), RangeError, {"what": "batch", "got": True, "integer": True}),
    "key": (top(more=1), UnknownKeyError, {"where": "edit.json", "keys": ["more"]}),
    "memory": (top(ddr=[19.2]), InvalidValueError, {"what": "ddr", "got": [19.2]}),
    "memory's rate": (top(ddr={"gbps": "19", "efficiency": 1}), InvalidValueError, {"what": "ddr.gbps", "got": "19"}),
    "memory of no speed": (
        top(ddr={"gbps": 0, "efficiency": 1}),
        RangeError,
        {"where": "edit.json: ddr", "got": 0, "low": MIN_GBPS},
    ),
}
"""Edits with keys or values that no schedule can have."""


def read(text: str) -> None:
    from_json(text, NETWORK, "edit.json")
    saved_ddr(text, "edit.json")


@cases("name", RULES)
def test_schedule_file_edit_breaking_a_rule_raises_its_error(name: str) -> None:
    edit, kind, fields = RULES[name]
    values = json.loads(TEXT)
    edit(values)
    with raises_among(kind, **fields):
        read(json.dumps(values))


def _is_refused(name: str) -> bool:
    edit, kind, fields = RULES[name]
    values = json.loads(TEXT)
    edit(values)
    try:
        read(json.dumps(values))
    except SeveralFaultsError as error:
        return bool(faults_of(error, kind, **fields))
    return False


def test_tiling_rules_are_each_broken_by_an_edit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any one rule, the edit that breaks it is accepted: a new rule needs an edit in RULES."""
    for index in range(len(TILING_RULES)):
        others = (*TILING_RULES[:index], *TILING_RULES[index + 1 :])
        monkeypatch.setattr("scheduler.systolic.tiling.TILING_RULES", others)
        assert not all(map(_is_refused, RULES)), f"no edit breaks rule {index}"


@cases("name", FORM)
def test_schedule_file_edit_of_wrong_form_is_refused(name: str) -> None:
    edit, kind, fields = FORM[name]
    values = json.loads(TEXT)
    edit(values)
    with raises(kind, **fields):
        read(json.dumps(values))


# Other edits are only illegal on this array or for this network.
SCHEMATIC = [name for name in FORM if name not in ("width", "layer name", "another network")]


@cases("name", [*SCHEMATIC, "order"])
def test_schema_refuses_edits_of_wrong_form(name: str) -> None:
    values = json.loads(TEXT)
    {**FORM, **RULES}[name][0](values)
    assert not schema().is_valid(values)


@cases("text", ["", "[]", "{", '{"format": 1}', "[" * 100_000, "1" * (1 << 20) + "1"])
def test_schedule_file_other_text_is_refused(text: str) -> None:
    with raises(DamagedFileError, path="edit.json"):
        from_json(text, NETWORK, "edit.json")
