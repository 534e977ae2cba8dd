"""Tests of boards/errors.py: each error class formats its fields as one sentence, also if a value is huge or broken."""

from __future__ import annotations

import dataclasses
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

from boards import errors
from boards.errors import (
    AcceleratorError,
    ChoiceError,
    ConflictError,
    DamagedFileError,
    DoesNotFitError,
    FileAccessError,
    InvalidValueError,
    MismatchError,
    MissingToolError,
    MissingValueError,
    RangeError,
    RefusedLoopError,
    SeveralFaultsError,
    ShapeError,
    StateError,
    SystolicError,
    ToolError,
    UnknownKeyError,
    UnsupportedError,
    cut,
    faults,
    listed,
    shown,
)
from tests.support.errors import raises

SENTENCES: list[tuple[SystolicError, str]] = [
    (InvalidValueError("'labels'", 3, "a list of names"), "'labels' must be a list of names; got 3"),
    (
        InvalidValueError("the clock in MHz", 200, "one that the PS produces", (187.5, 214.3)),
        "the clock in MHz must be one that the PS produces; got 200 (nearest: 187.5, 214.3)",
    ),
    (
        ChoiceError("the board", "ZCU14", ("kv260", "zcu104")),
        "the board must be one of kv260, zcu104; got 'ZCU14' (did you mean 'zcu104'?)",
    ),
    (ChoiceError("bits", 5, (4, 8, 16)), "bits must be one of 4, 8, 16; got 5"),
    (RangeError("the padding", -1, 0, 255), "the padding must be between 0 and 255; got -1"),
    (RangeError("the number of inputs", 3, 1, 1), "the number of inputs must be 1; got 3"),
    (RangeError("the number of layers", 0, low=1), "the number of layers must be at least 1; got 0"),
    (RangeError("the size in bytes", 70_000, high=65_536), "the size in bytes must be at most 65,536; got 70000"),
    (RangeError("a seed", 0.5, 0, 7, integer=True), "a seed must be a whole number between 0 and 7; got 0.5"),
    (RangeError("a scale", 0.0, 0, exclusive=True), "a scale must be above 0; got 0.0"),
    (RangeError("a scale", 11.0, 0, 10.0, exclusive=True), "a scale must be above 0 and at most 10; got 11.0"),
    (ShapeError("the bias", (3,), (4,)), "the bias must have shape (4,); got shape (3,)"),
    (ShapeError("the weights", "float64", "the type float32"), "the weights must have the type float32; got float64"),
    (
        UnknownKeyError(["fliters"], ["filters", "stride"]),
        "unknown key 'fliters' (did you mean 'filters'?); known keys are filters, stride",
    ),
    (UnknownKeyError(["a", "b"], ["filters"]), "unknown keys 'a', 'b'; known keys are filters"),
    (UnknownKeyError(["a"], []), "unknown key 'a'"),
    (MissingValueError("'filters'"), "'filters' is missing"),
    (MissingValueError("--weights", "no seed came"), "--weights is missing (no seed came)"),
    (
        FileAccessError("/a/b.weights", "does not exist", "weights file"),
        "the weights file /a/b.weights does not exist",
    ),
    (FileAccessError("/a", "is a folder"), "the file /a is a folder"),
    (DamagedFileError("net.npz", "is cut off"), "net.npz is cut off"),
    (DamagedFileError("net.npz", "is not an array", "conv0_w"), "net.npz, conv0_w, is not an array"),
    (
        UnsupportedError("LSTM 'encoder'", "it keeps a state"),
        "LSTM 'encoder' is not supported: it keeps a state",
    ),
    (
        RefusedLoopError("outer (a.cpp:3)", "it calls exp, whose latency is not known"),
        "no schedule is derived for the loop outer (a.cpp:3): it calls exp, whose latency is not known",
    ),
    (
        DoesNotFitError("the array", "DSP", 2000, 1728),
        "the array does not fit: it needs 2,000 DSP, and there are 1,728",
    ),
    (
        DoesNotFitError("net", "DSP", None, 220, [("BRAM36", 200, 140)], "8×8×8"),
        "net does not fit: it needs more DSP than there are (220); it also needs 200 BRAM36 of 140; what fits: 8×8×8",
    ),
    (
        ConflictError(("--quick", "--full"), "each says how long to search"),
        "--quick and --full exclude each other: each says how long to search",
    ),
    (MismatchError("the checksum", "0a", "0b"), "the checksum must equal 0b; got 0a"),
    (MismatchError("the number of outputs", 3, 4), "the number of outputs must equal 4; got 3"),
    (MissingToolError("PyTorch", "train networks"), "PyTorch is not installed; it is needed to train networks"),
    (ToolError("g++", "ended with status 1"), "g++ ended with status 1"),
    (ToolError("g++", "ended with status 1", "a.cpp:1"), "g++ ended with status 1:\na.cpp:1"),
    (AcceleratorError("a frame did not end in 2 s"), "a frame did not end in 2 s"),
    (AcceleratorError("a frame did not end in 2 s", "busy"), "a frame did not end in 2 s (busy)"),
    (StateError("the detector", "is closed"), "the detector is closed"),
    (
        SeveralFaultsError([MissingValueError("a"), MissingValueError("b", where="f:2")]),
        "a is missing; f:2: b is missing",
    ),
    (
        SeveralFaultsError([MissingValueError("a"), MissingValueError("b")], "2 keys are wrong"),
        "2 keys are wrong:\n  a is missing\n  b is missing",
    ),
    (SeveralFaultsError([MissingValueError("a")], "net.cfg is wrong"), "net.cfg is wrong: a is missing"),
]
"""An error of every class, without a place and a remedy, and its expected message."""


