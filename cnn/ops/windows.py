"""Windows that slide over a map: the places at which they have weights, and the values that each place sees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from boards.errors import InvalidValueError, RangeError
from cnn.limits import MAX_PADDED, MAX_PADDING
from cnn.maps import Padding, Shape

Number = TypeVar("Number", bound=np.generic)
Places: TypeAlias = Sequence[tuple[int, int]]
"""Rows and columns of a window, row by row."""


def window_shape(window: tuple[int, int], filters: int, stride: int, padding: Padding, read: Shape) -> Shape:
    """Return the shape of ``filters`` maps that a window of so many rows and columns gives.

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


def every_place(window: tuple[int, int]) -> Places:
    """Return all places of a window, row by row."""
    return [(y, x) for y in range(window[0]) for x in range(window[1])]


def places_of(weights: npt.NDArray[Any]) -> Places:
    """Return the places at which windows [filters, channels, rows, columns] have a weight other than 0."""
    if weights.shape[2:] == (1, 1):
        return [(0, 0)]
    used = np.argwhere(weights.any(axis=(0, 1)))
    return [(int(y), int(x)) for y, x in used] or [(0, 0)]


def apart(places: Places, dilation: tuple[int, int]) -> Places:
    """Return the rows and columns of the map at which the places of a dilated window are."""
    return [(y * dilation[0], x * dilation[1]) for y, x in places]


def at_places(weights: npt.NDArray[Number], places: Places) -> npt.NDArray[Number]:
    """Return the weights at these places, [filters, channels, places]."""
    flat = weights.reshape(*weights.shape[:2], -1)
    if len(places) == flat.shape[2]:
        return flat
    return flat[..., [y * weights.shape[3] + x for y, x in places]]


def padded_map(array: npt.NDArray[Any], padding: Padding, value: float, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return the map [C, H, W] as ``dtype`` with ``value`` around it."""
    if padding == Padding():
        return array.astype(dtype, copy=False)
    top, left, bottom, right = padding.sides
    channels, height, width = array.shape
    shape = (channels, height + top + bottom, width + left + right)
    # zeros are allocated without being written
    padded = np.full(shape, value, dtype) if value else np.zeros(shape, dtype)
    padded[:, top : top + height, left : left + width] = array
    return padded


def taps(padded: npt.NDArray[Number], places: Places, stride: int, shape: Shape) -> Iterator[npt.NDArray[Number]]:
    """Yield for each place of the window the values that it sees: views [C, H, W] of the output's height and width."""
    for y, x in places:
        rows = slice(y, y + (shape.height - 1) * stride + 1, stride)
        yield padded[:, rows, x : x + (shape.width - 1) * stride + 1 : stride]


def columns_of(padded: npt.NDArray[Number], places: Places, stride: int, shape: Shape) -> npt.NDArray[Number]:
    """Return the im2col matrix [C, places, H · W]: the values that each output position sees at these places."""
    columns = np.empty((padded.shape[0], len(places), shape.height, shape.width), padded.dtype)
    for i, tap in enumerate(taps(padded, places, stride, shape)):
        columns[:, i] = tap
    return columns.reshape(padded.shape[0], len(places), -1)


def row_blocks(height: int, rows: int) -> Iterator[tuple[int, int]]:
    """Yield the first row of each block of ``rows`` output rows, and the row after its last one."""
    return ((first, min(first + rows, height)) for first in range(0, height, rows))
