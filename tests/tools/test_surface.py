"""The snapshot of what users see: it is as recorded, and a change of it is reported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools.surface import SLOW, Surface, differences, keys_of, read, surface, without_slow, write

ROOT = Path(__file__).resolve().parents[2]


def test_surface_equals_its_record() -> None:
    """``python -m tools.surface update`` records a change that was meant; wording may differ."""
    assert not differences(without_slow(read()).structure, surface(quick=True).structure)


@pytest.mark.engine
def test_surface_of_executed_designs_equals_its_record() -> None:
    command = [sys.executable, "-m", "tools.surface", "check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_surface_record_has_every_section() -> None:
    recorded = read()
    assert set(recorded.structure) == {"api", "commands", "files", "json", "manifest", "statuses"}
    assert all(recorded.structure.values())
    assert recorded.wording
    statuses = {text.split(",")[0] for text in recorded.structure["statuses"].values()}
    assert statuses == {"0", "1", "2"}
    assert set(SLOW) <= set(recorded.structure["statuses"])
    assert not set(SLOW) & set(without_slow(recorded).structure["statuses"])


def test_keys_of_has_the_kinds_of_the_values() -> None:
    values = {"a": [{"b": 1, "c": None}, {"b": 2.5, "c": "x"}], "d": [], "e": {"f": True}}
    assert keys_of(values) == {"a[].b": "number", "a[].c": "null or text", "d[]": "null", "e.f": "bool"}


def test_differences_name_the_place_of_a_change() -> None:
    before = {"commands": {"run --a": {"default": "1"}, "run --b": {}}, "files": {"x": ["hls", "rtl"]}}
    after = {"commands": {"run --a": {"default": "2"}, "run --c": {}}, "files": {"x": ["rtl"]}}
    assert differences(before, before) == []
    assert differences(before, after) == [
        "commands: run --a: default: was '1', is '2'",
        "commands: run --b: is gone",
        "commands: run --c: is new",
        "files: x: was ['hls'], is []",
    ]


def test_surface_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = Surface({"api": {"f": "(a: int = 1)"}, "files": {"b": ["x"], "a": []}}, {"f": "a “word”", "g": None})
    write(made, tmp_path / "surface.json")
    assert read(tmp_path / "surface.json") == made
    write(read(), tmp_path / "same.json")
    assert (tmp_path / "same.json").read_bytes() == (ROOT / "tools" / "surface.json").read_bytes()
