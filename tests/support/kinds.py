"""Values of several possible classes, in tests that know the one."""

from __future__ import annotations

from typing import TypeVar

Kind = TypeVar("Kind")


def as_kind(kind: type[Kind], value: object) -> Kind:
    """``value``, typed as a ``kind``; the test fails here where it is another."""
    assert isinstance(value, kind), f"a {kind.__name__} is expected, not {value!r}"
    return value
