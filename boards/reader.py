"""A TOML table whose every key is asked for exactly once, with its type and its range.

Board files are written by people: a misspelt or forgotten key must be a sentence with file and key in it,
and never a default that nobody chose.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from boards.errors import LONGEST_FAULT, BoardError, cut, shown

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

_LARGEST_FILE = 1 << 20
_MOST_DOTS = 100  # in a line


class Table:
    """One table of a file. ``finish`` tells of keys that nobody asked for.

    All methods raise BoardError where a key is missing or its value is of another kind.
    """

    def __init__(self, path: Path, name: str, values: dict[str, Any]) -> None:
        self._path = path
        self._name = name
        self._unasked = dict(values)

    def text(self, key: str) -> str:
        """A text of printable characters that is not empty."""
        value = self._take(key, str, "a text")
        if not value.strip() or not value.isprintable():
            raise self._wrong(key, "a text of printable characters", value)
        return str(value)

    def choice(self, key: str, allowed: Sequence[str]) -> str:
        """One of ``allowed``."""
        value = self.text(key)
        if value not in allowed:
            raise self._wrong(key, " or ".join(repr(value) for value in allowed), value)
        return value

    def boolean(self, key: str) -> bool:
        """true or false."""
        return bool(self._take(key, bool, "true or false"))

    def integer(self, key: str, low: int, high: int) -> int:
        """A whole number in low…high, both included."""
        value = self._take(key, int, "a whole number")
        if isinstance(value, bool):  # bool is an int to Python
            raise self._wrong(key, "a whole number", value)
        if not low <= value <= high:
            raise self._wrong(key, f"in {low}…{high}", value)
        return int(value)

    def number(self, key: str, low: float, high: float) -> float:
        """A finite number in low…high, both included."""
        value = self._take(key, (int, float), "a number")
        if isinstance(value, bool):
            raise self._wrong(key, "a number", value)
        if not low <= value <= high or not math.isfinite(value):
            raise self._wrong(key, f"in {low:g}…{high:g}", value)
        return float(value)

    def table(self, key: str) -> Table:
        """A table inside this one (``[key]``)."""
        return Table(self._path, self._full(key), self._take(key, dict, "a table"))

    def tables(self, key: str) -> list[Table]:
        """A list of at least one table (``[[key]]``)."""
        values = self._take(key, list, "a list of tables")
        if not values or not all(isinstance(value, dict) for value in values):
            raise self._wrong(key, "a list of at least one table", values)
        return [Table(self._path, f"{self._full(key)}[{i}]", value) for i, value in enumerate(values)]

    def finish(self) -> None:
        """BoardError where the table has a key that nobody asked for."""
        if self._unasked:
            key = sorted(self._unasked)[0]
            raise BoardError(f"{self._path}: {self._full(cut(key))} is no key of a board file; check its spelling")

    def _take(self, key: str, kind: type | tuple[type, ...], required: str) -> Any:
        if key not in self._unasked:
            raise BoardError(f"{self._path}: {self._full(key)} is missing, it must be {required}")
        value = self._unasked.pop(key)
        if not isinstance(value, kind):
            raise self._wrong(key, required, value)
        return value

    def _full(self, key: str) -> str:
        return f"{self._name}.{key}" if self._name else key

    def _wrong(self, key: str, required: str, value: object) -> BoardError:
        return BoardError(f"{self._path}: {self._full(key)} must be {required}, not {shown(value)}")


def parse(path: Path) -> Table:
    """The root table of a TOML file; BoardError where the file cannot be read, is too large, or is no TOML."""
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
        if len(content) > _LARGEST_FILE:
            raise BoardError(f"{path}: a board file has at most {_LARGEST_FILE} bytes, this one has more")
        text = content.decode("utf-8")
        _check_keys(path, text)
        return Table(path, "", tomllib.loads(text))
    except OSError as error:
        raise BoardError(f"{path}: the board file cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:  # what is no UTF-8, no TOML, or an integer of thousands of digits
        raise BoardError(f"{path}: the board file is not valid TOML: {cut(error, LONGEST_FAULT)}") from error


def _check_keys(path: Path, text: str) -> None:
    """The time that TOML's parsers take for a key grows with the square of its parts."""
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.startswith("#") and line.count(".") > _MOST_DOTS:
            raise BoardError(
                f"{path}: line {number} has more than {_MOST_DOTS} dots, which no board's key or value has"
            )
