"""Space to depth and depth to space as convolutions with weights of 0 and 1, and padding by copies.

In the order of blocks, space to depth is one convolution. Its filter (row · stride + column) · channels + c has a 1 for
channel c at that row and column of the block.

darknet's order reads the map's memory as a map with a quarter of the channels and twice the rows and columns. A channel
of the result therefore takes rows of one channel of the map, but not one after the other. If the result has an odd
number of rows, it takes rows of two neighbouring channels. Rows of the result that are taken in the same way are one
convolution, called a *part*, which writes only these rows:

    row of the result        0    1    2    3    4    5
    row of the map           0    1    4    5    8    9     channels of the upper row of each block
                             2    3    6    7   10   11     channels of the lower one
    part                     a    b    a    b    a    b

Depth to space has one part per row of a block. A part reads the channels of its row of the block, and writes each
position as several neighbouring columns. copies.py makes the channels of each column whole blocks on every array.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from math import gcd

import numpy as np
import numpy.typing as npt

from cnn.maps import IntArray, Shape
from cnn.ops import DepthToSpace, Pad, Reorg
from scheduler.systolic.network.views import ALIGNED

PARTED_STRIDE = 2
"""The only stride above 1 that is mapped for a reorg in darknet's order. A larger stride would need more parts."""


@dataclass(frozen=True)
class Rows:
    """``count`` rows of a map: row ``first`` and every ``step``-th after it."""

    first: int
    step: int
    count: int


@dataclass(frozen=True)
class Part:
    """The rows, columns and channels that one layer reads and writes, if several layers together write one output map.

    Attributes:
        reads: Rows of the map that is read.
        writes: Rows of the map that is written.
        channel: The first channel that is written.
        stride: Stride of the windows over the rows that are read.
        column_stride: Stride of the windows in a row.
        group: The index of the group of channels that is read, if the map's channels are divided into equal groups.
        columns: The number of columns of the map that are read, or 0 for all.
        read_column: The first of these columns.
        write_column: The column to which the first result is written.
    """

    reads: Rows
    writes: Rows
    channel: int
    stride: int
    column_stride: int
    group: int = 0
    columns: int = 0
    read_column: int = 0
    write_column: int = 0


def is_in_parts(op: Reorg) -> bool:
    """Return whether the array needs several layers for the output map of a reorg (space to depth)."""
    return op.order == "darknet" and op.stride > 1


def block_order_weights(channels: int, stride: int) -> IntArray:
    """Return the 0/1 convolution weights (filters, channels, stride, stride) that compute a reorg in the order of
    blocks."""
    places = stride * stride
    weights = np.zeros((places, channels, channels, places), np.int8)
    weights[np.arange(places), :, :, np.arange(places)] = np.eye(channels, dtype=np.int8)
    return weights.reshape(places * channels, channels, stride, stride)


def depth_parts(op: DepthToSpace, source: Shape) -> Iterator[tuple[Part, IntArray]]:
    """Yield, per output row of a block of a depth to space, the rows to read and write and the 1×1 weights that move
    them."""
    channels = source.channels // (op.rows * op.columns)
    for row in range(op.rows):
        reads, writes = Rows(0, 1, source.height), Rows(row, op.rows, source.height)
        weights = np.eye(channels, dtype=np.int8).reshape(channels, channels, 1, 1)
        yield Part(reads, writes, 0, 1, 1, group=row), weights


def pad_parts(op: Pad, source: Shape) -> Iterator[Part]:
    """Yield the rectangles that a ``Pad`` copies from its input map to its output map, as parts.

    result      c b c        M: the map
                a M a        a, b: copies of columns and rows of the map
                c b c        c: corners, each a copy of one or more values of the map
    """
    rows = _pieces(source.height, op.padding.top, op.padding.bottom, op.mode)
    columns = _pieces(source.width, op.padding.left, op.padding.right, op.mode)
    for (top, row, height), (left, column, width) in product(rows, columns):
        yield Part(Rows(row, 1, height), Rows(top, 1, height), 0, 1, 1, 0, width, column, left)


