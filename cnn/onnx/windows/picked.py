"""Pixels of a map that lie whole steps apart: a max pool of size 1, or a window of each channel by itself of which one
place counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cnn.limits import MAX_KERNEL
from cnn.network import Convolution, MaxPool, Shape
from cnn.onnx.graph import Operation, require
from cnn.onnx.layers import NO_PADDING, Layers


@dataclass(frozen=True)
class Picks:
    """Along one side of ``length``: ``count`` places, ``first`` and then ``step`` further each."""

    length: int
    first: int
    step: int
    count: int

    @classmethod
    def of(cls, places: Sequence[int], length: int) -> Picks | None:
        """These places; None where they are not one step apart, or it is none."""
        step = int(places[1] - places[0]) if len(places) > 1 else 1
        regular = step >= 1 and all(place == places[0] + i * step for i, place in enumerate(places))
        return cls(length, int(places[0]), step, len(places)) if regular else None

    def window(self, step: int) -> int:
        """The least that has a place for the first, and gives no output too many."""
        return max(self.first + 1, self.length - step * self.count + 1)


def picked(layers: Layers, operation: Operation, index: int, rows: Picks, columns: Picks) -> Layers:
    """These rows and columns of a node's map, as the operation's output."""
    step = rows.step if rows.count > 1 else columns.step if columns.count > 1 else 1
    require(
        all(side.count == 1 or side.step == step for side in (rows, columns)),
        f"of rows and columns every so manieth is taken, of both the same, not every {rows.step} and {columns.step}",
    )
    window = (rows.window(step), columns.window(step))
    require(max(window) <= MAX_KERNEL, f"at most {MAX_KERNEL - 1} rows and columns are left out, not {window}")
    shape, type_ = layers.nodes[index].shape, layers.type_of(index)
    smaller = Shape(shape.channels, rows.count, columns.count)
    if window == (1, 1):
        return layers.grown(operation, "pool", MaxPool(1, step, NO_PADDING), smaller, index)
    layers = layers.worked_out(4 * shape.channels * window[0] * window[1])
    weights = np.zeros((shape.channels, 1, *window), np.float32)
    weights[:, 0, rows.first, columns.first] = 1
    op = Convolution(weights, np.zeros(shape.channels, np.float32), None, step, NO_PADDING, shape.channels, "linear")
    larger = layers.grown(replace(operation, inputs=operation.inputs[:1]), "pick", op, smaller, index)
    return larger if type_ is None else larger.typed(len(layers.nodes), type_)
