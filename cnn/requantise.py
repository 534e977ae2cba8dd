"""The arithmetic contract: the conversion of an exact sum into an output value (docs/explanation/quantisation.md).

    Requantiser     y = saturate(((acc + bias) · m + 2^(s − 1)) >> s)
                    m = multiplier or, if acc + bias < 0, negative
    MultiplyShift   y = saturate((acc · multiplier + bias + 2^(s − 1)) >> s)
    Thresholds      y = low + step · Σ_i [±acc ≥ t_i]

The first two forms round halves up. If the network's file rounds halves to the even integer, ``halves`` is EVEN. The
NEAR_HALF lowest bits of the product p are then ignored. If 2^s divides p + 2^(s − 1), y is the even one of the two
nearest integers. If an odd zero point is added after the rounding, y is the odd one, because the even integer plus this
zero point is odd.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from boards.errors import ChoiceError, ConflictError, InvalidValueError, RangeError
from cnn.checks import check_array, check_numbers
from cnn.datatype import DataType
from cnn.maps import Integers, short_repr

Floats = npt.NDArray[Any]

MULTIPLIER_LIMIT = (1 << 16) - 1
"""The greatest magnitude of a multiplier."""
SHIFT_LIMIT = 47
"""The most bits of a right shift."""
PRODUCT_BIAS_LIMIT = (1 << 47) - 1
"""The greatest magnitude of a bias that is added to a product."""
THRESHOLD_LIMIT = 1 << 31
"""The greatest magnitude of a threshold."""
THRESHOLD_BITS = 8
"""The most bits of an output that thresholds compute: 255 comparisons per value."""

UP, EVEN, ODD = "up", "even", "odd"
HALVES = (UP, EVEN, ODD)
"""The ways to round a half: up, to the even integer, or to the odd integer."""


def rounding_after_offset(halves: str, zero: int) -> str:
    """Return the rounding of halves (UP, EVEN or ODD) after ``zero`` is added: an odd ``zero`` swaps EVEN and ODD."""
    return {EVEN: ODD, ODD: EVEN}.get(halves, halves) if zero % 2 else halves


NEAR_HALF = 12
"""The number of low bits of a product that are ignored if halves are rounded to even or odd.

A factor that is not a power of two is rounded to 16 bits, so that an exact half in the file becomes a
number near a half.
"""


@dataclass(frozen=True, eq=False)
class Requantiser:
    """Requantisation by a bias, one multiplication and a right shift, with an int64 number of each per output channel.

    Attributes:
        bias: The bias, at the scale of the accumulator.
        multiplier: The multiplier if acc + bias ≥ 0, 1…65535.
        negative: The multiplier if acc + bias < 0, 0…65535: 0 for ReLU, slope · multiplier for leaky ReLU, and
            ``multiplier`` itself for a linear layer.
        shift: The bits of the right shift, 1…47.
        halves: The rounding of halves, one of HALVES (up, even, odd).
    """

    bias: npt.NDArray[np.int64]
    multiplier: npt.NDArray[np.int64]
    negative: npt.NDArray[np.int64]
    shift: npt.NDArray[np.int64]
    halves: str = field(default=UP, kw_only=True)

    __repr__ = short_repr

    @property
    def channels(self) -> int:
        """The number of output channels."""
        return int(self.bias.size)


def identity(channels: int) -> Requantiser:
    """Return a Requantiser that outputs the accumulator itself, saturated to the output's datatype."""

    def full(value: int) -> npt.NDArray[np.int64]:
        return np.full(channels, value, np.int64)

    return Requantiser(full(0), full(2), full(2), full(1))


