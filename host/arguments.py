"""Checks of arguments at the public interface. Each error names the argument."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from boards.errors import InvalidValueError, RangeError, ShapeError, shown


def whole_number(name: str, value: object, low: int, high: int) -> int:
    """Return ``value`` if it is a whole number from ``low`` to ``high``, else raise RangeError.

    True is not a number.
    """
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and low <= value <= high:
        return int(value)
    raise RangeError(name, value, low, high, integer=True)


def number(name: str, value: Any, high: float, *, zero: bool = False) -> float:
    """Return ``value`` as a float if it is above 0 and at most ``high``, else raise RangeError.

    ``zero`` allows 0 too.
    """
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if is_number and (0 < value <= high or (zero and value == 0)):
        return float(value)
    raise RangeError(name, value, 0, high, exclusive=not zero)


def path(name: str, value: object) -> Path:
    """Return ``value`` as a path. InvalidValueError if it is neither a string nor a path."""
    if isinstance(value, (str, os.PathLike)) and isinstance(os.fspath(value), str):
        return Path(value)
    raise InvalidValueError(name, value, "a string or a path")


PICTURE = "type uint8, shape [height, width, 3] and at least one pixel"


def is_picture(value: object) -> bool:
    """Return whether ``value`` is a non-empty array uint8 ``(height, width, 3)``."""
    return (
        isinstance(value, np.ndarray)
        and value.dtype == np.uint8
        and value.ndim == 3
        and value.shape[2] == 3
        and value.size > 0
    )


def check_pixels(value: object) -> None:
    """Raise ShapeError if ``value`` is not a picture: a non-empty array uint8 ``(height, width, 3)``."""
    if not is_picture(value):
        raise ShapeError("the picture", kind(value), PICTURE)


def kind(value: object) -> str:
    """Return an array's type and shape as text, and any other value as error messages show it."""
    return f"{value.dtype} {list(value.shape)}" if isinstance(value, np.ndarray) else shown(value)
