"""Foldings as JSON: what is saved is loaded, and an edit that breaks something says what."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from boards.board import load
from boards.errors import ScheduleError
from cnn.quantized import QuantizedNetwork
from scheduler.streaming import graph as g
from scheduler.streaming.folding_file import SCHEMA, from_json, to_json
from scheduler.streaming.lower import lower
from scheduler.streaming.result import Goal
from scheduler.streaming.search import greedy
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
def test_what_is_saved_is_loaded(make: Callable[[], QuantizedNetwork]) -> None:
    graph = lower(make())
    folding = greedy.fold(graph, load("ultra96-v2"), Goal(40_000)).folding
    text = to_json(folding)
    jsonschema.validate(json.loads(text), SCHEMA)
    loaded = from_json(text, graph)
    assert (loaded.folds, loaded.depths) == (folding.folds, folding.depths)
    assert to_json(loaded) == text


def test_a_block_is_a_line_and_says_only_what_is_not_as_ever() -> None:
    lines = to_json(
        g.StreamingFolding(GRAPH, (g.Fold(), g.Fold(simd=2), g.Fold(), g.Fold(pe=2), g.Fold()))
    ).splitlines()
    assert lines[0] == '{"format": "systolic-folding", "version": 1, "network": "two",'
    assert lines[3] == '  {"name": "conv1_window", "simd": 2},'


def test_an_edit_is_taken() -> None:
    loaded = from_json(edited(lambda v: block(v, "conv1").update(pe=5, simd=9, depths=[64])), GRAPH)
    assert loaded.folds[2] == g.Fold(pe=5, simd=9)
    assert loaded.depths == ((2, 0, 64),)


def test_an_illegal_edit_says_the_sentence_of_its_row() -> None:
    with pytest.raises(ScheduleError) as error:
        from_json(edited(lambda v: block(v, "conv1").update(pe=4)), GRAPH, "hand.json")
    assert str(error.value) == (
        "hand.json: the folding of two is not legal:\n"
        "  conv1: pe has to divide its filters, MH (10), and 4 does not; nearest are 2 and 5, or pad_out adds channels"
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda v: v.update(format="other"), 'folding is not a folding: it has to be an object with "format"'),
        (lambda v: v.update(version=2), "folding has version 2; this program reads version 1"),
        (lambda v: v.pop("network"), "folding: lacks network; the keys are format, version, network, ddr, blocks"),
        (
            lambda v: v["blocks"].pop(),
            "folding: blocks has to name input, conv1_window, conv1, conv2, conv2_out in this",
        ),
        (lambda v: block(v, "conv1").update(PE=2), "folding: conv1: has unknown PE; the keys are name, pe, simd"),
        (lambda v: block(v, "conv1").update(pe="2"), "folding: conv1: pe is an integer of 1…1048576, not '2'"),
        (lambda v: block(v, "conv1").update(pe=True), "folding: conv1: pe is an integer of 1…1048576, not True"),
        (lambda v: block(v, "conv1").update(pad_in=-1), "folding: conv1: pad_in is an integer of 0…1048576, not -1"),
        (
            lambda v: block(v, "conv1").update(ram="dram"),
            "folding: conv1: ram is one of auto, lutram, bram, uram, not 'dram'",
        ),
        (
            lambda v: block(v, "conv1").update(depths=[1, 2]),
            "folding: conv1: depths are 1 integers of 0…16777216, one an",
        ),
        (lambda v: block(v, "conv1").update(depths=[1 << 30]), "folding: conv1: depths are 1 integers of 0…16777216"),
    ],
)
def test_what_a_hand_breaks_is_named(change: Callable[[dict[str, Any]], object], sentence: str) -> None:
    with pytest.raises(ScheduleError) as error:
        from_json(edited(change), GRAPH)
    assert sentence in str(error.value)


def test_what_is_no_json_or_too_much_is_refused() -> None:
    with pytest.raises(ScheduleError, match="folding is not JSON: Expecting"):
        from_json("{", GRAPH)
    with pytest.raises(ScheduleError, match="folding is not JSON: "):
        from_json("[" * 100_000, GRAPH)
    with pytest.raises(ScheduleError, match="folding has 1048577 characters; a folding has at most 1048576"):
        from_json(" " * ((1 << 20) + 1), GRAPH)
