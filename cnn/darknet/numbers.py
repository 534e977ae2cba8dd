"""Convert between the weights of a layer and the numbers that a weights file stores for it (cnn.ops.Stored)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cnn.maps import FloatArray
from cnn.ops import Convolution, Dense

Weighted = Convolution | Dense


def stored_weights(op: Weighted) -> FloatArray | None:
    """Return the part of a layer's weights that a darknet weights file stores, in the file's shape; None if none."""
    if op.stored.is_implied:
        return None
    step, weights = op.stored.step, file_numbers(op, op.weights)
    if op.stored.copies:
        rows, columns = op.stored.window
        weights = weights[:, :, : rows * step : step, : columns * step : step]
    return weights


def with_stored(op: Weighted, stored: FloatArray) -> Weighted:
    """Return the layer with all weights expanded from the part that a darknet weights file stores (copies, signs)."""
    weights = _signs(stored) if op.stored.signs else stored
    if op.stored.copies:
        larger, step = np.zeros(op.weights.shape, np.float32), op.stored.step
        rows, columns = (side * step for side in op.stored.window)
        for number, (row, column) in enumerate(op.stored.copies):
            filters = slice(number * len(weights), (number + 1) * len(weights))
            larger[filters, :, row : row + rows : step, column : column + columns : step] = weights
        weights = larger
    return replace(op, weights=weights)


def file_numbers(op: Weighted, numbers: FloatArray) -> FloatArray:
    """Return numbers per filter as a weights file stores them: once, even if the layer has shifted filter copies."""
    return numbers[: len(numbers) // max(1, len(op.stored.copies))]


def filter_numbers(op: Weighted, numbers: FloatArray) -> FloatArray:
    """Return numbers per filter of a layer: a weights file's numbers, repeated for each shifted copy of the filters."""
    return np.tile(numbers, len(op.stored.copies)) if op.stored.copies else numbers


def holds_bias(op: Weighted) -> bool:
    """Return whether a darknet weights file stores the biases of a layer.

    It does unless the layer has implied weights and no batch norm; its biases are then 0.
    """
    return not op.stored.is_implied or op.batch_norm is not None


def _signs(weights: FloatArray) -> FloatArray:
    """Return the filter's weights as their signs times its mean magnitude (darknet's binarize_weights)."""
    sizes = np.abs(weights).mean(axis=(1, 2, 3), keepdims=True, dtype=np.float64)
    return np.asarray(np.where(weights > 0, sizes, -sizes), np.float32)
