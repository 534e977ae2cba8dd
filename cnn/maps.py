"""Maps, which are the tensors between layers: floats or integers, ``(channels, height, width)``."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.signedinteger]
Integers = npt.NDArray[Any]
"""Integers in the carrier of their datatype, which may be unsigned."""


def short_repr(value: Any) -> str:
    """Return the repr of a dataclass in which each array is only its data type and shape: ``float32[16, 3, 3, 3]``."""
    shown = (f"{field.name}={_short(getattr(value, field.name))}" for field in fields(value))
    return f"{type(value).__qualname__}({', '.join(shown)})"


def _short(value: object) -> str:
    return f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else repr(value)


@dataclass(frozen=True)
class Shape:
    """The shape of a map: channels × height × width."""

    channels: int
    height: int
    width: int

    @property
    def values(self) -> int:
        """The number of values of a map of this shape: channels · height · width."""
        return self.channels * self.height * self.width

    def __str__(self) -> str:
        return f"{self.channels}×{self.height}×{self.width}"


@dataclass(frozen=True)
class Padding:
    """The number of rows and columns that are added on each side of a map.

    Their values are 0 for a convolution. For a max pool they are less than every value of the map.
    """

    top: int = 0
    left: int = 0
    bottom: int = 0
    right: int = 0

    @property
    def sides(self) -> tuple[int, int, int, int]:
        """The rows or columns added at the top, left, bottom and right, in this order."""
        return self.top, self.left, self.bottom, self.right
