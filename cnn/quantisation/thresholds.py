"""Rewrites any requantiser as thresholds: y ≥ v is one comparison of the exact sum, per channel.

before   Requantiser or MultiplyShift: a product, an addition and a shift per output

after    Thresholds: one comparison per value of the output's datatype except the least

FINN calls it "absorb into multi-threshold" (arXiv:1709.04060, streamlining).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from boards.errors import UnsupportedError
from cnn.datatype import DataType
from cnn.requantise import (
    NEAR_HALF,
    ODD,
    THRESHOLD_BITS,
    THRESHOLD_LIMIT,
    UP,
    MultiplyShift,
    Requantiser,
    Requantising,
    Thresholds,
)

Longs = npt.NDArray[np.int64]

_FAR = 1 << 62  # beyond every sum; thresholds_of clips thresholds to ±2^31


def thresholds_of(requantiser: Requantising, datatype: DataType) -> Thresholds:
    """Return thresholds per channel that give the same output as a requantiser for every accumulator |acc| < 2^31.

    Raises:
        UnsupportedError: The output has more than 8 bits, or its values are more than 1 apart.
    """
    if isinstance(requantiser, Thresholds):
        return requantiser
    if datatype.bits > THRESHOLD_BITS or datatype.step != 1:
        reason = f"they are made for at most {THRESHOLD_BITS} bits, and for datatypes whose values are 1 apart"
        raise UnsupportedError(f"thresholds for {datatype.name}", reason, remedy="keep the multiplication")
    values = np.arange(datatype.low + 1, datatype.high + 1, dtype=np.int64)
    needed = least_products(values, requantiser.shift[:, None], requantiser.halves)
    flip = np.zeros(requantiser.channels, np.bool_)
    if isinstance(requantiser, MultiplyShift):
        flip = requantiser.multiplier < 0
        sums = _least(needed - requantiser.bias[:, None], np.abs(requantiser.multiplier)[:, None])
    else:
        sums = _least_sum(needed, requantiser)
    return Thresholds(np.clip(sums, -THRESHOLD_LIMIT, THRESHOLD_LIMIT), flip)


def least_products(values: Longs, shift: Longs, halves: str) -> Longs:
    """Return, for each output value, the least product (before the shift) whose output is that value or more.

    y ≥ v means product ≥ v · 2^s − 2^(s − 1). If halves are rounded to even, this product itself gives v − 1 for an odd
    v, and products count without their lowest bits.
    """
    needed = (values << shift) - (np.int64(1) << (shift - 1))
    if halves == UP:
        return np.asarray(needed)
    needed = needed + ((values & 1) != (halves == ODD))
    return np.asarray(-(-needed >> NEAR_HALF) << NEAR_HALF)


def _least_sum(needed: Longs, by: Requantiser) -> Longs:
    """Return the least accumulator acc for which a Requantiser's (acc + bias) · multiplier reaches ``needed``.

    If ``needed`` ≤ 0, the least acc + bias is not above 0, so that ``negative`` multiplies it. Otherwise ``multiplier``
    does.
    """
    below = np.minimum(_least(needed, by.negative[:, None]), 0)
    above = _least(needed, by.multiplier[:, None])
    return np.asarray(np.where(needed <= 0, below, above) - by.bias[:, None], np.int64)


def _least(needed: Longs, multiplier: Longs) -> Longs:
    """Return the least integer sum with sum · multiplier ≥ needed.

    For a multiplier of 0 it is −_FAR if every sum satisfies this, and _FAR if no sum does.
    """
    constant = np.where(needed <= 0, -_FAR, _FAR)
    return np.asarray(np.where(multiplier == 0, constant, -(-needed // np.maximum(multiplier, 1))), np.int64)
