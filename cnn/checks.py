"""Checks of arrays for the rules of a network. Their errors do not name a node; the caller adds it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import RangeError, ShapeError


def check_array(what: str, array: npt.NDArray[Any], shape: tuple[int, ...], dtype: type = np.int64) -> None:
    """Raise ShapeError if ``array`` has another shape or data type than required."""
    if array.dtype != dtype or array.shape != shape:
        required = f"type {np.dtype(dtype)} and shape {shape}"
        raise ShapeError(what, f"type {array.dtype} and shape {array.shape}", required)


def check_numbers(what: str, array: npt.NDArray[np.integer], low: int, high: int) -> None:
    """Raise RangeError if a number of ``array`` is outside ``low`` … ``high``.

    The error shows the least or the greatest number.
    """
    for number in (int(array.min()), int(array.max())):
        if not low <= number <= high:
            raise RangeError(what, number, low, high)
