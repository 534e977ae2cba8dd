"""A function that narrows a value of several possible classes to the class that a test expects."""

from __future__ import annotations

from typing import TypeVar

Kind = TypeVar("Kind")


def as_kind(kind: type[Kind], value: object) -> Kind:
    """Return ``value`` typed as a ``kind``. The test fails if it is another class."""
    assert isinstance(value, kind), f"a {kind.__name__} is expected, not {value!r}"
    return value
