"""The ``systolic`` command as a user has it, in this process."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
from dataclasses import dataclass
from typing import Any

import pytest

from systolic.cli.main import main


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    error: str

    @property
    def json(self) -> dict[str, Any]:
        """stdout holds one JSON object and nothing else; no NaN or Infinity, which are no JSON."""
        value = json.loads(self.out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
        assert isinstance(value, dict)
        return value


def shown_on(terminal: int) -> str:
    """All that was written to a pseudo-terminal whose other side is closed. It may arrive later, and in parts."""
    shown = b""
    with contextlib.suppress(OSError):  # Linux: EIO at the end
        while part := os.read(terminal, 65536):
            shown += part
    return shown.decode()


def call(*arguments: object) -> Done:
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            code = main([str(one) for one in arguments])
        except SystemExit as left:
            code = int(left.code or 0)
    return Done(code, out.getvalue(), error.getvalue())


def refused(done: Done, sentence: str) -> None:
    """Exit code 2 and one sentence on stderr; nothing on stdout and no traceback."""
    assert done.code == 2
    assert done.out == ""
    assert done.error.startswith("systolic: ")
    assert "Traceback" not in done.error
    assert re.search(sentence, done.error), done.error
