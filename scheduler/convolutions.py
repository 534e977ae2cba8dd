"""Convolutions in another form that gives the same values, for both styles: without groups, and without zeros.

A network says how far apart the places of a dilated window lie. A window may in addition have weights that are 0 in all
filters and channels, as when a file writes out the zeros of a dilation:

before                                              after
weights 5×5, 0 but at rows and columns 0, 2, 4      weights 3×3, a dilation of 2
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from cnn.maps import IntArray
from cnn.ops import Convolution, QConvolution

Number = TypeVar("Number", bound=np.generic)


def dilation_of(op: Convolution | QConvolution) -> tuple[int, int]:
    """Return the rows and columns of the map from one place to the next of those that are computed with."""
    return total_dilation(op.weights, op.dilation)


def total_dilation(weights: npt.NDArray[Any], dilation: tuple[int, int]) -> tuple[int, int]:
    """Return the dilation of ``weights`` [filters, channels, rows, columns] whose places lie ``dilation`` apart, if
    rows and columns of zeros are left out. It is 1 along a side of one place."""
    used = np.asarray(weights.any(axis=(0, 1)))
    rows, columns = used.any(axis=1), used.any(axis=0)
    down, across = _step(np.flatnonzero(rows), used.shape[0]), _step(np.flatnonzero(columns), used.shape[1])
    return down * dilation[0], across * dilation[1]


def _step(places: npt.NDArray[np.intp], count: int) -> int:
    """Return the greatest step that leads from the first to the last of ``count`` places and meets all ``places``."""
    steps = (step for step in range(count - 1, 1, -1) if (count - 1) % step == 0)
    return next((step for step in steps if not (places % step).any()), 1)


def dense(weights: npt.NDArray[Number], dilation: tuple[int, int]) -> tuple[npt.NDArray[Number], tuple[int, int]]:
    """Return the same window without the rows and columns of zeros that ``total_dilation`` leaves out, and its
    dilation."""
    rows, columns = total_dilation(weights, dilation)
    return np.ascontiguousarray(weights[:, :, :: rows // dilation[0], :: columns // dilation[1]]), (rows, columns)


def on_all_channels(weights: IntArray, groups: int) -> IntArray:
    """Return weights [filters, channels of a group, …] of ``groups`` as [filters, channels, …], 0 between groups."""
    filters, channels = weights.shape[:2]
    spread = np.zeros((filters, groups * channels, *weights.shape[2:]), weights.dtype)
    for group, part in enumerate(np.split(np.arange(filters), groups)):
        spread[part, group * channels : (group + 1) * channels] = weights[part]
    return spread
