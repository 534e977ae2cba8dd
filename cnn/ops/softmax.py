"""Softmax of floats, and in integers: the shares of the channels of each position, p · 256 as UINT8.

    stable     e = T[m − x] for the greatest x of the position, m. It is as exact as T for all values.
    latency    e = T[x], which is 1 for the greatest x of the datatype. It takes one pass less. Shares have few bits if
               all values are far below the greatest.
    both       p = min(255, (e · ⌊2^36 / Σ e⌋ + 2^27) >> 28), T = round((2^20 − 1) · e^…); if all e are 0, so are p
    argmax     p = 255 for the first of the greatest values, 0 for all others

hls4ml has them under these names. Its legacy is the function of stable with a look-up for each pair of channels.

With C channels a share of ``stable`` is at most 1/512 + 2^−16 + C / 2^21 from p, and a share above 255/256 is 255/256.
The first term is the rounding of p, the second the rounding of the quotient, and the third the rounding of T.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from boards.errors import ChoiceError, ConflictError, InvalidValueError, MismatchError, MissingValueError, RangeError
from cnn.checks import check_array
from cnn.datatype import UINT8, TensorType
from cnn.maps import FloatArray, IntArray, Integers, Shape
from cnn.ops.operation import FloatOperation, HostOperation, IntegerOperation, Tensor
from cnn.requantise import carried
from cnn.tables import TABLE_BITS, Table, entries

METHODS = ("stable", "latency", "argmax")

SHARES = TensorType(UINT8, 1 / 256)
POWER_BITS, DIVIDEND_BITS, SHARE_BITS = 20, 37, 8
"""The bits of e, of the dividend 2^36 and of p · 256, as in softmax.h."""

MAX_CHANNELS = 1 << 12
"""The most channels for shares of 8 bits: with more, the roundings of T alone may be a step."""


HOST_INSTEAD = "leave out --softmax, so that the host does it"


@dataclass(frozen=True)
class Softmax(HostOperation):
    """A softmax that the host computes in float: over all input values, equal parts of them, or each position's
    channels.

    Attributes:
        groups: The number of equal parts of the input that have a softmax each.
        each: The softmax is over the channels of each position instead.
        logarithm: The output is the logarithms of the probabilities.
    """

    groups: int = 1
    each: bool = False
    logarithm: bool = False

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        return read[0]

    def run(self, inputs: Sequence[FloatArray], shape: Shape) -> FloatArray:
        return _softmax(inputs[0], self)


@dataclass(frozen=True)
class IntegerSoftmax(FloatOperation):
    """A softmax over the channels of each position that the accelerator computes in integers, by one of METHODS."""

    method: str

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        return read[0]

    def run(self, inputs: Sequence[FloatArray], shape: Shape) -> FloatArray:
        return softmax_of_positions(inputs[0])


@dataclass(frozen=True, eq=False)
class QSoftmax(IntegerOperation):
    """An integer softmax over the channels of each position: probability · 256 as UINT8, by one of METHODS.

    table: The powers of e that the method looks up; None if it needs none.
    """

    method: str
    table: Table | None

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        return read[0]

    def run_integer(self, inputs: Sequence[Integers], read: Sequence[Tensor], output: Tensor) -> Integers:
        return carried(shares(inputs[0], self, read[0].type.datatype.low), output.type.datatype)

    def check(self, read: Sequence[Tensor], output: Tensor) -> None:
        if self.method not in METHODS:
            raise ChoiceError("the method of the softmax", self.method, METHODS)
        if output.type != SHARES:
            raise MismatchError("the type of the shares", output.type, SHARES)
        check_channels(output.shape.channels)
        if self.table is None:
            if self.method != "argmax":
                raise MissingValueError("the table of powers", f"{self.method} looks them up")
            return
        if self.method == "argmax":
            raise ConflictError(("argmax", "a table of powers"), "argmax looks none up")
        self._check_powers(self.table, read[0].type)

    def _check_powers(self, table: Table, read: TensorType) -> None:
        if read.datatype.bits > TABLE_BITS:
            raise RangeError("the bits of what the softmax reads", read.datatype.bits, high=TABLE_BITS)
        if table.slopes is not None:
            raise ConflictError(("powers of a softmax", "slopes"), "each power has an entry of its own")
        check_array("the powers", table.values, (entries(table, read.datatype),))
        falls = table.values if self.method == "stable" else table.values[::-1]
        most = (1 << POWER_BITS) - 1
        if not (int(falls[0]) == most and int(falls[-1]) >= 0 and bool(np.all(falls[1:] <= falls[:-1]))):
            required = f"{most} at the greatest value, and fall to 0 or more"
            raise InvalidValueError("the powers", table.values.tolist(), required)


def softmax_of_positions(array: FloatArray) -> FloatArray:
    """Return the softmax over the channels of each position, float32 of the same shape [channels, …]."""
    return _softmax(array, Softmax(each=True))


def _softmax(array: FloatArray, op: Softmax) -> FloatArray:
    parts = array.reshape((1, array.shape[0], -1) if op.each else (op.groups, -1, 1)).astype(np.float64)
    parts = parts - parts.max(axis=1, keepdims=True)
    total = np.exp(parts).sum(axis=1, keepdims=True)
    values = parts - np.log(total) if op.logarithm else np.exp(parts) / total
    return np.asarray(values, dtype=np.float32).reshape(array.shape)


def check_channels(channels: int) -> None:
    """Raise RangeError if an integer softmax has more than MAX_CHANNELS (4096) channels."""
    if channels > MAX_CHANNELS:
        raise RangeError("the number of channels of a softmax", channels, high=MAX_CHANNELS, remedy=HOST_INSTEAD)


def softmax_of(method: str, source: TensorType) -> QSoftmax:
    """Return an integer softmax by ``method`` for inputs of the type ``source``; RangeError if its table needs over 8
    bits."""
    if method == "argmax":
        return QSoftmax(method, None)
    read = source.datatype
    if read.bits > TABLE_BITS:
        raise RangeError(
            f"the bits that a softmax by {method} looks up",
            read.bits,
            high=TABLE_BITS,
            remedy=f"give its input {TABLE_BITS} bits or fewer, take argmax, or leave the softmax to the host",
        )
    distance = np.arange(read.high - read.low + 1) * np.float64(source.scale)
    powers = np.floor(((1 << POWER_BITS) - 1) * np.exp(-distance) + 0.5).astype(np.int64)
    return QSoftmax(method, Table(powers if method == "stable" else np.ascontiguousarray(powers[::-1])))


def shares(values: IntArray, op: QSoftmax, low: int) -> IntArray:
    """Return the integer softmax of a map of integers [C, …]: probabilities · 256, int64 0…255, of the same shape."""
    wide = values.astype(np.int64)
    if op.table is None:
        first = np.argmax(wide, axis=0, keepdims=True)
        chosen = np.zeros(wide.shape, np.int64)
        np.put_along_axis(chosen, first, (1 << SHARE_BITS) - 1, axis=0)
        return chosen
    places = wide.max(axis=0, keepdims=True) - wide if op.method == "stable" else wide - low
    powers = op.table.values[places]
    inverse = (1 << DIVIDEND_BITS - 1) // np.maximum(powers.sum(axis=0, keepdims=True), 1)
    shift = DIVIDEND_BITS - 1 - SHARE_BITS
    rounded: IntArray = np.minimum((powers * inverse + (1 << (shift - 1))) >> shift, (1 << SHARE_BITS) - 1)
    return rounded
