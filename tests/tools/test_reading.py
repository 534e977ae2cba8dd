"""The sheets of a blind reading: drawn by the commit alone, and each unit in opposite forms for two readers."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tools.reading import SHARES, main


def _git(*arguments: str) -> None:
    identity = ("-c", "user.name=reader", "-c", "user.email=reader@example.com")
    subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)


def _module(number: int, word: str, functions: int) -> str:
    """Return a module of more than 20 lines, with functions and a class."""
    body = "\n".join(f"    x{line} = {line}" for line in range(10))
    parts = [f'def function_{number}_{i}():\n    """Return {word} {i}."""\n{body}\n' for i in range(functions)]
    return f'"""{word} module."""\n\n' + "\n\n".join([*parts, f'class Class{number}:\n    """A {word}."""\n{body}\n'])


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a repository of two commits. Every unit of five modules of cnn has another text in the second."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cnn").mkdir()
    _git("init", "-q")
    for word in ("old", "new"):
        for number in range(5):
            (tmp_path / "cnn" / f"m{number}.py").write_text(_module(number, word, 3))
        _git("add", ".")
        _git("commit", "-qm", word)
    return tmp_path


def test_reading_two_readers_get_opposite_forms_of_the_same_units(repository: Path) -> None:
    assert main(["HEAD~1", "HEAD", "--readers", "2", "-o", "out"]) == 0
    order = json.loads((repository / "out" / "order.json").read_text())
    first, second = ({row["unit"]: row["form"] for row in order[f"sheet-{i}"]} for i in (1, 2))
    assert len(first) == sum(SHARES.values())
    assert {unit: {"before": "after", "after": "before"}[form] for unit, form in first.items()} == second
    assert set(first.values()) == {"before", "after"}
    sheet = (repository / "out" / "sheet-1.md").read_text()
    assert sheet.count("## Unit") == len(first)
    for row, text in zip(order["sheet-1"], sheet.split("## Unit")[1:], strict=True):
        assert ("new" in text) is (row["form"] == "after")
        assert row["unit"].partition(":")[0] not in text  # the sheet names neither the place nor the form
        assert ("x1 = 1" in text) is ("class Class" in text)  # a reader sees a class's fields, but no function's code


def test_reading_same_commit_draws_the_same_sheets(repository: Path) -> None:
    for folder in ("one", "two"):
        main(["HEAD~1", "HEAD", "-o", folder])
    for path in (repository / "one").iterdir():
        assert path.read_bytes() == (repository / "two" / path.name).read_bytes()


def test_reading_unchanged_units_are_not_drawn(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["HEAD", "HEAD", "-o", "out"]) == 1
    assert "only 0 units changed" in capsys.readouterr().err