@dataclass(frozen=True, eq=False)
class MultiplyShift:
    """Requantisation with the bias after the product: a folded batch norm as in UltraNet (inc, bias and l_shift).

    Every array has one int64 number per output channel.

    Attributes:
        multiplier: The multiplier, −65535…65535; negative if the batch norm's gamma is negative.
        bias: The bias, at the scale of the product, |bias| < 2^47.
        shift: The bits of the right shift, 1…47.
        halves: The rounding of halves, one of HALVES (up, even, odd).
    """

    multiplier: npt.NDArray[np.int64]
    bias: npt.NDArray[np.int64]
    shift: npt.NDArray[np.int64]
    halves: str = field(default=UP, kw_only=True)

    __repr__ = short_repr

    @property
    def channels(self) -> int:
        """The number of output channels."""
        return int(self.bias.size)


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Requantisation by thresholds per output channel: the output counts the thresholds that the accumulator reaches.

    They compute any monotonic function.

    Attributes:
        thresholds: int64 ``(channels, levels of the output datatype)``, ascending, |t| ≤ 2^31. A threshold that no sum
            reaches is the greatest acc + 1.
        flip: bool ``(channels,)``: whether −acc is compared instead of acc, because the function falls.
    """

    thresholds: npt.NDArray[np.int64]
    flip: npt.NDArray[np.bool_]

    __repr__ = short_repr

    @property
    def channels(self) -> int:
        """The number of output channels."""
        return int(self.flip.size)


Requantising: TypeAlias = Requantiser | MultiplyShift | Thresholds
"""The arithmetic that turns an exact sum into an output value."""


def numbers_of(by: Requantising) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a requantiser by their field names, such as "bias". Each has one row per output channel."""
    return {each.name: getattr(by, each.name) for each in fields(by) if each.name != "halves"}


def requantise(accumulators: npt.NDArray[np.int64], requantiser: Requantising, datatype: DataType) -> Integers:
    """Return the output values for accumulators ``(channels, …)``, in their datatype's numpy type; computed in int64.

    |acc + bias| < 2^31, |m| < 2^16, a MultiplyShift's |bias| < 2^47 and s ≤ 47, so every intermediate fits 49 bits.
    """
    if isinstance(requantiser, Thresholds):
        return _threshold(accumulators, requantiser, datatype)
    column = (-1, *(1,) * (accumulators.ndim - 1))
    shift = requantiser.shift.reshape(column)
    if isinstance(requantiser, MultiplyShift):
        product = accumulators * requantiser.multiplier.reshape(column) + requantiser.bias.reshape(column)
    else:
        total = accumulators + requantiser.bias.reshape(column)
        product = total * np.where(
            total < 0, requantiser.negative.reshape(column), requantiser.multiplier.reshape(column)
        )
    if requantiser.halves != UP:
        product &= -1 << NEAR_HALF
    doubled = product + (np.int64(1) << (shift - 1))
    shifted = doubled >> shift
    if requantiser.halves != UP:  # a half is rounded to the integer below if that has the required parity
        is_half = doubled & ((np.int64(1) << shift) - 1) == 0
        shifted -= is_half & ((shifted & 1) != (requantiser.halves == ODD))
    return carried(np.clip(shifted, datatype.low, datatype.high), datatype)


def _threshold(accumulators: Integers, by: Thresholds, datatype: DataType) -> Integers:
    """Return the outputs of Thresholds for accumulators, found by bisection in each channel's ascending thresholds."""
    signs = np.where(by.flip, -1, 1)
    result = np.empty(accumulators.shape, datatype.carrier)
    for channel, (sums, sign, thresholds) in enumerate(zip(accumulators, signs, by.thresholds, strict=True)):
        reached = np.searchsorted(thresholds, (sums * sign).astype(np.int64), side="right")
        result[channel] = datatype.low + reached * datatype.step
    return result


def requantise_floats(accumulators: Floats, requantiser: Requantising, datatype: DataType) -> Integers:
    """Return what ``requantise`` does, several times faster, for accumulators that are integers in a float array.

    The result is exact: every intermediate has at most 49 bits, scaling by 2^-s only changes the exponent, and floor is
    the arithmetic shift.
    """
    if isinstance(requantiser, Thresholds):
        return _threshold(accumulators, requantiser, datatype)
    total = _products(accumulators.astype(np.float64), requantiser)
    shift = requantiser.shift[:, None].astype(np.int32)
    if requantiser.halves == UP:
        total *= np.ldexp(1.0, -shift)
        total += 0.5
        np.floor(total, out=total)
    else:
        np.floor(np.ldexp(total, -NEAR_HALF, out=total), out=total)
        total *= np.ldexp(1.0, NEAR_HALF - shift)
        parity = float(requantiser.halves == ODD)
        total -= parity
        np.rint(total, out=total)
        total += parity
    np.clip(total, datatype.low, datatype.high, out=total)
    return carried(total, datatype)


