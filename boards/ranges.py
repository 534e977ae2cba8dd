"""Limits of a number, a text or a choice, written as the metadata of an annotated field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from boards.errors import ChoiceError, RangeError, SystolicError


@dataclass(frozen=True)
class Range:
    """The range of a number, both ends included. An error names the ``unit``."""

    low: float
    high: float
    unit: str = ""

    def holds(self, value: Any) -> bool:
        return bool(self.low <= value <= self.high)

    def refusal(self, kind: type, value: object, place: str) -> SystolicError:
        """Return the error for a value at ``place`` that is not a ``kind`` in this range."""
        what = f"the number of {self.unit}" if self.unit else "the value"
        return RangeError(what, value, self.low, self.high, integer=kind is int, where=place)


@dataclass(frozen=True)
class OneOf:
    """The values that are allowed."""

    values: tuple[object, ...]

    def holds(self, value: Any) -> bool:
        return value in self.values

    def refusal(self, _kind: type, value: object, place: str) -> SystolicError:
        """Return the error for a value at ``place`` that is not one of these."""
        return ChoiceError("the value", value, self.values, where=place)
