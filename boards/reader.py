"""A TOML table whose every key is asked for exactly once, with its type and its range.

Board files are written by people: a misspelt or forgotten key must be a sentence with file and key in it,
and never a default that nobody chose.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar, cast, get_args, get_type_hints

from boards.errors import (
    MAX_FAULT_LENGTH,
    ChoiceError,
    DamagedFileError,
    FileAccessError,
    InvalidValueError,
    MissingValueError,
    RangeError,
    UnknownKeyError,
    cut,
)
from boards.ranges import OneOf

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

Facts = TypeVar("Facts")

MAX_BYTES = 1 << 20
_MAX_DOTS = 100
"""Dots in a line."""


class Table:
    """One table of a file. ``finish`` refuses keys that nobody asked for.

    Every method that reads a value raises MissingValueError if its key is missing, and InvalidValueError if the value
    is of another kind.
    """

    def __init__(self, path: Path, name: str, values: dict[str, Any]) -> None:
        self._path = path
        self._name = name
        self._unasked = dict(values)
        self._asked: list[str] = []

    def text(self, key: str) -> str:
        """Return a text of printable characters that is not empty."""
        value = self._take(key, str, "a text")
        if not value.strip() or not value.isprintable():
            raise InvalidValueError(self._full(key), value, "a text of printable characters", where=self._file)
        return str(value)

    def choice(self, key: str, allowed: Sequence[str]) -> str:
        """Return one of ``allowed``; ChoiceError for another text."""
        value = self.text(key)
        if value not in allowed:
            raise ChoiceError(self._full(key), value, allowed, where=self._file)
        return value

    def boolean(self, key: str) -> bool:
        """Return true or false."""
        return bool(self._take(key, bool, "true or false"))

    def integer(self, key: str, low: int, high: int) -> int:
        """Return a whole number in low…high, both included; RangeError for another one."""
        value = self._take(key, int, "a whole number")
        if isinstance(value, bool):  # bool is an int to Python
            raise InvalidValueError(self._full(key), value, "a whole number", where=self._file)
        if not low <= value <= high:
            raise RangeError(self._full(key), value, low, high, where=self._file)
        return int(value)

    def number(self, key: str, low: float, high: float) -> float:
        """Return a finite number in low…high, both included; RangeError for another one."""
        value = self._take(key, (int, float), "a number")
        if isinstance(value, bool):
            raise InvalidValueError(self._full(key), value, "a number", where=self._file)
        if not low <= value <= high or not math.isfinite(value):
            raise RangeError(self._full(key), value, low, high, where=self._file)
        return float(value)

    def table(self, key: str) -> Table:
        """Return a table inside this one (``[key]``)."""
        return Table(self._path, self._full(key), self._take(key, dict, "a table"))

    def tables(self, key: str) -> list[Table]:
        """Return the tables of a list that has at least one (``[[key]]``)."""
        values = self._take(key, list, "a list of tables")
        if not values or not all(isinstance(value, dict) for value in values):
            raise InvalidValueError(self._full(key), values, "a list of at least one table", where=self._file)
        return [Table(self._path, f"{self._full(key)}[{i}]", value) for i, value in enumerate(values)]

    def facts(self, kind: type[Facts]) -> Facts:
        """Return the facts of a table: the fields of a dataclass are its keys, their types what each may be."""
        hints = get_type_hints(kind, include_extras=True)
        facts = kind(**{field.name: self._fact(field.name, hints[field.name]) for field in fields(cast(Any, kind))})
        self.finish()
        return facts

    def _fact(self, key: str, kind: Any) -> object:
        if kind in (bool, str):
            return self.boolean(key) if kind is bool else self.text(key)
        plain, condition = get_args(kind)
        if isinstance(condition, OneOf):
            return self.choice(key, tuple(map(str, condition.values)))
        return (self.integer if plain is int else self.number)(key, condition.low, condition.high)

    def finish(self) -> None:
        """Raise UnknownKeyError if the table has keys that nobody asked for."""
        if self._unasked:
            unknown = [self._full(key) for key in sorted(self._unasked)]
            raise UnknownKeyError(unknown, [self._full(key) for key in self._asked], where=self._file)

    def _take(self, key: str, kind: type | tuple[type, ...], required: str) -> Any:
        if key not in self._unasked:
            raise MissingValueError(self._full(key), f"it must be {required}", where=self._file)
        self._asked.append(key)
        value = self._unasked.pop(key)
        if not isinstance(value, kind):
            raise InvalidValueError(self._full(key), value, required, where=self._file)
        return value

    @property
    def _file(self) -> str:
        return str(self._path)

    def _full(self, key: str) -> str:
        return f"{self._name}.{key}" if self._name else key


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
    """Return the values of ``base`` with those of ``changes`` in their place, in tables key by key."""
    tables = {
        key: {**base[key], **value}
        for key, value in changes.items()
        if isinstance(value, dict) and isinstance(base.get(key), dict)
    }
    return {**base, **changes, **tables}


def _check_dots(path: Path, text: str) -> None:
    """Refuse keys of many parts: the time that TOML's parsers take for a key grows with the square of its parts."""
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.startswith("#") and line.count(".") > _MAX_DOTS:
            raise RangeError("the number of dots in a line", line.count("."), high=_MAX_DOTS, where=f"{path}:{number}")