def test_error_classes_format_their_sentences() -> None:
    for error, sentence in SENTENCES:
        assert str(error) == sentence, type(error).__name__


def test_error_sentences_cover_every_class() -> None:
    classes = {value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)}
    assert classes - {SystolicError} == {type(error) for error, _ in SENTENCES}


def test_place_precedes_and_remedy_follows_the_sentence() -> None:
    for error, sentence in SENTENCES:
        placed = dataclasses.replace(error, where="net.cfg:7")
        end = "\n" if "\n" in sentence else "; "
        assert str(placed) == f"net.cfg:7: {sentence}"
        assert str(dataclasses.replace(error, remedy="add it")) == f"{sentence}{end}add it"
        assert str(dataclasses.replace(placed, remedy="add it")) == f"net.cfg:7: {sentence}{end}add it"


def test_at_prepends_a_place_and_keeps_the_first_remedy() -> None:
    error = MissingValueError("'a'").at("layer 3", "add it")
    assert (error.what, error.where, error.remedy) == ("'a'", "layer 3", "add it")
    outer = error.at("net.json", "write it again")
    assert (type(outer), outer.where, outer.remedy) == (MissingValueError, "net.json: layer 3", "add it")
    assert error.where == "layer 3"
    assert RangeError("a", 3, 0, 1).at("").where == ""
    caught: SystolicError = SeveralFaultsError([error], "one fault").at("net.json")
    assert isinstance(caught, SeveralFaultsError)
    assert caught.errors == [error]


def fail(number: int) -> None:
    raise dataclasses.replace(SENTENCES[number][0], where="worker", remedy="go on")


def test_errors_raised_in_a_worker_process_keep_their_fields() -> None:
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        for number, (error, _) in enumerate(SENTENCES):
            with pytest.raises(type(error)) as caught:
                pool.submit(fail, number).result()
            assert str(caught.value) == str(dataclasses.replace(error, where="worker", remedy="go on"))
            for field in dataclasses.fields(error):
                if field.name not in ("where", "remedy", "errors"):
                    assert getattr(caught.value, field.name) == getattr(error, field.name)


def test_choice_error_nearest_ignores_the_case() -> None:
    assert ChoiceError("x", "UNIX", ("darknet", "unit")).nearest() == "unit"
    assert ChoiceError("x", "dark", ("DarkNet", "unit")).nearest() == "DarkNet"
    assert ChoiceError("x", "nothing like it", ("darknet", "unit")).nearest() is None
    assert ChoiceError("x", 7, (8, 9)).nearest() is None
    assert ChoiceError("x", "8 ", (8, 9)).nearest() == "8"


LONG: list[SystolicError] = [
    InvalidValueError("a", "x" * 100_000, "b", ["y" * 100_000] * 100),
    InvalidValueError("a", np.zeros((100, 100)), "b"),
    ChoiceError("a", "x" * 100_000, ["y" * 100_000] * 100),
    RangeError("a", 10**5000, 0, 1),
    ShapeError("a", (1,) * 100_000, "b" * 100_000),
    UnknownKeyError(["x" * 100_000] * 100, ["y" * 100_000] * 100),
    FileAccessError("x" * 100_000, "does not exist"),
    DamagedFileError("x" * 100_000, "is cut off"),
    MismatchError("a", "x" * 100_000, list(range(100_000))),
    SeveralFaultsError([MissingValueError("x" * 100_000)] * 100),
]


def test_long_values_are_cut() -> None:
    for error in LONG:
        assert len(str(error)) < 3000, type(error).__name__


def test_faults_error_counts_the_omitted_faults() -> None:
    several = SeveralFaultsError([MissingValueError(f"key {number}") for number in range(100)], "100 keys are wrong")
    assert str(several).count("is missing") == errors.MAX_FAULTS
    assert str(several).endswith(f"and {100 - errors.MAX_FAULTS} more")