def _products(total: Floats, requantiser: Requantiser | MultiplyShift) -> Floats:
    if isinstance(requantiser, MultiplyShift):
        total *= requantiser.multiplier[:, None]
        total += requantiser.bias[:, None]
        return total
    total += requantiser.bias[:, None]
    positive = requantiser.multiplier[:, None].astype(np.float64)
    negative = requantiser.negative[:, None].astype(np.float64)
    if np.array_equal(positive, negative):
        total *= positive
    elif np.all(negative <= positive):  # then the greater product has the multiplier that the sign selects
        total = np.maximum(total * positive, total * negative)
    else:
        total *= np.where(total < 0, negative, positive)
    return total


def carried(values: Integers, datatype: DataType) -> Integers:
    """Return the values converted to the narrowest numpy integer type that holds every value of ``datatype``."""
    return np.asarray(values, dtype=np.dtype(datatype.carrier))


# Rules of the contract.

_LIMITS: dict[type[Requantising], dict[str, tuple[int, int]]] = {
    Requantiser: {
        "bias": (-(1 << 31) + 1, (1 << 31) - 1),
        "multiplier": (1, MULTIPLIER_LIMIT),
        "negative": (0, MULTIPLIER_LIMIT),
        "shift": (1, SHIFT_LIMIT),
    },
    MultiplyShift: {
        "multiplier": (-MULTIPLIER_LIMIT, MULTIPLIER_LIMIT),
        "bias": (-PRODUCT_BIAS_LIMIT, PRODUCT_BIAS_LIMIT),
        "shift": (1, SHIFT_LIMIT),
    },
}


def check_requantiser(by: Requantising, datatype: DataType, channels: int) -> None:
    """Raise an error if an array of a requantiser has a wrong shape, type or number for this output datatype.

    Args:
        by: The requantiser.
        datatype: The output's datatype.
        channels: The number of output channels.

    Raises:
        ShapeError: An array has another shape or data type than required.
        RangeError: A number is outside its range.
        ConflictError: The output's datatype lacks values that saturation may give.
        ChoiceError: The rounding of halves is unknown.
        InvalidValueError: The thresholds of a channel do not ascend.
    """
    if isinstance(by, Thresholds):
        _check_thresholds(by, datatype, channels)
        return
    if datatype.step != 1:
        subjects = (f"a {datatype.name} output", type(by).__name__)
        raise ConflictError(subjects, "saturation may give a value that the datatype lacks", remedy="use Thresholds")
    if by.halves not in HALVES:
        raise ChoiceError("the rounding of halves", by.halves, HALVES)
    for name, (low, high) in _LIMITS[type(by)].items():
        array = getattr(by, name)
        check_array(name, array, (channels,))
        check_numbers(name, array, low, high)


def _check_thresholds(by: Thresholds, datatype: DataType, channels: int) -> None:
    if datatype.bits > THRESHOLD_BITS:
        what = f"the bits of {datatype.name}, computed by thresholds,"
        raise RangeError(what, datatype.bits, high=THRESHOLD_BITS)
    array = by.thresholds
    check_array("the thresholds", array, (channels, datatype.levels))
    check_array("flip", by.flip, (channels,), np.bool_)
    check_numbers("a threshold", array, -THRESHOLD_LIMIT, THRESHOLD_LIMIT)
    falls = np.flatnonzero(np.any(array[:, 1:] < array[:, :-1], axis=1))
    if falls.size:
        channel = int(falls[0])
        required = "in ascending order"
        raise InvalidValueError(f"the thresholds of channel {channel}", array[channel].tolist(), required)
