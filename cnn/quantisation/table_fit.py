"""Fits the table of a function to the inputs that a layer can give, and not to other inputs.

With an input of at most 12 bits each integer has an entry, so the table is exact. With more bits, a piece of the table
begins with a whole number, and its slope is chosen. The chosen slope has the fewest inputs that are off by more than a
step, and then the fewest that are off at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cnn.datatype import DataType
from cnn.tables import SLOPE_LIMIT, VALUES_BITS, Table, fraction_bits, table_of_values

Longs: TypeAlias = npt.NDArray[np.int64]

FAR = 1 << 31
"""The cost of an input whose output is off by more than a step. An input that is off by one step costs 1."""

COMES, MOST = 1 << 9, 1 << 12
"""The weight of an input that occurs, compared with 1 for other inputs; and the most occurrences that count."""


@dataclass(frozen=True, eq=False)
class TablePoints:
    """The inputs at which a lookup table is fitted, with the output and the number of occurrences of each.

    Attributes:
        read: The input's datatype.
        inputs: The inputs in ascending order, each once.
        outputs: The output of each input.
        weights: The number of times that each input occurs.
    """

    read: DataType
    inputs: Longs
    outputs: Longs
    weights: Longs


def table_points(read: DataType, inputs: Longs, outputs: Longs, weights: Longs) -> TablePoints:
    """Return the points with each input only once: of several outputs, the one with the greatest weight is kept."""
    key = (inputs - read.low) << 32 | (outputs + (1 << 31))
    pairs, place = np.unique(key, return_inverse=True)
    counts = np.bincount(place.ravel(), np.minimum(weights, MOST)).astype(np.int64)
    order = np.lexsort((counts, pairs >> 32))
    last = np.append(np.diff(pairs[order] >> 32) != 0, True)
    best, most = pairs[order][last], counts[order][last]
    return TablePoints(read, (best >> 32) + read.low, (best & 0xFFFFFFFF) - (1 << 31), np.minimum(most, MOST))


def fit_table(points: TablePoints, function: Longs, out: DataType) -> Table:
    """Return the lookup table that fits these points best: exact up to 12 input bits, else piecewise linear.

    Args:
        points: The inputs that occur, with their outputs.
        function: The outputs of all integers of the input's datatype, the least first, for inputs without a point.
        out: The output's datatype.
    """
    exact = function.copy()
    exact[points.inputs - points.read.low] = points.outputs
    return Table(exact) if points.read.bits <= VALUES_BITS else _pieces(points, exact, out)


def _pieces(points: TablePoints, exact: Longs, out: DataType) -> Table:
    size = 1 << fraction_bits(points.read)
    weights: Longs = np.ones(exact.size, np.int64)
    weights[points.inputs - points.read.low] = COMES * points.weights
    outputs: Longs = exact.reshape(-1, size)
    weights = weights.reshape(len(outputs), size)
    plain = table_of_values(exact, points.read)
    assert plain.slopes is not None
    best = np.stack([plain.values, plain.slopes])
    least = _cost(outputs, weights, *best)
    first = outputs[np.arange(len(outputs)), np.argmax(weights > 1, axis=1)]
    for start in (plain.values, first, first - 1, first + 1):
        left = np.flatnonzero((least >= COMES) & (start >= out.low) & (start <= out.high))
        line = np.stack([start[left], _slopes(outputs[left], weights[left], start[left], out)])
        cost = _cost(outputs[left], weights[left], *line)
        better = cost < least[left]
        best[:, left[better]], least[left[better]] = line[:, better], cost[better]
    return Table(*best)


def _slopes(outputs: Longs, weights: Longs, start: Longs, out: DataType) -> Longs:
    """Return, per piece of a piecewise-linear table, the slope that gives the greatest weight of inputs their output t:

    y = t  where  (t − start − ½) · 2^F ≤ slope · f < (t − start + ½) · 2^F

    The output of a piece's last input must be a value of ``out``, because all earlier outputs are then too.
    """
    size = outputs.shape[1]
    inside, half = np.arange(1, size), size // 2
    rise, counts = outputs[:, 1:] - start[:, None], weights[:, 1:]
    least = np.maximum(-(((start - out.low) * size + half) // (size - 1)), -SLOPE_LIMIT)[:, None]
    most = np.minimum(((out.high - start + 1) * size - half - 1) // (size - 1), SLOPE_LIMIT)[:, None]
    edges, changes = [], []
    for steps, worth in ((0, 1), (1, FAR)):
        low = -(-((rise - steps) * size - half) // inside)
        high = -(-((rise + steps) * size + half) // inside)  # the first slope that is too great
        counted = np.where((low <= most) & (high > least), counts * worth, 0)
        edges += [np.clip(low, least, most), np.clip(high, least, most + 1)]
        changes += [counted, -counted]
    along, change = np.concatenate(edges, axis=1), np.concatenate(changes, axis=1)
    order = np.argsort(along, axis=1)
    along = np.take_along_axis(along, order, 1)
    total = np.cumsum(np.take_along_axis(change, order, 1), axis=1)
    # A total is valid only after all changes at the same slope have been added.
    whole = np.concatenate([np.diff(along, axis=1) != 0, np.ones((len(along), 1), np.bool_)], axis=1)
    place = np.argmax(np.where(whole & (along <= most), total, -1), axis=1)
    return np.asarray(along[np.arange(len(along)), place])


def _cost(outputs: Longs, weights: Longs, start: Longs, slope: Longs) -> Longs:
    """Return, per piece of a piecewise-linear table, the weighted number of inputs whose output is wrong."""
    size = outputs.shape[1]
    line = start[:, None] + (slope[:, None] * np.arange(size) + size // 2) // size
    off = np.abs(line - outputs)
    return np.asarray((((off == 1) + (off > 1) * FAR) * weights).sum(axis=1))
