"""The prose of the project: which sentences the reader finds, and that the clean folders stay clean."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.prose import command
from tools.prose.rooms import ALLOWED, CLEAN, MAX_ALLOWED
from tools.prose.rules import findings
from tools.prose.texts import texts_of

ROOT = Path(__file__).resolve().parents[2]


def _notebook(*cells: tuple[str, list[str]]) -> str:
    """Return a notebook with these cells, each a kind and its lines, as Jupyter writes it."""
    return json.dumps({"cells": [{"cell_type": kind, "source": source} for kind, source in cells]}, indent=1)


PLANTED = {
    "a fragment": ("a.py", '"""Of a layer."""\n', [(1, "fragment")]),
    "a fragment in a comment": (
        "a.h",
        "int a;  // what a layer reads\n// What it writes.\nint b;\n",
        [(2, "fragment")],
    ),
    "a function without a verb": ("a.py", 'def f():\n    """The words of a pass."""\n', [(2, "imperative")]),
    "a field": ("a.py", 'A = 1\n"""One word a cycle."""\n', [(2, "fragment"), (2, "per")]),
    "a word in a comment": ("a.py", "a = 1\n\n# one\n# two lies three\n", [(4, "lies")]),
    "a word in a string": ("a.py", "f(x, help='the map that lies in DDR')\n", [(1, "lies")]),
    "a word around a value": ("a.py", "f(f'the map {x} lies in DDR')\n", [(1, "lies")]),
    "a long sentence": ("a.sv", "// " + "word " * 31 + "end.\n", [(1, "long")]),
    "a long string over lines": ("a.py", 'f("""Start\n' + "word " * 31 + '\nend.""")\n', [(1, "long")]),
    "a helper's claim": ("a.py", 'def f():\n    """The sum is 3."""\n', [(2, "imperative")]),
    "a long sentence over lines": ("a.md", "Start\n" + "word " * 20 + "\n" + "word " * 20 + "end.\n", [(1, "long")]),
    "per in a template": ("a.sv.j2", "{# 2 values a cycle #}\nlogic a;  // one a row\n", [(1, "per"), (2, "per")]),
    "a cell of a table": ("a.md", "| a | the map that stands here |\n", [(1, "stands")]),
    "a test's name": (
        "a.py",
        "def test_a_row(): ...\nasync def test_nothing(): ...\n\nclass A:\n    def test_of_what(self): ...\n",
        [(1, "test name"), (2, "test name"), (5, "test name")],
    ),
    "cells of a notebook": (
        "a.ipynb",
        _notebook(("markdown", ["# A title\n", "\n", "A map lies there."]), ("code", ["a = 1  # Of a layer."])),
        [(8, "lies"), (14, "fragment")],
    ),
    "a comment of TOML": ("a.toml", 'a = "#"  # that is no list\n', [(1, "is no")]),
}

PLAIN = {
    "a property": ("a.py", 'class A:\n    @property\n    def a(self):\n        """The words of a pass."""\n'),
    "a formula": ("a.h", "// The sum:\n//     " + "a + " * 40 + "\n"),
    "code in Markdown": ("a.md", "```\nthe map that lies there\n```\nRead `what lies there`.\n"),
    "C++ in a string": ("a.py", 'f("""\n' + "int one(int a);\n" * 20 + '""")\n'),
    "Python in a string": ("a.py", 'f("import os; ' + "print(os) " * 20 + '")\n'),
    "a test's claim": ("a.py", 'def test_f():\n    """The sum is 3."""\n'),
    "a test's name": ("a.py", "def test_anchor_of_a_head(): ...\ndef test_item(): ...\ndef a_row(): ...\n"),
    "short strings": ("a.py", "f('lies', 'of which none')\n"),
    "fields": ("a.py", '"""A layer.\n\nAttributes:\n' + "    name: The words of this field.\n" * 20 + '"""\n'),
    "words of a row": ("a.py", '"""The words of a row, and the rows as a list."""\n'),
    "another language": ("a.json", '{"a": "the map that lies there"}\n'),
}


def _found(path: Path, content: str) -> list[tuple[int, str]]:
    path.write_text(content, "utf-8")
    return sorted((finding.line, finding.rule) for text in texts_of(path) for finding in findings(text))


@pytest.mark.parametrize("case", PLANTED)
def test_prose_with_a_planted_sentence_is_reported(case: str, tmp_path: Path) -> None:
    name, content, expected = PLANTED[case]
    assert _found(tmp_path / name, content) == expected


@pytest.mark.parametrize("case", PLAIN)
def test_prose_without_a_habit_is_not_reported(case: str, tmp_path: Path) -> None:
    name, content = PLAIN[case]
    assert _found(tmp_path / name, content) == []


def test_clean_folders_have_no_finding() -> None:
    found = [f"{path}:{f.line}: {f.words}" for path, f in command.findings_of([ROOT / room for room in CLEAN])]
    assert not found, f"python -m tools.prose says what to write instead: {found[:5]}"
    assert len(ALLOWED) <= MAX_ALLOWED


def test_command_prints_places_and_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "ROOT", tmp_path)
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "a.py").write_text('"""Of a layer."""\n', "utf-8")
    assert command.main([str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["room/a.py:1: fragment: Of (write: a sentence with a subject, or a noun)", "     1 room: fragment"]
    assert command.main(["--counts", str(tmp_path)]) == 1
    assert capsys.readouterr().out.splitlines() == lines[1:]
    (tmp_path / "room" / "a.py").write_text('"""A layer."""\n', "utf-8")
    assert command.main([str(tmp_path)]) == 0
