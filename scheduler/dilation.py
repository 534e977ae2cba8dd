"""Dilated windows: of a window whose places lie d rows or columns apart, with zeros between, only the places are
computed with.

before                                              after
weights 5×5, 0 but at rows and columns 0, 2, 4      weights 3×3, a dilation of 2
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cnn.quantized import IntArray


def dilation_of(weights: npt.NDArray[Any]) -> tuple[int, int]:
    """Return the rows and columns from one place of the windows [filters, channels, rows, columns] to the next. Weights
    between are 0 in all windows. It is 1 if there are none."""
    used = np.asarray(weights.any(axis=(0, 1)))
    rows, columns = used.any(axis=1), used.any(axis=0)
    return _step(np.flatnonzero(rows), used.shape[0]), _step(np.flatnonzero(columns), used.shape[1])


def _step(places: npt.NDArray[np.intp], count: int) -> int:
    """Return the greatest step that leads from the first to the last of ``count`` places and meets all ``places``."""
    steps = (step for step in range(count - 1, 1, -1) if (count - 1) % step == 0)
    return next((step for step in steps if not (places % step).any()), 1)


def dense(weights: IntArray, rows: int, columns: int) -> IntArray:
    """Return the weights at the places alone, of windows of that dilation."""
    return np.ascontiguousarray(weights[:, :, ::rows, ::columns])
