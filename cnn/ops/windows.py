"""Windows that slide over a map: their taps, the padded map, and the im2col columns of values that the taps see."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from boards.errors import InvalidValueError, RangeError
from cnn.limits import MAX_PADDED, MAX_PADDING
from cnn.maps import Padding, Shape

Number = TypeVar("Number", bound=np.generic)
Taps: TypeAlias = Sequence[tuple[int, int]]
"""Rows and columns of a window, row by row."""


def window_shape(window: tuple[int, int], filters: int, stride: int, padding: Padding, read: Shape) -> Shape:
    """Return the shape of a sliding window's output with ``filters`` channels, for a window of rows × columns.

    Raises:
        RangeError: A side of the padding, or the padded map, is outside its range.
        InvalidValueError: The window is larger than the padded map.
    """
    for side in padding.sides:
        if not 0 <= side <= MAX_PADDING:
            raise RangeError("the padding", side, 0, MAX_PADDING)
    top, left, bottom, right = padding.sides
    padded = Shape(read.channels, read.height + top + bottom, read.width + left + right)
    if padded.values > MAX_PADDED:
        raise RangeError("values of the padded input", padded.values, high=MAX_PADDED)
    height, width = padded.height - window[0], padded.width - window[1]
    if min(height, width) < 0:
        required = f"at most the padded input, {padded.height}×{padded.width}"
        raise InvalidValueError("the window", f"{window[0]}×{window[1]}", required)
    return Shape(filters, height // stride + 1, width // stride + 1)


def every_tap(window: tuple[int, int]) -> Taps:
    """Return the (row, column) of every tap of a window, row by row."""
    return [(y, x) for y in range(window[0]) for x in range(window[1])]


def used_taps(weights: npt.NDArray[Any]) -> Taps:
    """Return the (row, column) of the taps of a kernel that have a weight other than 0 in any filter or channel."""
    if weights.shape[2:] == (1, 1):
        return [(0, 0)]
    used = np.argwhere(weights.any(axis=(0, 1)))
    return [(int(y), int(x)) for y, x in used] or [(0, 0)]


def tap_offsets(taps: Taps, dilation: tuple[int, int]) -> Taps:
    """Return the (row, column) offsets in the map of the taps of a dilated window."""
    return [(y * dilation[0], x * dilation[1]) for y, x in taps]


def tap_weights(weights: npt.NDArray[Number], taps: Taps) -> npt.NDArray[Number]:
    """Return the weights of a kernel at these taps only, [filters, channels, taps]."""
    flat = weights.reshape(*weights.shape[:2], -1)
    if len(taps) == flat.shape[2]:
        return flat
    return flat[..., [y * weights.shape[3] + x for y, x in taps]]


def padded_map(array: npt.NDArray[Any], padding: Padding, value: float, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return a map [C, H, W] as ``dtype``, padded on its four sides with ``value``."""
    if padding == Padding():
        return array.astype(dtype, copy=False)
    top, left, bottom, right = padding.sides
    channels, height, width = array.shape
    shape = (channels, height + top + bottom, width + left + right)
    # zeros are allocated without being written
    padded = np.full(shape, value, dtype) if value else np.zeros(shape, dtype)
    padded[:, top : top + height, left : left + width] = array
    return padded


def tap_values(padded: npt.NDArray[Number], taps: Taps, stride: int, shape: Shape) -> Iterator[npt.NDArray[Number]]:
    """Yield, for each tap of a window, its input value at every output position: views [C, H, W] of the
    output's size."""
    for y, x in taps:
        rows = slice(y, y + (shape.height - 1) * stride + 1, stride)
        yield padded[:, rows, x : x + (shape.width - 1) * stride + 1 : stride]


def columns_of(padded: npt.NDArray[Number], taps: Taps, stride: int, shape: Shape) -> npt.NDArray[Number]:
    """Return the im2col matrix [C, taps, H · W]: the input values at these taps for every output position."""
    columns = np.empty((padded.shape[0], len(taps), shape.height, shape.width), padded.dtype)
    for i, tap in enumerate(tap_values(padded, taps, stride, shape)):
        columns[:, i] = tap
    return columns.reshape(padded.shape[0], len(taps), -1)


def row_blocks(height: int, rows: int) -> Iterator[tuple[int, int]]:
    """Yield the first row of each block of ``rows`` output rows, and the row after its last."""
    return ((first, min(first + rows, height)) for first in range(0, height, rows))
