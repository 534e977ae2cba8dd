"""A text file of a network as if it asked for an input of another size."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cnn.darknet.cfg import MAX_CFG_BYTES, read_text


@contextmanager
def sized(path: Path, size: tuple[int, int] | None, pattern: str, entry: str) -> Iterator[Path]:
    """Give the file itself, or a copy under the same name that asks for an input of ``size``.

    Args:
        path: The file.
        size: (width, height), or None for the file itself.
        pattern: A regular expression of the entry of one side, with ``KEY`` for width or height.
        entry: What replaces the first match, with ``KEY`` and ``VALUE``.
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