def test_equal_faults_of_nodes_of_one_kind_are_listed_once() -> None:
    several = SeveralFaultsError(
        [
            RangeError("a stride", 0, low=1, where="Conv 'a'"),
            UnsupportedError("LSTM 'b'", "it has a state"),
            RangeError("a stride", 0, low=1, where="Conv 'c'"),
            RangeError("a stride", 0, low=1, where="MaxPool 'd'"),
            UnsupportedError("LSTM 'e'", "it has a state"),
            RangeError("a stride", -1, low=1, where="Conv 'f'"),
            RangeError("a stride", 0, low=1, where="net.cfg:3"),
            RangeError("a stride", 0, low=1, where="net.cfg:9"),
        ],
        "8 layers are wrong",
        remedy="leave them out",
    )
    assert str(several).splitlines() == [
        "8 layers are wrong:",
        "  Conv 'a' (and 1 more): a stride must be at least 1; got 0",
        "  LSTM 'b' (and 1 more) is not supported: it has a state",
        "  MaxPool 'd': a stride must be at least 1; got 0",
        "  Conv 'f': a stride must be at least 1; got -1",
        "  net.cfg:3: a stride must be at least 1; got 0",
        "  net.cfg:9: a stride must be at least 1; got 0",
        "leave them out",
    ]


def test_raises_compares_class_and_fields() -> None:
    with raises(RangeError, what="a", got=3, high=1):
        raise RangeError("a", 3, high=1)
    with pytest.raises(AssertionError), raises(SystolicError, where=""):
        raise RangeError("a", 3, high=1)
    with pytest.raises(AssertionError), raises(RangeError, got=4):
        raise RangeError("a", 3, high=1)


# --- values shown in messages


class Nasty:
    def __repr__(self) -> str:
        raise ValueError("no")


def nested(depth: int) -> list[object]:
    value: list[object] = []
    for _ in range(depth):
        value = [value]
    return value


def test_shown_huge_value_is_one_short_line() -> None:
    for value in (
        "x" * 100_000,
        b"x" * 100_000,
        10**5000,
        -(10**5000),
        nested(50_000),
        {str(key): {str(key): list(range(1000))} for key in range(1000)},
        [["word" * 100] * 100] * 100,
        np.zeros((100, 100, 100)),
        Nasty(),
        {10**5000: nested(900)},
    ):
        text = shown(value)
        assert 0 < len(text) <= 80
        assert "\n" not in text
        assert len(shown(value, 20)) <= 20


def test_shown_short_value_is_its_repr() -> None:
    for value in ("two  spaces", 17, -3.5, None, True, [1, [2, "three"]], {"key": (1, 2)}, "line\nbreak"):
        assert shown(value) == repr(value)
    assert shown(10**5000) == "an integer of 16,610 bits"


def test_shown_value_is_cut_below_three_levels_and_above_128_bits() -> None:
    assert shown([[[1]]]) == "[[[1]]]"
    assert shown([[[[1]]]]) == "[[[[...]]]]"
    assert shown((1 << 128) - 1) == repr((1 << 128) - 1)
    assert shown(1 << 128) == "an integer of 129 bits"


def test_cut_long_text_keeps_its_beginning_and_its_end() -> None:
    assert cut("a" * 80) == "a" * 80
    assert cut("/a/very/long/path/to/manifest.json", 20) == "/a/very/long/p….json"
    assert len(cut("a" * 1000, 20)) == 20


def test_listed_long_list_is_cut_with_a_count() -> None:
    assert listed([]) == ""
    assert listed(["a", 2, "c"]) == "a, 2, c"
    assert listed(range(12)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11"
    assert listed(range(1240), most=3) == "0, 1, 2 and 1,237 more"
    assert listed(name for name in "abcd") == "a, b, c, d"
    assert listed({"b": 1, "a": 2}) == "b, a"
    assert len(listed(["name" * 1000] * 1000)) <= 12 * 82 + 20


def test_choice_error_counts_many_choices_and_lists_the_nearest_first() -> None:
    functions = [f"function{number}" for number in range(18)] + ["load", "feed_weights"]
    sentence = str(ChoiceError("the function", "feed_weight", functions))
    assert sentence.startswith("the function must be one of these 20, the nearest first: feed_weights, ")
    assert all(name in sentence for name in functions)
    assert sentence.endswith("; got 'feed_weight' (did you mean 'feed_weights'?)")
    one_more = str(ChoiceError("it", "feed_weight", ["x", *functions]))
    assert one_more.startswith("it must be one of these 21, the nearest first: feed_weights, ")
    assert " and 1 more; got " in one_more
    assert str(ChoiceError("it", 77, range(13))).startswith("it must be one of 0, 1, 2, 3, 4, ")
    known = str(UnknownKeyError(["feed_weight"], functions))
    assert "; known keys are these 20, the nearest first: feed_weights, " in known


def test_faults_are_cut_with_a_count() -> None:
    assert faults([]) == ""
    assert faults(list("abcdefgh")) == "a; b; c; d; e; f; g; h"
    assert faults(list("abcdefghi"), ", ") == "a, b, c, d, e, f, g, h, and 1 more"
    assert faults([str(i) for i in range(2008)]).endswith("; 7; and 2,000 more")
    assert faults(["x" * 300, "y" * 301]) == f"{'x' * 300}; {cut('y' * 301, 300)}"
