"""Test that names in files cannot send control characters to a terminal, and that commands work with closed streams."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import boards
from systolic.cli.streams import shown_as_text
from tests.support.cases import cases
from tests.support.command_line import Done, call

HOSTILE = "\x1b[2J\x07\x9b31m\u202e\udc80\r"


@pytest.mark.parametrize("character", HOSTILE)
def test_control_character_is_escaped_as_in_json(character: str) -> None:
    if character.isascii() and character.isprintable():
        assert shown_as_text(character) == character
        return
    shown = shown_as_text(character)
    assert shown == f"\\u{ord(character):04x}"
    assert json.loads(f'"{shown}"') == character


def test_shown_text_keeps_other_characters() -> None:
    text = "conv1\t13×16×16, größer ≥ 1 µs, 卷积\n"
    assert shown_as_text(text) == text


def titled(folder: Path, title: str) -> Path:
    """Write a board file with this title, in TOML syntax, and return its path."""
    text = (Path(boards.__file__).parent / "pynq-z2.toml").read_text("utf-8")
    assert "PYNQ-Z2" in text
    (folder / "mine.toml").write_text(text.replace("PYNQ-Z2", title), "utf-8")
    return folder / "mine.toml"


def commands(folder: Path) -> Sequence[Done]:
    """Return the results of four commands: two errors, and an answer as text and as JSON."""
    name = HOSTILE.replace("\udc80", "")
    board = titled(folder, "\\u001b[2J\\u202e")
    return (
        call("schedule", folder / f"{name}.cfg"),
        call("schedule", "shapes", f"--{name}"),
        call("boards", board),
        call("boards", board, "--json", "-"),
    )


def test_commands_escape_hostile_names(tmp_path: Path) -> None:
    told = [text for done in commands(tmp_path) for text in (done.out, done.error)]
    assert sum("\\u202e" in text for text in told) == 4, "all four outputs must show the name"
    assert [text for text in told if set(text) & set("\x1b\x07\x9b\u202e\r")] == []


@cases("redirection", [">&-", "2>&-", ">&- 2>&-"])
def test_command_with_closed_stream_does_its_work(redirection: str, tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" -m systolic boards pynq-z2 --json "$1" {redirection}', sys.executable, answer],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(answer.read_text("utf-8"))


def test_ascii_stream_gets_escapes(tmp_path: Path) -> None:
    few = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "systolic", "boards", str(titled(tmp_path, "größer"))]
    done = subprocess.run(command, env=few, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"gr\\xf6\\xdfer" in done.stdout
