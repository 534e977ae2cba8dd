"""Standard output and standard error, whatever they are, and text that a terminal may show."""

from __future__ import annotations

import io
import os
import sys

_CONTROLS = (*range(9), *range(11, 32), *range(127, 160))
_DIRECTIONS = (0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
_SURROGATES = range(0xD800, 0xE000)
_ESCAPED = {code: f"\\u{code:04x}" for code in (*_CONTROLS, *_DIRECTIONS, *_SURROGATES)}


def shown_as_text(text: str) -> str:
    """Return the text with an escape for each character that steers a terminal, turns its direction or has no encoding.

    Names in files are anybody's. The escapes are JSON's, so that an object stays the same object.
    """
    return text.translate(_ESCAPED)


def prepare() -> None:
    """Make both streams take any text: a closed one drops it, and one of few characters gets escapes for the others."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # the parent process closed it; pathlib would cost --help some milliseconds
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