def pad_part_count(op: Pad, source: Shape) -> int:
    """Return into how many copied rectangles a ``Pad`` is divided, which is its number of layers."""
    rows = _pieces(source.height, op.padding.top, op.padding.bottom, op.mode)
    return len(rows) * len(_pieces(source.width, op.padding.left, op.padding.right, op.mode))


def _pieces(length: int, front: int, back: int, mode: str) -> list[tuple[int, int, int]]:
    """Return the runs of one axis that a ``Pad`` copies in order, as (first index in the result, first index in the
    map, length).

    Args:
        length: Rows or columns of the map.
        front: Rows or columns of padding before it.
        back: Rows or columns of padding after it.
        mode: The mode of ``numpy.pad``.
    """
    places = np.pad(np.arange(length), (front, back), mode=mode)  # type: ignore[call-overload]
    starts = [0, *(np.flatnonzero(np.diff(places) != 1) + 1), len(places)]
    return [(int(a), int(places[a]), int(b - a)) for a, b in pairwise(starts)]


def darknet_parts(source: Shape) -> Iterator[tuple[Part, IntArray]]:
    """Yield each part of a stride-2 reorg in darknet's order, with its 0/1 weights (filters, channels, rows,
    columns)."""
    columns = PARTED_STRIDE  # one column of blocks is enough, because all others are moved in the same way
    places = np.arange(source.channels * source.height * columns).reshape(source.channels, source.height, columns)
    sources = Reorg(PARTED_STRIDE).move([places])[:, :, 0]
    filters = len(sources)
    # One half of the channels takes the upper rows of blocks, the other half the lower ones. A part of one half has
    # fewer kernel rows than a part of all channels.
    half = filters // 2 if filters // 2 % ALIGNED == 0 else filters
    for first in range(0, filters, half):
        indices = np.unravel_index(sources[first : first + half], places.shape)
        for rows in _alike(*indices):
            yield _part(first, rows, source.channels, *(index[:, rows] for index in indices))


Indices = npt.NDArray[np.intp]


def _alike(channel: Indices, row: Indices, column: Indices) -> list[list[int]]:
    """Return the rows of a reorg's result in groups that are moved in the same way, so that one layer can compute each
    group.

    Rows are alike if they take the same channels and columns, and rows at the same distance.

    Args:
        channel: The channel of the map that each value of the result is taken from, (filters, rows of the result).
        row: Its row.
        column: Its column.
    """
    alike: dict[bytes, list[int]] = {}
    for number in range(row.shape[1]):
        relative = row[:, number] - PARTED_STRIDE * number
        key = np.stack([channel[:, number], relative, column[:, number]]).tobytes()
        alike.setdefault(key, []).append(number)
    return list(alike.values())


def _part(
    first: int, rows: list[int], channels: int, channel: Indices, row: Indices, column: Indices
) -> tuple[Part, IntArray]:
    """Return the part of a reorg that writes ``rows`` of the channels from ``first`` on, with its 0/1 weights.

    Args:
        first: The first channel that is written.
        rows: The rows that are written.
        channels: All channels of the map that is read.
        channel: The channel of the map that each value is taken from, (filters, rows of the part).
        row: Its row.
        column: Its column.
    """
    top, count = int(row.min()), len(rows)
    step = rows[1] - rows[0] if count > 1 else 1
    pitch = 1 if count > 1 else max(1, gcd(*(row[:, 0] - top).tolist()))
    offsets = (row[:, 0] - top) // pitch
    height = int(offsets.max()) + 1
    weights = np.zeros((len(row), channels, height, PARTED_STRIDE), np.int8)
    weights[np.arange(len(row)), channel[:, 0], offsets, column[:, 0]] = 1
    stride = PARTED_STRIDE * step
    reads, writes = Rows(top, pitch, (count - 1) * stride + height), Rows(rows[0], step, count)
    return Part(reads, writes, first, stride, PARTED_STRIDE), weights
