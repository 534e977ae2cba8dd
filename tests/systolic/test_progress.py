from __future__ import annotations

import os
import pty
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr

import pytest

from systolic.cli import progress
from systolic.cli.progress import StatusLine
from tests.systolic.command_line import shown_on


@contextmanager
def terminal() -> Iterator[Callable[[], str]]:
    """stderr is a terminal; closes it and gives what has been written to it. Set inside the test: pytest's own capture
    is put in place anew between a fixture and its test."""
    ours, theirs = pty.openpty()

    def read() -> str:
        file.close()
        return shown_on(ours)

    with os.fdopen(theirs, "w") as file, redirect_stderr(file):
        yield read
    os.close(ours)


def test_short_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "AFTER_SECONDS", 60)
    with terminal() as shown:
        with StatusLine() as status:
            status.tell("quick")
        assert shown() == ""


def test_long_work_shows_one_line_and_clears_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "AFTER_SECONDS", 0.01)
    with terminal() as shown:
        with StatusLine() as status:
            time.sleep(0.02)
            status.tell("compiling")
            status.tell("x" * 200)
        assert shown().split("\r\x1b[2K") == ["", "compiling …", "x" * 78, ""]


def test_no_terminal_no_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "AFTER_SECONDS", 0.0)
    with StatusLine() as status:
        status.tell("compiling")
    assert capsys.readouterr().err == ""
