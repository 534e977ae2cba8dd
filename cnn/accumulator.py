"""How wide an accumulator must be: computed from the weights of a layer, never assumed."""

from __future__ import annotations

import numpy as np

from cnn.datatype import DataType
from cnn.quantized import QAdd, QAveragePool, QConvolution, QDense, QMultiply, Requantiser

Accumulating = QConvolution | QDense | QAveragePool | QAdd | QMultiply


def magnitude(datatype: DataType) -> int:
    """max|a| over every value of the datatype."""
    return max(-datatype.low, datatype.high)


def accumulator_bound(op: Accumulating, *inputs: DataType, positions: int = 1) -> int:
    """The greatest |acc + bias| of any channel: Σ|w|·max|a| + |bias|. It bounds every partial sum in any order too.

    Only a Requantiser adds its bias to the sum itself, so only that bias counts; a MultiplyShift adds its own to the
    product.
    inputs: one datatype an input of ``op``. positions: height · width of the map that a QAveragePool sums over.
    """
    bias = np.abs(op.requantiser.bias) if isinstance(op.requantiser, Requantiser) else np.zeros(1, np.int64)
    if isinstance(op, QAdd):
        sums = sum(m * magnitude(t) for m, t in zip(op.multipliers, inputs, strict=True))
    elif isinstance(op, QMultiply):
        sums = magnitude(inputs[0]) * magnitude(inputs[1])
    elif isinstance(op, QAveragePool):
        sums = positions * magnitude(inputs[0])
    else:
        weights = op.weights.reshape(op.weights.shape[0], -1)
        return int(np.max(np.abs(weights.astype(np.int64)).sum(axis=1) * magnitude(inputs[0]) + bias))
    return int(np.max(sums + bias))


def accumulator_bits(op: Accumulating, *inputs: DataType, positions: int = 1) -> int:
    """Bits of the two's complement integer that holds ± ``accumulator_bound``; the same arguments."""
    return accumulator_bound(op, *inputs, positions=positions).bit_length() + 1
