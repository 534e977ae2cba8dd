"""What a weights file holds of a layer, and what the layer has then."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cnn.maps import FloatArray
from cnn.ops import Convolution, Dense

Weighted = Convolution | Dense


def stored_weights(op: Weighted) -> FloatArray | None:
    """Of the weights those that a file holds, in its shape; None where the operation has them itself."""
    if op.stored.itself:
        return None
    step, weights = op.stored.step, once(op, op.weights)
    if op.stored.places:
        rows, columns = op.stored.window
        weights = weights[:, :, : rows * step : step, : columns * step : step]
    return weights


def with_stored(op: Weighted, stored: FloatArray) -> Weighted:
    """``op`` with the weights that come of those of a file."""
    weights = _signs(stored) if op.stored.signs else stored
    if op.stored.places:
        larger, step = np.zeros(op.weights.shape, np.float32), op.stored.step
        rows, columns = (side * step for side in op.stored.window)
        for number, (row, column) in enumerate(op.stored.places):
            filters = slice(number * len(weights), (number + 1) * len(weights))
            larger[filters, :, row : row + rows : step, column : column + columns : step] = weights
        weights = larger
    return replace(op, weights=weights)


def once(op: Weighted, numbers: FloatArray) -> FloatArray:
    """Return the numbers that a file holds for the filters: each filter once, however often it is there."""
    return numbers[: len(numbers) // max(1, len(op.stored.places))]


def for_all(op: Weighted, numbers: FloatArray) -> FloatArray:
    """Return the numbers of a file for all filters, repeated as often as its filters are there."""
    return np.tile(numbers, len(op.stored.places)) if op.stored.places else numbers


def holds_bias(op: Weighted) -> bool:
    """Whether a file holds the biases: those of an operation with its own weights belong to a batch norm, or are 0."""
    return not op.stored.itself or op.batch_norm is not None


def _signs(weights: FloatArray) -> FloatArray:
    """The mean size of each filter where its weight is above 0, else the negative of that (darknet's
    binarize_weights)."""
    sizes = np.abs(weights).mean(axis=(1, 2, 3), keepdims=True, dtype=np.float64)
    return np.asarray(np.where(weights > 0, sizes, -sizes), np.float32)
