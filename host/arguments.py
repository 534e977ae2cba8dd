"""What a caller gives is checked where it comes in: each is a sentence that names the argument."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from boards.errors import HostError, PictureError, shown


def whole(name: str, value: object, low: int, high: int) -> int:
    """A whole number low…high; HostError else. True is none."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and low <= value <= high:
        return int(value)
    raise HostError(f"{name} is a whole number {low}…{high}, not {shown(value)}")


def number(name: str, value: Any, high: float, *, zero: bool = False) -> float:
    """A number above 0, or from it on, up to ``high``; HostError else."""
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if is_number and (0 < value <= high or (zero and value == 0)):
        return float(value)
    raise HostError(f"{name} is a number {'from' if zero else 'above'} 0 to {high:g}, not {shown(value)}")


def path(name: str, value: object) -> Path:
    """A path; HostError where it is neither a text nor a path."""
    if isinstance(value, (str, os.PathLike)) and isinstance(os.fspath(value), str):
        return Path(value)
    raise HostError(f"{name} is a text or a path, not {shown(value)}")


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
    """PictureError where it is not ``is_picture``."""
    if not is_picture(value):
        raise PictureError(f"a picture is uint8 [height, width, 3] and not empty, not {kind(value)}")


def kind(value: object) -> str:
    """Type and shape of an array, else the value."""
    return f"{value.dtype} {list(value.shape)}" if isinstance(value, np.ndarray) else shown(value)
