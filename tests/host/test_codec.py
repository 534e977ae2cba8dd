"""The codec: written values are read back, and values that break their declaration are refused with the place."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from boards.errors import (
    ChoiceError,
    DamagedFileError,
    FileAccessError,
    InvalidValueError,
    MissingValueError,
    RangeError,
    SystolicError,
)
from host.contract.codec import OPTIONAL, OneOf, Range, from_json, parse_json, read_bounded, read_json, to_json
from tests.support.errors import raises


@dataclass(frozen=True, kw_only=True)
class Leaf:
    size: Annotated[int, Range(1, 9, "bytes")]
    share: float = dataclasses.field(default=0.5, metadata=OPTIONAL)
    colour: Annotated[str, OneOf(("red", "green"))] = dataclasses.field(default="green", metadata=OPTIONAL)
    dry: Annotated[bool, OneOf((0, 1))] = dataclasses.field(default=False, metadata=OPTIONAL)

    def __post_init__(self) -> None:
        if self.size == 7:
            raise RangeError("seven", 7, 8)


@dataclass(frozen=True, kw_only=True)
class Tree:
    name: str
    leaves: tuple[Leaf, ...]
    best: Leaf | None = dataclasses.field(default=None, metadata=OPTIONAL)
    named: Mapping[str, Leaf] | None = dataclasses.field(default=None, metadata=OPTIONAL)


def test_value_is_read_back_as_written() -> None:
    for tree in (
        Tree(name="a", leaves=()),
        Tree(name="", leaves=(Leaf(size=1), Leaf(size=9, share=1.0, colour="red")), best=Leaf(size=2)),
        Tree(name="b", leaves=(), named={"x": Leaf(size=3), "y z": Leaf(size=4, share=0.25)}),
    ):
        assert from_json(Tree, json.loads(json.dumps(to_json(tree)))) == tree
    assert to_json(Tree(name="a", leaves=(Leaf(size=1),))) == {"name": "a", "leaves": [{"size": 1}]}


def test_flag_is_1_or_0_in_the_file() -> None:
    written = json.dumps(to_json(Leaf(size=1, dry=True)))
    assert written == '{"size": 1, "dry": 1}'
    for value, dry in ((0, False), (1, True)):
        assert from_json(Leaf, {"size": 1, "dry": value}).dry is dry
    for wrong in (2, -1, True, "1", None, 1.0):
        with raises(ChoiceError, where="dry", got=wrong, choices=(0, 1)):
            from_json(Leaf, {"size": 1, "dry": wrong})


def test_wrong_value_is_refused_with_its_place() -> None:
    bare: dict[str, Any] = {"name": "a", "leaves": []}
    nine = {"what": "the number of bytes", "low": 1, "high": 9, "integer": True}
    number = {"required": "a finite number"}
    rows: list[tuple[Any, type[SystolicError], dict[str, Any]]] = [
        ([], InvalidValueError, {"where": "", "required": "an object"}),
        ({}, MissingValueError, {"where": "", "what": "'name'"}),
        ({"name": 1, "leaves": []}, InvalidValueError, {"where": "name", "got": 1, "required": "a text"}),
        ({"name": "a", "leaves": {}}, InvalidValueError, {"where": "leaves", "got": {}, "required": "a list"}),
        ({**bare, "named": [1]}, InvalidValueError, {"where": "named", "required": "an object"}),
        ({**bare, "named": {"x": {"size": 0}}}, RangeError, {"where": "named['x'].size", "got": 0, **nine}),
        ({**bare, "leaves": [3]}, InvalidValueError, {"where": "leaves[0]", "required": "an object"}),
        ({**bare, "leaves": [{"size": 1}, {}]}, MissingValueError, {"where": "leaves[1]", "what": "'size'"}),
        ({**bare, "leaves": [{"size": 10}]}, RangeError, {"where": "leaves[0].size", "got": 10, **nine}),
        ({**bare, "leaves": [{"size": True}]}, RangeError, {"where": "leaves[0].size", "got": True, **nine}),
        ({**bare, "leaves": [{"size": 1.0}]}, RangeError, {"where": "leaves[0].size", "got": 1.0, **nine}),
        ({**bare, "leaves": [{"size": 7}]}, RangeError, {"where": "leaves[0]", "what": "seven"}),
        ({**bare, "best": {"size": 1, "share": "1"}}, InvalidValueError, {"where": "best.share", "got": "1", **number}),
        ({**bare, "best": {"size": 1, "share": 10**400}}, InvalidValueError, {"where": "best.share", **number}),
        (
            {**bare, "best": {"size": 1, "colour": "rot"}},
            ChoiceError,
            {"where": "best.colour", "got": "rot", "choices": ("red", "green")},
        ),
        ({**bare, "best": {"size": 1, "colour": 3}}, ChoiceError, {"where": "best.colour", "got": 3}),
    ]
    for values, kind, fields in rows:
        with raises(kind, **fields):
            from_json(Tree, values)


def test_whole_number_is_a_float_up_to_1000_bits() -> None:
    for bits in (10, 999, 1000, 1001):
        values = {"name": "a", "leaves": [{"size": 1, "share": 1 << bits}]}
        if bits < 1000:
            assert from_json(Tree, values).leaves[0].share == float(1 << bits)
        else:
            with raises(InvalidValueError, where="leaves[0].share"):
                from_json(Tree, values)


def test_range_holds_both_ends() -> None:
    assert [Range(1, 3).holds(value) for value in (0, 1, 3, 4)] == [False, True, True, False]


def test_text_that_is_not_json_is_damaged() -> None:
    for data, reason in (
        (b"[" * 100_000, "is nested too deeply"),
        (b"{", "is not JSON: "),
        (b"[NaN]", "is not JSON: NaN is not a number"),
        (b"\xff", "is not JSON: "),
        (b"9" * 5000, "is not JSON: "),
        (b"", "is not JSON: "),
    ):
        with raises(DamagedFileError, path="x") as caught:
            parse_json(data, "x")
        assert caught.value.reason.startswith(reason)


def test_file_is_read_up_to_its_largest_size(tmp_path: Path) -> None:
    path = tmp_path / "it.json"
    path.write_bytes(b"[1, 2]")
    assert read_bounded(path, 6) == b"[1, 2]"
    assert read_json(path, 6) == [1, 2]
    with raises(RangeError, where=str(path), got=6, high=5):
        read_bounded(path, 5)
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with raises(FileAccessError, path=str(tmp_path / name)):
            read_bounded(tmp_path / name, 99)
