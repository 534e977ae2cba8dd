"""Space to depth and depth to space as convolutions, whose weights are 0 and 1.

In the order of blocks it is one: filter (row · stride + column) · channels + c has a 1 at that place of c.

darknet's order reads the map's memory as one of a quarter of the channels, and twice the rows and columns. So a channel
of the result takes its rows from one channel of the map, but not one after the other, and of an odd number of rows two
border on a neighbour's. Rows that are taken alike are a convolution of their own, a *part*, which writes only these:

    row of the result        0    1    2    3    4    5
    row of the map           0    1    4    5    8    9     channels of the upper row of each block
                             2    3    6    7   10   11     channels of the lower one
    part                     a    b    a    b    a    b

Depth to space is a part for each row of a block. It reads the channels of that row, and each position becomes one
column after the other, of the channel blocks of each: whole blocks, whatever the array's lanes (copies.py).
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
"""Of a reorg in darknet's order: a part's rows lie its square apart, and by more there were more parts."""


@dataclass(frozen=True)
class Rows:
    """``count`` rows of a map: row ``first`` and every ``step``-th after it."""

    first: int
    step: int
    count: int


@dataclass(frozen=True)
class Part:
    """What one of several layers reads and writes that together write a map.

    Attributes:
        reads: rows of the map that is read.
        writes: rows of the map that is written.
        channel: the first channel that is written.
        stride: of the windows, in the rows that are read.
        column_stride: of the windows, in a row.
        group: which of several groups of channels is read, each as many as the layer reads.
        columns: how many columns of the map are read; 0 for all.
        read_column: the first of these columns.
        write_column: the column that the first result is written to.
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
    """Return whether a reorg is several layers, which write its map together."""
    return op.order == "darknet" and op.stride > 1


def blocks_apart(channels: int, stride: int) -> IntArray:
    """Weights [filters, channels, stride, stride] of a reorg in the order of blocks."""
    places = stride * stride
    weights = np.zeros((places, channels, channels, places), np.int8)
    weights[np.arange(places), :, :, np.arange(places)] = np.eye(channels, dtype=np.int8)
    return weights.reshape(places * channels, channels, stride, stride)


def depth_parts(op: DepthToSpace, source: Shape) -> Iterator[tuple[Part, IntArray]]:
    """Each part of a depth to space, one for each row of a block, and its weights [channels, channels, 1, 1]."""
    channels = source.channels // (op.rows * op.columns)
    for row in range(op.rows):
        reads, writes = Rows(0, 1, source.height), Rows(row, op.rows, source.height)
        weights = np.eye(channels, dtype=np.int8).reshape(channels, channels, 1, 1)
        yield Part(reads, writes, 0, 1, 1, group=row), weights


def pad_parts(op: Pad, source: Shape) -> Iterator[Part]:
    """Yield the parts of a ``Pad``: rectangles of the result that are one rectangle of the map, copied.

    result      c b c        c: corners, one value of the map each
                a M a        a, b: its outermost column and row, or others that they repeat
                c b c        M: the map
    """
    rows = _pieces(source.height, op.padding.top, op.padding.bottom, op.mode)
    columns = _pieces(source.width, op.padding.left, op.padding.right, op.mode)
    for (top, row, height), (left, column, width) in product(rows, columns):
        yield Part(Rows(row, 1, height), Rows(top, 1, height), 0, 1, 1, 0, width, column, left)


def copies_of(op: Pad, source: Shape) -> int:
    """Return how many parts a ``Pad`` has."""
    rows = _pieces(source.height, op.padding.top, op.padding.bottom, op.mode)
    return len(rows) * len(_pieces(source.width, op.padding.left, op.padding.right, op.mode))


def _pieces(length: int, front: int, back: int, mode: str) -> list[tuple[int, int, int]]:
    """Return first place of the result, first place of the map and number of places of all pieces of one side that are
    copied as they lie."""
    places = np.pad(np.arange(length), (front, back), mode=mode)  # type: ignore[call-overload]
    starts = [0, *(np.flatnonzero(np.diff(places) != 1) + 1), len(places)]
    return [(int(a), int(places[a]), int(b - a)) for a, b in pairwise(starts)]


def darknet_parts(source: Shape) -> Iterator[tuple[Part, IntArray]]:
    """Each part of a reorg by 2 of a map in darknet's order, and its weights [filters, channels, rows, columns]."""
    columns = PARTED_STRIDE  # of a map of one column of blocks: all others are taken as the first is
    places = np.arange(source.channels * source.height * columns).reshape(source.channels, source.height, columns)
    sources = Reorg(PARTED_STRIDE).move([places])[:, :, 0]
    filters = len(sources)
    # Both halves of the channels, upper rows of a block and lower ones, take fewer rows than all together.
    half = filters // 2 if filters // 2 % ALIGNED == 0 else filters
    for first in range(0, filters, half):
        indices = np.unravel_index(sources[first : first + half], places.shape)
        for rows in _alike(*indices):
            yield _part(first, rows, source.channels, *(index[:, rows] for index in indices))


Indices = npt.NDArray[np.intp]


def _alike(channel: Indices, row: Indices, column: Indices) -> list[list[int]]:
    """Rows of the result that take the same channels and columns, and rows at the same distance; all [filters, rows of
    the result]."""
    alike: dict[bytes, list[int]] = {}
    for number in range(row.shape[1]):
        relative = row[:, number] - PARTED_STRIDE * number
        key = np.stack([channel[:, number], relative, column[:, number]]).tobytes()
        alike.setdefault(key, []).append(number)
    return list(alike.values())


def _part(
    first: int, rows: list[int], channels: int, channel: Indices, row: Indices, column: Indices
) -> tuple[Part, IntArray]:
    """The part that writes ``rows`` of filters ``first`` and following, which take these channels, rows and columns,
    each [filters, rows of the part]."""
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
