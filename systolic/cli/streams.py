"""Preparation of standard output and standard error, and text that is safe to show on a terminal."""

from __future__ import annotations

import io
import os
import sys

_CONTROLS = (*range(9), *range(11, 32), *range(127, 160))
_DIRECTIONS = (0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
_SURROGATES = range(0xD800, 0xE000)
_ESCAPED = {code: f"\\u{code:04x}" for code in (*_CONTROLS, *_DIRECTIONS, *_SURROGATES)}


def shown_as_text(text: str) -> str:
    """Return the text with characters escaped that could control a terminal or change the direction of text.

    Unsafe characters control a terminal, change the direction of text, or cannot be encoded. Names in untrusted files
    can contain them. The escapes have JSON's form, so that an escaped JSON object keeps its value.
    """
    return text.translate(_ESCAPED)


def prepare() -> None:
    """Make standard output and standard error accept any text.

    A closed stream drops its text. Characters that a stream's encoding lacks are written as escapes.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # the parent process closed it; open() instead of pathlib, whose import slows --help
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
