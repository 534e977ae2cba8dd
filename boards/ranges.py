"""Limits of a number, a text or a choice, written as the metadata of an annotated field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from boards.errors import ChoiceError, RangeError, SystolicError


@dataclass(frozen=True)
class Range:
    """The allowed range of a number, both ends included, and the unit that errors name."""

    low: float
    high: float
    unit: str = ""

    def holds(self, value: Any) -> bool:
        return bool(self.low <= value <= self.high)

    def refusal(self, kind: type, value: object, place: str) -> SystolicError:
        """Return the RangeError for ``value`` at ``place``: it is not a number of type ``kind`` in this range."""
        what = f"the number of {self.unit}" if self.unit else "the value"
        return RangeError(what, value, self.low, self.high, integer=kind is int, where=place)


@dataclass(frozen=True)
class OneOf:
    """The finite set of values that a field may have."""

    values: tuple[object, ...]

    def holds(self, value: Any) -> bool:
        return value in self.values

    def refusal(self, _kind: type, value: object, place: str) -> SystolicError:
        """Return the ChoiceError for ``value`` at ``place``: it is not one of the allowed values."""
        return ChoiceError("the value", value, self.values, where=place)
