"""Reading an untrusted TOML file, and merging one file's values into another's."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from boards.errors import (
    MAX_FAULT_LENGTH,
    DamagedFileError,
    FileAccessError,
    RangeError,
    cut,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

MAX_BYTES = 1 << 20
_MAX_DOTS = 100
"""Limit for the dots in a line."""


def parse(path: Path) -> dict[str, Any]:
    """Return the values of a TOML file.

    Raises:
        FileAccessError: The file cannot be read.
        RangeError: The file, or a key of it, is too long.
        DamagedFileError: The file is not TOML.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
            size = max(os.fstat(file.fileno()).st_size, len(content))
    except OSError as error:
        raise FileAccessError(str(path), f"cannot be read: {error.strerror or error}", "board file") from error
    if size > MAX_BYTES:
        raise RangeError("the size of a board file in bytes", size, high=MAX_BYTES, where=str(path))
    try:
        text = content.decode("utf-8")
        _check_dots(path, text)
        values: dict[str, Any] = tomllib.loads(text)
        return values
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, or an integer of thousands of digits
        reason = f"is not valid TOML: {cut(error, MAX_FAULT_LENGTH)}"
        raise DamagedFileError(str(path), reason) from error


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of ``base`` replaced by the values of ``changes``; tables are merged key by key."""
    tables = {
        key: {**base[key], **value}
        for key, value in changes.items()
        if isinstance(value, dict) and isinstance(base.get(key), dict)
    }
    return {**base, **changes, **tables}


def _check_dots(path: Path, text: str) -> None:
    """Refuse keys of many parts: a TOML parser's time for a key grows with the square of its number of parts."""
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.startswith("#") and line.count(".") > _MAX_DOTS:
            raise RangeError("the number of dots in a line", line.count("."), high=_MAX_DOTS, where=f"{path}:{number}")
