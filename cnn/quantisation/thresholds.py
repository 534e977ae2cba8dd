"""Any requantisation as thresholds: whether y ≥ v is one comparison of the exact sum, channel by channel.

before   Requantiser or MultiplyShift     for each output a product, an addition and a shift
after    Thresholds                       for each output as many comparisons as its datatype has values, less one

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

_FAR = 1 << 62  # beyond every sum; in the end all thresholds are cut to ±2^31


def thresholds_of(requantiser: Requantising, datatype: DataType) -> Thresholds:
    """Thresholds that give the same output of ``datatype`` for every sum |acc| < 2^31.

    UnsupportedError if the output has more than 8 bits, or values more than 1 apart: a multiplication serves then.
    """
    if isinstance(requantiser, Thresholds):
        return requantiser
    if datatype.bits > THRESHOLD_BITS or datatype.step != 1:
        reason = f"they are made for at most {THRESHOLD_BITS} bits whose values follow each other"
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
    """The least product that gives each of the values or more, of shifts that broadcast to them.

    y ≥ v means product ≥ v · 2^s − 2^(s − 1); where halves go to even, this one is of the value below where v is odd,
    and products count without their lowest bits.
    """
    needed = (values << shift) - (np.int64(1) << (shift - 1))
    if halves == UP:
        return np.asarray(needed)
    needed = needed + ((values & 1) != (halves == ODD))
    return np.asarray(-(-needed >> NEAR_HALF) << NEAR_HALF)


def _least_sum(needed: Longs, by: Requantiser) -> Longs:
    """The least acc whose product reaches ``needed``.

    Where ``needed`` ≤ 0 the least such acc + bias is not above 0, so that ``negative`` multiplies it; else
    ``multiplier`` does.
    """
    below = np.minimum(_least(needed, by.negative[:, None]), 0)
    above = _least(needed, by.multiplier[:, None])
    return np.asarray(np.where(needed <= 0, below, above) - by.bias[:, None], np.int64)


def _least(needed: Longs, multiplier: Longs) -> Longs:
    """The least sum with sum · multiplier ≥ needed; ∓_FAR where the multiplier is 0, as every sum or none does."""
    constant = np.where(needed <= 0, -_FAR, _FAR)
    return np.asarray(np.where(multiplier == 0, constant, -(-needed // np.maximum(multiplier, 1))), np.int64)
