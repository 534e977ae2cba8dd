"""Only ``host.contract`` contains the keys of a manifest and the C ABI of simulation libraries."""

from __future__ import annotations

import ast
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

from host.contract.manifest import (
    MANIFESTS,
    MAX_MANIFEST_BYTES,
    is_design,
    manifest_in,
    manifest_text,
    parse_manifest,
)
from host.styles import STYLES
from tests.support.host.manifests import fields_of_text
from tests.support.host.pipelines import manifest as streaming_values

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("boards", "contract", "cnn", "scheduler", "hls_templates", "host", "systolic", "benchmarks")
GOLDEN = sorted((ROOT / "tests" / "golden").glob("*/design/manifest.json"))


def sources(*words: str) -> Iterator[tuple[str, ast.Module]]:
    """Yield the modules outside the contract whose text has one of the words, in small letters or not."""
    for path in (path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))):
        text = path.read_text("utf-8")
        if "contract" not in path.parts and any(word in text.lower() for word in words):
            yield path.relative_to(ROOT).as_posix(), ast.parse(text)


def test_raw_manifest_is_read_only_in_host_contract() -> None:
    """Search for subscripts of a value named manifest, and for JSON that is read in a call that names a manifest."""
    raw = []
    for place, tree in sources("manifest"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Subscript) and ast.unparse(node.value).split(".")[-1] in ("manifest", "MANIFEST"):
                raw.append(f"{place}:{node.lineno} {ast.unparse(node)}")
            if not (isinstance(node, ast.Call) and ast.unparse(node.func) in ("json.loads", "json.load")):
                continue
            if "manifest" in ast.unparse(node).lower():
                raw.append(f"{place}:{node.lineno} {ast.unparse(node)}")
    assert raw == []


def test_simulation_library_is_called_only_in_host_contract() -> None:
    names = {"systolic_simulate", "systolic_stream", "systolic_map_bank"}
    calls = [
        f"{place}:{node.lineno}"
        for place, tree in sources(*names)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Attribute, ast.Constant))
        and (node.attr if isinstance(node, ast.Attribute) else node.value) in names
    ]
    assert calls == []


def test_style_comparisons_of_the_host_are_only_in_its_styles() -> None:
    """Comparisons with a style's name, and instances of one style's manifest."""
    asks = []
    for place, tree in sources("systolic", "streaming"):
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


def test_style_packages_have_files_of_the_same_names() -> None:
    assert set(STYLES) == set(MANIFESTS)
    modules = {style: {path.name for path in (ROOT / "host" / style).glob("*.py")} for style in STYLES}
    assert modules["streaming"] - modules["systolic"] == {"dma.py"}
    assert modules["systolic"] <= modules["streaming"]


def test_manifest_is_read_back_equal_and_in_every_byte() -> None:
    assert len(GOLDEN) >= 2
    for path in GOLDEN:
        manifest = manifest_in({"manifest.json": path.read_bytes()})
        assert manifest_text(manifest) == path.read_text("utf-8"), path
        assert parse_manifest(json.loads(manifest_text(manifest)), "manifest.json") == manifest, path


def test_manifest_keys_are_all_fields() -> None:
    """Check that every key of the file is a field, so that the writer and the reader know the same keys."""
    for path in GOLDEN:
        values = fields_of_text(path.read_text("utf-8"))
        kind = MANIFESTS[values["style"]]
        assert set(values) <= {field.name for field in dataclasses.fields(kind)} | {"format", "version", "style"}


def test_folder_is_a_design_by_the_format_of_its_manifest(tmp_path: Path) -> None:
    """Any version and a broken manifest count: it is asked before a folder is replaced, so that it must not raise."""
    path = tmp_path / "manifest.json"
    assert not is_design(tmp_path)
    path.mkdir()
    assert not is_design(tmp_path)
    path.rmdir()
    for data in (b"[" * 100_000, b"{", b"{}", b"[]", b'{"format": "other"}'):
        path.write_bytes(data)
        assert not is_design(tmp_path), data[:20]
    with path.open("wb") as file:
        file.truncate(MAX_MANIFEST_BYTES + 1)
    assert not is_design(tmp_path)
    for text in (json.dumps(streaming_values() | {"version": 1}), '{"format": "systolic-manifest"}'):
        path.write_text(text)
        assert is_design(tmp_path), text[:40]
