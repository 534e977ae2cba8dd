"""Checks of the arguments that a caller gives, where they come in; an error names the argument."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from boards.errors import InvalidValueError, RangeError, ShapeError, shown


def whole(name: str, value: object, low: int, high: int) -> int:
    """Return ``value`` if it is a whole number low…high, and raise RangeError if not. True is not a number."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and low <= value <= high:
        return int(value)
    raise RangeError(name, value, low, high, integer=True)


def number(name: str, value: Any, high: float, *, zero: bool = False) -> float:
    """Return ``value`` if it is a number above 0, or with ``zero`` also 0, and at most ``high``; else RangeError."""
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if is_number and (0 < value <= high or (zero and value == 0)):
        return float(value)
    raise RangeError(name, value, 0, high, exclusive=not zero)


def path(name: str, value: object) -> Path:
    """Return ``value`` as a path; InvalidValueError if it is neither a text nor a path."""
    if isinstance(value, (str, os.PathLike)) and isinstance(os.fspath(value), str):
        return Path(value)
    raise InvalidValueError(name, value, "a text or a path")


PICTURE = "type uint8, shape [height, width, 3] and at least one pixel"


def is_picture(value: object) -> bool:
    """Whether it is uint8 [height, width, 3] and not empty."""
    return (
        isinstance(value, np.ndarray)
        and value.dtype == np.uint8
        and value.ndim == 3
        and value.shape[2] == 3
        and value.size > 0
    )


def check_pixels(value: object) -> None:
    """Raise ShapeError if ``value`` is not a picture in the sense of ``is_picture``."""
    if not is_picture(value):
        raise ShapeError("the picture", kind(value), PICTURE)


def kind(value: object) -> str:
    """Type and shape of an array, else the value."""
    return f"{value.dtype} {list(value.shape)}" if isinstance(value, np.ndarray) else shown(value)
