"""Foldings as JSON: a saved folding loads unchanged, and an invalid edit raises an error that names its place."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from boards.board import load
from boards.errors import (
    ChoiceError,
    DamagedFileError,
    InvalidValueError,
    MismatchError,
    MissingValueError,
    RangeError,
    SystolicError,
    UnknownKeyError,
)
from cnn.quantized import QuantizedNetwork
from scheduler.streaming import graph as g
from scheduler.streaming.folding_file import SCHEMA, from_json, to_json
from scheduler.streaming.lower import lower
from scheduler.streaming.result import Goal
from scheduler.streaming.search import greedy
from tests.support.cases import cases
from tests.support.errors import raises, raises_among
from tests.support.low_bit import Layers, mobilenet, skipping

GRAPH = lower(Layers(6, 8, 8).conv(10, 3).conv(4, 1).network("two"))


def edited(change: Callable[[dict[str, Any]], object]) -> str:
    values = json.loads(to_json(g.StreamingFolding(GRAPH, (g.Fold(),) * len(GRAPH.blocks))))
    change(values)
    return json.dumps(values)


def block(values: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(b for b in values["blocks"] if b["name"] == name)
    return found


@pytest.mark.parametrize("make", [skipping, mobilenet])
def test_saved_folding_loads_unchanged(make: Callable[[], QuantizedNetwork]) -> None:
    graph = lower(make())
    folding = greedy.fold(graph, load("ultra96-v2"), Goal(40_000)).folding
    text = to_json(folding)
    jsonschema.validate(json.loads(text), SCHEMA)
    loaded = from_json(text, graph)
    assert (loaded.folds, loaded.depths) == (folding.folds, folding.depths)
    assert to_json(loaded) == text


def test_json_has_a_line_per_block_with_its_changed_keys() -> None:
    lines = to_json(
        g.StreamingFolding(GRAPH, (g.Fold(), g.Fold(simd=2), g.Fold(), g.Fold(pe=2), g.Fold()))
    ).splitlines()
    assert lines[0] == '{"format": "systolic-folding", "version": 1, "network": "two",'
    assert lines[3] == '  {"name": "conv1_window", "simd": 2},'


def test_edited_folding_loads_the_new_values() -> None:
    loaded = from_json(edited(lambda v: block(v, "conv1").update(pe=5, simd=9, depths=[64])), GRAPH)
    assert loaded.folds[2] == g.Fold(pe=5, simd=9)
    assert loaded.depths == ((2, 0, 64),)


def test_edit_that_breaks_a_constraint_raises_its_error() -> None:
    with raises_among(InvalidValueError, where="conv1", what="pe", got=4, nearest=(2, 5)) as caught:
        from_json(edited(lambda v: block(v, "conv1").update(pe=4)), GRAPH, "hand.json")
    assert caught.value.where == "hand.json"


NAMES = ["input", "conv1_window", "conv1", "conv2", "conv2_out"]
EDITS: dict[str, tuple[Callable[[dict[str, Any]], object], type[SystolicError], dict[str, Any]]] = {
    "format": (lambda v: v.update(format="other"), DamagedFileError, {"path": "hand.json"}),
    "version": (lambda v: v.update(version=2), MismatchError, {"where": "hand.json", "got": 2, "expected": 1}),
    "no network": (lambda v: v.pop("network"), MissingValueError, {"where": "hand.json", "what": "the key network"}),
    "a block less": (lambda v: v["blocks"].pop(), MismatchError, {"got": NAMES[:-1], "expected": NAMES}),
    "no blocks": (lambda v: v.update(blocks=3), MismatchError, {"got": 3, "expected": NAMES}),
    "key": (
        lambda v: block(v, "conv1").update(PE=2),
        UnknownKeyError,
        {"where": "hand.json: conv1", "keys": ["PE"]},
    ),
    "text": (lambda v: block(v, "conv1").update(pe="2"), RangeError, {"what": "pe", "got": "2", "integer": True}),
    "truth": (lambda v: block(v, "conv1").update(pe=True), RangeError, {"what": "pe", "got": True, "integer": True}),
    "none": (lambda v: block(v, "conv1").update(pe=0), RangeError, {"what": "pe", "got": 0, "low": 1, "high": 1 << 20}),
    "below": (lambda v: block(v, "conv1").update(pad_in=-1), RangeError, {"what": "pad_in", "got": -1, "low": 0}),
    "memory": (
        lambda v: block(v, "conv1").update(ram="dram"),
        ChoiceError,
        {"what": "ram", "got": "dram", "choices": ("auto", "lutram", "bram", "uram")},
    ),
    "depths": (
        lambda v: block(v, "conv1").update(depths=[1, 2]),
        InvalidValueError,
        {"where": "hand.json: conv1", "what": "depths", "got": [1, 2]},
    ),
    "depth": (
        lambda v: block(v, "conv1").update(depths=[1 << 30]),
        InvalidValueError,
        {"what": "depths", "got": [1 << 30]},
    ),
}


@cases("name", EDITS)
def test_malformed_edit_is_refused(name: str) -> None:
    change, kind, fields = EDITS[name]
    with raises(kind, **fields):
        from_json(edited(change), GRAPH, "hand.json")


@cases("text", ["{", "[" * 100_000, " " * ((1 << 20) + 1), "[]"])
def test_text_without_a_folding_is_refused(text: str) -> None:
    with raises(DamagedFileError, path="folding"):
        from_json(text, GRAPH)
