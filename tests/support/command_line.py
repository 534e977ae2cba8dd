"""The ``systolic`` command as a user calls it, in the test's process."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
from dataclasses import dataclass
from typing import Any
from unittest import mock

import pytest

from boards.errors import SystolicError
from systolic.cli import messages
from systolic.cli.main import main


@dataclass(frozen=True)
class Done:
    """The result of a command.

    Attributes:
        code: The exit status.
        out: Standard output.
        error: Standard error.
        refusal: The error that ended the command, if one of the project's did.
    """

    code: int
    out: str
    error: str
    refusal: SystolicError | None = None

    @property
    def json(self) -> dict[str, Any]:
        """Return the object on standard output, which must be valid JSON without NaN and Infinity."""
        value = json.loads(self.out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
        assert isinstance(value, dict)
        return value


def shown_on(terminal: int) -> str:
    """Return all that was written to a pseudo-terminal whose other side is closed. It may arrive later, in parts."""
    shown = b""
    with contextlib.suppress(OSError):  # Linux: EIO at the end
        while part := os.read(terminal, 65536):
            shown += part
    return shown.decode()


def call(*arguments: object) -> Done:
    """Run a command line."""
    out, error = io.StringIO(), io.StringIO()
    refusals: list[SystolicError] = []
    printed = messages.print_refusal

    def keep(refusal: SystolicError) -> int:
        refusals.append(refusal)
        return printed(refusal)

    with (
        mock.patch.object(messages, "print_refusal", keep),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(error),
    ):
        try:
            code = main([str(one) for one in arguments])
        except SystemExit as left:
            code = int(left.code or 0)
    return Done(code, out.getvalue(), error.getvalue(), refusals[0] if refusals else None)


def refused(done: Done, expected: type[SystolicError] | str, /, **fields: object) -> None:
    """Expect exit status 2, one sentence on standard error, and nothing else.

    Args:
        done: The answer.
        expected: The exact class of the error, or a pattern of a sentence that argparse makes.
        fields: Fields of the error, compared with ==.
    """
    assert (done.code, done.out) == (2, ""), done
    assert done.error.startswith("systolic: ")
    assert "Traceback" not in done.error
    if isinstance(expected, str):
        assert re.search(expected, done.error), done.error
        return
    assert type(done.refusal) is expected, done.error
    assert {name: getattr(done.refusal, name) for name in fields} == fields, repr(done.refusal)
