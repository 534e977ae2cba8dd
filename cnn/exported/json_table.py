"""A JSON object of a topology file or a file of heads, read key by key so that unknown keys can be reported."""

from __future__ import annotations

from typing import Any

from boards.errors import InvalidValueError
from boards.table import Table
from cnn.network import is_label

MAX_LABELS = 10_000


class JsonTable(Table):
    """One JSON object of a file, read key by key with checks; errors quote its keys and name ``source``."""

    def __init__(self, values: Any, source: str) -> None:
        if not isinstance(values, dict):
            raise InvalidValueError("the value", values, "a JSON object", where=source)
        super().__init__(values, source)

    def called(self, key: str) -> str:
        """Return the name of a key as errors show it, in quotation marks."""
        return repr(key)

    def labels(self) -> tuple[str, ...]:
        """Return the class names in the JSON object's list "labels", at most 10 000; () if it has none."""
        listed = self.get("labels", list, [])
        if len(listed) > MAX_LABELS or not all(is_label(label) for label in listed):
            required = f"at most {MAX_LABELS:,} texts, one for each class"
            raise InvalidValueError("'labels'", listed, required, where=self.source)
        return tuple(listed)
