"""A table of a hand-written file, whose keys are read one by one, each with its type and range.

A misspelt key, a missing key or a wrong number raises an error that names file and key. It never selects a default
silently.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, TypeVar, cast, get_args, get_type_hints

from boards.errors import ChoiceError, InvalidValueError, MissingValueError, RangeError, UnknownKeyError
from boards.ranges import OneOf

Facts = TypeVar("Facts")
Kinds = type[Any] | tuple[type[Any], ...]

MAX_TEXT = 200
"""Limit for the characters of a text."""

_WORDS: Mapping[Kinds, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    (int, float): "a number",
    list: "a list",
    dict: "a table",
    bool: "true or false",
}


def is_number(value: object) -> bool:
    """Return whether a value is a number below 10¹⁸ in magnitude; true and false are not numbers."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e18


class Table:
    """One table of a parsed TOML or JSON file, read key by key with checks; ``finish`` refuses keys that were not read.

    Every method that reads a value raises MissingValueError if its key is missing and has no default, and
    InvalidValueError if the value has another type.

    Args:
        values: The values of the table by their keys.
        source: The place that errors name: a file, or a part of one.
        name: The table's own key in the file; errors put it and a dot before the keys. Empty for the file itself.
    """

    def __init__(self, values: Mapping[str, Any], source: str, name: str = "") -> None:
        self.values = values
        self.source = source
        self._name = name
        self._asked: dict[str, None] = {}

    def has(self, key: str) -> bool:
        """Return whether the table has a key. This does not count as reading it."""
        return key in self.values

    def get(self, key: str, kind: Kinds, default: Any = None) -> Any:
        """Return the value of ``key``, which must be of type ``kind``; true and false are not numbers."""
        self._asked[key] = None
        value = self.values.get(key, default)
        if value is None and key not in self.values:
            raise MissingValueError(self.called(key), f"it must be {self._words(kind)}", where=self.source)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise InvalidValueError(self.called(key), value, self._words(kind), where=self.source)
        return value

    def text(self, key: str) -> str:
        """Return the value of ``key``: a text of printable characters, not empty and not longer than MAX_TEXT."""
        value: str = self.get(key, str)
        if not value.strip() or len(value) > MAX_TEXT or not value.isprintable():
            required = f"a text of 1 to {MAX_TEXT} printable characters"
            raise InvalidValueError(self.called(key), value, required, where=self.source)
        return value

    def choice(self, key: str, choices: Sequence[str], default: str | None = None) -> str:
        """Return the value of ``key``, which must be one of ``choices``; raise ChoiceError for another text."""
        value: str = self.get(key, str, default)
        if value not in choices:
            raise ChoiceError(self.called(key), value, choices, where=self.source)
        return value

    def boolean(self, key: str) -> bool:
        """Return the value of ``key``, which must be true or false."""
        return bool(self.get(key, bool))

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        """Return the value of ``key``, an integer from ``low`` to ``high``, both included; RangeError otherwise."""
        value: int = self.get(key, int, default)
        if not low <= value <= high:
            raise RangeError(self.called(key), value, low, high, where=self.source)
        return value

    def number(self, key: str, low: float, high: float, default: float | None = None) -> float:
        """Return the value of ``key``, a number from ``low`` to ``high``, both included; RangeError otherwise."""
        value = self.get(key, (int, float), default)
        if not is_number(value) or not low <= value <= high:
            raise RangeError(self.called(key), value, low, high, where=self.source)
        return float(value)

    def table(self, key: str) -> Table:
        """Return the value of ``key``: a table nested in this one."""
        return Table(self.get(key, dict), self.source, self._path(key))

    def tables(self, key: str) -> list[Table]:
        """Return the value of ``key``: a list of at least one table."""
        values = self.get(key, (list, dict))
        if not isinstance(values, list) or not values or not all(isinstance(value, dict) for value in values):
            raise InvalidValueError(self.called(key), values, "a list of at least one table", where=self.source)
        return [Table(value, self.source, f"{self._path(key)}[{i}]") for i, value in enumerate(values)]

    def facts(self, kind: type[Facts]) -> Facts:
        """Return this table as a ``kind``, a dataclass: its field names are the keys, its annotations the ranges.

        A key may be missing if its field has a default.
        """
        hints = get_type_hints(kind, include_extras=True)
        asked = [f.name for f in fields(cast(Any, kind)) if f.default is MISSING or self.has(f.name)]
        facts = kind(**{name: self._fact(name, hints[name]) for name in asked})
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
        """Raise UnknownKeyError if the table has keys that were not read."""
        unknown = sorted(self.values.keys() - self._asked.keys())
        if unknown:
            known = [self._path(key) for key in self._asked]
            raise UnknownKeyError([self._path(key) for key in unknown], known, where=self.source)

    def called(self, key: str) -> str:
        """Return the name of a key as errors show it, with the names of the tables around it."""
        return self._path(key)

    def _path(self, key: str) -> str:
        return f"{self._name}.{key}" if self._name else key

    @staticmethod
    def _words(kind: Kinds) -> str:
        if kind in _WORDS:
            return _WORDS[kind]
        return " or ".join(_WORDS[one] for one in cast(tuple[type[Any], ...], kind))
