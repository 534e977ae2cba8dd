"""Dilated convolution windows, whose taps are several rows or columns of the map apart.

A layer stores only the weights of its taps. ``with_zeros`` inserts zeros between the weights, for code and formats that
do not support dilation.

    weights 3×3, a dilation of 2 by 2        with zeros: 5×5, 0 except at rows and columns 0, 2 and 4
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

Number = TypeVar("Number", bound=np.generic)


def covered(window: tuple[int, ...], dilation: tuple[int, int]) -> tuple[int, int]:
    """Return the rows and columns of the map that a dilated window covers, including the gaps between its taps.

    Args:
        window: The rows and columns of taps in the window.
        dilation: The distance between two neighbouring taps, in rows and in columns.
    """
    (rows, columns), (down, across) = window, dilation
    return (rows - 1) * down + 1, (columns - 1) * across + 1


def with_zeros(weights: npt.NDArray[Number], dilation: tuple[int, int]) -> npt.NDArray[Number]:
    """Return a dilated kernel's weights with zeros between the taps, so that an undilated kernel computes the same.

    Args:
        weights: The weights of the taps, ``(filters, channels, rows, columns)``.
        dilation: The distance between two neighbouring taps, in rows and in columns.
    """
    if dilation == (1, 1):
        return weights
    larger = np.zeros((*weights.shape[:2], *covered(weights.shape[2:], dilation)), weights.dtype)
    larger[:, :, :: dilation[0], :: dilation[1]] = weights
    return larger
