"""A JSON object whose keys are asked for one by one, each with its type and range.

Topology files are written by people: a misspelt key or a wrong number must be a sentence with file, layer and key in
it, and never a default that nobody chose.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boards.errors import ChoiceError, InvalidValueError, MissingValueError, RangeError, UnknownKeyError
from cnn.network import is_label

_JSON_NAMES: dict[type[Any], str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "an object",
    bool: "true or false",
}


MOST_LABELS = 10_000


def is_number(value: Any) -> bool:
    """True for a number of a size that a float holds exactly enough; not for true and false."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e18


class JsonTable:
    """One JSON object. ``source`` is its place in errors. ``finish`` refuses keys that nobody asked for.

    Every method that reads a value raises MissingValueError if its key is missing without default, and
    InvalidValueError if the value is of another kind.
    """

    def __init__(self, values: Any, source: str) -> None:
        if not isinstance(values, dict):
            raise InvalidValueError("the value", values, "a JSON object", where=source)
        self.values: Mapping[str, Any] = values
        self.source = source
        self._asked: set[str] = set()

    def has(self, key: str) -> bool:
        """Whether the key is there; it still has to be asked for."""
        return key in self.values

    def get(self, key: str, kind: type[Any] | tuple[type[Any], ...], default: Any = None) -> Any:
        """A value of one of these types."""
        self._asked.add(key)
        value = self.values.get(key, default)
        if value is None and key not in self.values:
            raise MissingValueError(repr(key), where=self.source)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            kinds = kind if isinstance(kind, tuple) else (kind,)
            required = " or ".join(_JSON_NAMES[name] for name in kinds)
            raise InvalidValueError(repr(key), value, required, where=self.source)
        return value

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        """A whole number in low…high, both included; RangeError for another one."""
        value: int = self.get(key, int, default)
        if not low <= value <= high:
            raise RangeError(repr(key), value, low, high, where=self.source)
        return value

    def number(self, key: str, low: float, high: float, default: float) -> float:
        """A number in low…high, both included; RangeError for another one."""
        value = self.get(key, (int, float), default)
        if not is_number(value) or not low <= value <= high:
            raise RangeError(repr(key), value, low, high, where=self.source)
        return float(value)

    def text(self, key: str) -> str:
        """1…200 printable characters."""
        value: str = self.get(key, str)
        if not 1 <= len(value) <= 200 or not value.isprintable():
            raise InvalidValueError(repr(key), value, "1…200 printable characters", where=self.source)
        return value

    def choice(self, key: str, choices: tuple[str, ...], default: str | None) -> str:
        """One of ``choices``; ChoiceError for another text."""
        value: str = self.get(key, str, default)
        if value not in choices:
            raise ChoiceError(repr(key), value, choices, where=self.source)
        return value

    def labels(self) -> tuple[str, ...]:
        """The names of the classes under "labels", any texts, at most 10 000; () without."""
        listed = self.get("labels", list, [])
        if len(listed) > MOST_LABELS or not all(is_label(label) for label in listed):
            required = f"at most {MOST_LABELS:,} texts, one for each class"
            raise InvalidValueError("'labels'", listed, required, where=self.source)
        return tuple(listed)

    def finish(self) -> None:
        """Raise UnknownKeyError if the object has keys that nobody asked for."""
        unknown = sorted(set(self.values) - self._asked)
        if unknown:
            raise UnknownKeyError(unknown, sorted(self._asked), where=self.source)
