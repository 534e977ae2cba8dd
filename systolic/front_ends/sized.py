"""Replaces the input size in the text of a .cfg or .json network file."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cnn.darknet.cfg import MAX_CFG_BYTES, read_text


@contextmanager
def sized(path: Path, size: tuple[int, int] | None, pattern: str, entry: str) -> Iterator[Path]:
    """Yield the path of the file, or of a temporary copy whose text has an input of ``size``.

    Args:
        path: The network file.
        size: The (width, height) of the input, or None to yield the file itself.
        pattern: A regular expression for the entry of one side, with ``KEY`` in place of width or height.
        entry: The replacement for the first match, with ``KEY`` and ``VALUE`` in place of the side and its size.
    """
    if size is None:
        yield path
        return
    text = read_text(path, MAX_CFG_BYTES, "network file")
    for key, value in zip(("width", "height"), size, strict=True):
        replacement = entry.replace("KEY", key).replace("VALUE", str(value))
        text = re.sub(pattern.replace("KEY", key), replacement, text, count=1)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        copy.write_text(text, "utf-8")
        yield copy
