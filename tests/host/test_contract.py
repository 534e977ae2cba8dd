"""One reader a contract: keys of a manifest and the C ABI of simulation libraries stand in ``host.contract`` alone."""

from __future__ import annotations

import ast
import dataclasses
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest

from boards.errors import HostError
from host.contract.codec import OPTIONAL, Range, from_json, parse_json, to_json
from host.contract.manifest import MANIFESTS, is_design, manifest_in, manifest_text, parse_manifest
from host.contract.systolic import SystolicArray
from host.styles import STYLES
from scheduler.systolic.array import Array
from tests.host.pipelines import manifest as streaming_values

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("boards", "cnn", "scheduler", "hls_templates", "host", "systolic", "benchmarks")
GOLDEN = sorted((ROOT / "tests" / "golden").glob("*/design/manifest.json"))


def sources() -> Iterator[tuple[str, ast.Module]]:
    for path in (path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))):
        if "contract" not in path.parts:
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text("utf-8"))


def test_nothing_else_looks_into_a_raw_manifest() -> None:
    """A subscript of something named manifest, or JSON that is read from a line that names one."""
    raw = []
    for place, tree in sources():
        for node in ast.walk(tree):
            if isinstance(node, ast.Subscript) and ast.unparse(node.value).split(".")[-1] in ("manifest", "MANIFEST"):
                raw.append(f"{place}:{node.lineno} {ast.unparse(node)}")
            if not (isinstance(node, ast.Call) and ast.unparse(node.func) in ("json.loads", "json.load")):
                continue
            if "manifest" in ast.unparse(node).lower():
                raw.append(f"{place}:{node.lineno} {ast.unparse(node)}")
    assert raw == []


def test_nothing_else_calls_a_simulation_library() -> None:
    names = {"systolic_simulate", "systolic_stream", "systolic_map_bank"}
    calls = [
        f"{place}:{node.lineno}"
        for place, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, (ast.Attribute, ast.Constant))
        and (node.attr if isinstance(node, ast.Attribute) else node.value) in names
    ]
    assert calls == []


def test_nothing_else_of_the_host_asks_for_a_style() -> None:
    """Comparisons with a style's name, and instances of one style's manifest."""
    asks = []
    for place, tree in sources():
        if not place.startswith("host/") or place.startswith(("host/systolic/", "host/streaming/")):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare) and {"'systolic'", "'streaming'"} & set(map(ast.unparse, ast.walk(node))):
                asks.append(f"{place}:{node.lineno} {ast.unparse(node)}")
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
                kinds = ast.unparse(node.args[1])
                if "Systolic" in kinds or "Streaming" in kinds:
                    asks.append(f"{place}:{node.lineno} {ast.unparse(node)}")
    assert asks == []


def test_both_styles_have_everything_in_files_of_the_same_names() -> None:
    assert set(STYLES) == set(MANIFESTS)
    modules = {style: {path.name for path in (ROOT / "host" / style).glob("*.py")} for style in STYLES}
    assert modules["streaming"] - modules["systolic"] == {"dma.py"}
    assert modules["systolic"] <= modules["streaming"]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: str(path.parts[-3]))
def test_what_is_written_is_read_back_equal_and_in_every_byte(path: Path) -> None:
    manifest = manifest_in({"manifest.json": path.read_bytes()})
    assert manifest_text(manifest) == path.read_text("utf-8")
    assert parse_manifest(json.loads(manifest_text(manifest)), "manifest.json") == manifest


def test_a_manifest_says_nothing_that_is_not_read() -> None:
    """Every key is a field: what the writer and the reader know is the same."""
    for path in GOLDEN:
        values = json.loads(path.read_text("utf-8"))
        kind = MANIFESTS[values["style"]]
        assert set(values) <= {field.name for field in dataclasses.fields(kind)} | {"format", "version", "style"}


def test_the_manifests_array_is_the_schedulers() -> None:
    ours, theirs = ({field.name: field.type for field in dataclasses.fields(kind)} for kind in (SystolicArray, Array))
    assert list(ours) == list(theirs)


# --- the codec


@dataclass(frozen=True, kw_only=True)
class Leaf:
    size: Annotated[int, Range(1, 9, "bytes")]
    share: float = dataclasses.field(default=0.5, metadata=OPTIONAL)


@dataclass(frozen=True, kw_only=True)
class Tree:
    name: str
    leaves: tuple[Leaf, ...]
    best: Leaf | None = dataclasses.field(default=None, metadata=OPTIONAL)
    named: Mapping[str, Leaf] | None = dataclasses.field(default=None, metadata=OPTIONAL)


def test_a_value_is_read_back_as_it_was_written() -> None:
    for tree in (
        Tree(name="a", leaves=()),
        Tree(name="", leaves=(Leaf(size=1), Leaf(size=9, share=1.0)), best=Leaf(size=2)),
        Tree(name="b", leaves=(), named={"x": Leaf(size=3), "y z": Leaf(size=4, share=0.25)}),
    ):
        assert from_json(Tree, json.loads(json.dumps(to_json(tree)))) == tree
    assert to_json(Tree(name="a", leaves=(Leaf(size=1),))) == {"name": "a", "leaves": [{"size": 1}]}


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([], "it is an object, not []"),
        ({}, "it lacks 'name'"),
        ({"name": 1, "leaves": []}, "name is a text, not 1"),
        ({"name": "a", "leaves": {}}, "leaves is a list, not {}"),
        ({"name": "a", "leaves": [], "named": [1]}, "named is an object, not [1]"),
        ({"name": "a", "leaves": [], "named": {"x": {"size": 0}}}, "named['x'].size is 1…9 bytes, not 0"),
        ({"name": "a", "leaves": [3]}, "leaves[0] is an object, not 3"),
        ({"name": "a", "leaves": [{}]}, "leaves[0] lacks 'size'"),
        ({"name": "a", "leaves": [{"size": 0}]}, "leaves[0].size is 1…9 bytes, not 0"),
        ({"name": "a", "leaves": [{"size": True}]}, "leaves[0].size is 1…9 bytes, not True"),
        ({"name": "a", "leaves": [{"size": 1.0}]}, "leaves[0].size is 1…9 bytes, not 1.0"),
        ({"name": "a", "leaves": [], "best": {"size": 1, "share": "1"}}, "best.share is a finite number, not '1'"),
        (
            {"name": "a", "leaves": [], "best": {"size": 1, "share": 10**400}},
            "best.share is a finite number, not an integer of",
        ),
    ],
)
def test_what_is_not_as_declared_names_its_place(values: Any, sentence: str) -> None:
    with pytest.raises(HostError) as caught:
        from_json(Tree, values)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize("data", [b"[" * 100_000, b"{", b"NaN", b"\xff", b"9" * 5000, b""])
def test_json_that_is_none_gets_a_sentence(data: bytes) -> None:
    with pytest.raises(HostError, match=r"^x is damaged.*; copy or generate the design again$"):
        parse_json(data, "x")


def test_a_damaged_folder_is_no_design(tmp_path: Path) -> None:
    """It is asked before a folder is replaced, so that it must not raise."""
    assert not is_design(tmp_path)
    for data in (b"[" * 100_000, b"{", b"{}", b'{"format": "other"}'):
        (tmp_path / "manifest.json").write_bytes(data)
        assert not is_design(tmp_path)
    (tmp_path / "manifest.json").write_text(json.dumps(streaming_values() | {"version": 1}))
    assert is_design(tmp_path)
