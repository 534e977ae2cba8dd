"""Any requantisation as thresholds: y ≥ v is one comparison of the exact sum, channel by channel.

before   Requantiser or MultiplyShift     a product, an addition and a shift a value
after    Thresholds                       as many comparisons as the output has values, less one

FINN calls it "absorb into multi-threshold" (arXiv:1709.04060, streamlining).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from boards.errors import QuantiseError
from cnn.datatype import DataType
from cnn.quantized import MultiplyShift, Requantiser, Requantising, Thresholds
from cnn.quantized_check import THRESHOLD_BITS, THRESHOLD_LIMIT

Longs = npt.NDArray[np.int64]

_FAR = 1 << 62  # beyond every sum, before all are cut to ±2^31


def thresholds_of(requantiser: Requantising, datatype: DataType) -> Thresholds:
    """The same function of every sum |acc| < 2^31, for outputs of ``datatype``.

    QuantiseError where the output has more than 8 bits: that is what multipliers are for.
    """
    if isinstance(requantiser, Thresholds):
        return requantiser
    if datatype.bits > THRESHOLD_BITS or datatype.step != 1:
        raise QuantiseError(
            f"thresholds are made for outputs of at most {THRESHOLD_BITS} bits whose values follow each other, "
            f"not {datatype.name}; keep the multiplication"
        )
    # y ≥ v means product ≥ v · 2^s − 2^(s − 1), for every value v but the least.
    values = np.arange(datatype.low + 1, datatype.high + 1, dtype=np.int64)
    shift = requantiser.shift[:, None]
    needed = (values << shift) - (np.int64(1) << (shift - 1))
    flip = np.zeros(requantiser.channels, np.bool_)
    if isinstance(requantiser, MultiplyShift):
        flip = requantiser.multiplier < 0
        least = _least(needed - requantiser.bias[:, None], np.abs(requantiser.multiplier)[:, None])
    else:
        least = _least_sum(needed, requantiser)
    return Thresholds(np.clip(least, -THRESHOLD_LIMIT, THRESHOLD_LIMIT), flip)


def _least_sum(needed: Longs, by: Requantiser) -> Longs:
    """A sum below 0 reaches what is at most 0 by the negative multiplier, all else takes the positive one."""
    below = np.minimum(_least(needed, by.negative[:, None]), 0)
    above = _least(needed, by.multiplier[:, None])
    return np.asarray(np.where(needed <= 0, below, above) - by.bias[:, None], np.int64)


def _least(needed: Longs, multiplier: Longs) -> Longs:
    """The least sum with sum · multiplier ≥ needed; where the multiplier is 0, −∞ or +∞."""
    constant = np.where(needed <= 0, -_FAR, _FAR)
    return np.asarray(np.where(multiplier == 0, constant, -(-needed // np.maximum(multiplier, 1))), np.int64)
