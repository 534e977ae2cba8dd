"""Convolutions rewritten without groups and without rows or columns of zeros, with the same results, for both styles.

A network states the dilation of each convolution. In addition, whole rows and columns of a kernel may be 0 in all
filters and channels, for example if a file stores the zeros of a dilated kernel. They become a larger dilation:

before                                              after
weights 5×5, 0 except at rows and columns 0, 2, 4   weights 3×3, dilation 2
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from cnn.maps import IntArray
from cnn.ops import Convolution, QConvolution

Number = TypeVar("Number", bound=np.generic)


def dilation_of(op: Convolution | QConvolution) -> tuple[int, int]:
    """Return the dilation (rows, columns) of a convolution after its rows and columns of zeros are removed."""
    return total_dilation(op.weights, op.dilation)


def total_dilation(weights: npt.NDArray[Any], dilation: tuple[int, int]) -> tuple[int, int]:
    """Return the dilation (rows, columns) of a kernel after its rows and columns of zeros are removed.

    Args:
        weights: The kernel, [filters, channels, rows, columns].
        dilation: The dilation (rows, columns) that the network states for ``weights``.
    """
    used = np.asarray(weights.any(axis=(0, 1)))
    rows, columns = used.any(axis=1), used.any(axis=0)
    down, across = _step(np.flatnonzero(rows), used.shape[0]), _step(np.flatnonzero(columns), used.shape[1])
    return down * dilation[0], across * dilation[1]


def _step(places: npt.NDArray[np.intp], count: int) -> int:
    """Return the greatest step whose multiples include ``count`` - 1 and all ``places``, or 1. It is the dilation
    hidden in one axis of a kernel.

    Args:
        places: Indices of the rows (or columns) of a kernel that are not all 0.
        count: All rows (or columns) of the kernel.
    """
    steps = (step for step in range(count - 1, 1, -1) if (count - 1) % step == 0)
    return next((step for step in steps if not (places % step).any()), 1)


def dense(weights: npt.NDArray[Number], dilation: tuple[int, int]) -> tuple[npt.NDArray[Number], tuple[int, int]]:
    """Return ``weights`` without the all-zero rows and columns of the kernel that a dilation can replace, and the
    dilation (rows, columns) that results."""
    rows, columns = total_dilation(weights, dilation)
    return np.ascontiguousarray(weights[:, :, :: rows // dilation[0], :: columns // dilation[1]]), (rows, columns)


def on_all_channels(weights: IntArray, groups: int) -> IntArray:
    """Return the weights of a grouped convolution as an ungrouped one: zeros fill the channels of the other groups.

    Args:
        weights: Weights of the grouped convolution, [filters, channels per group, …].
        groups: The number of groups.

    Returns:
        [filters, all channels, …]. Weights between a filter and a channel of another group are 0.
    """
    filters, channels = weights.shape[:2]
    spread = np.zeros((filters, groups * channels, *weights.shape[2:]), weights.dtype)
    for group, part in enumerate(np.split(np.arange(filters), groups)):
        spread[part, group * channels : (group + 1) * channels] = weights[part]
    return spread
