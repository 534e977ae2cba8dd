"""The values that a map may have, as QONNX's number of bits determines them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from boards.errors import RangeError, ShapeError
from cnn.datatype import DataType, TensorType
from cnn.onnx.graph import OnnxOperation, RefusedError, require
from cnn.onnx.layers import Layers, Map
from cnn.onnx.quantised.linear import typed, with_conversion
from cnn.ops import Activate

DOMAINS = ("qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general")
KINDS = ("Quant", "IntQuant", "BipolarQuant", "MultiThreshold", "Trunc")
NAMES = frozenset(f"{domain}.{kind}" for domain in DOMAINS for kind in KINDS)
"""The names of QONNX's operators, with the domain before each."""

ZERO_BEHIND = "zero_behind"
"""An attribute of a Quant that replaces a QuantizeLinear, which adds its zero point after rounding."""

WIDEST = 16
"""The most bits of a map; weights may have more."""

NEAR = 1e-3
"""The greatest distance from a whole number of a quotient of two float32 numbers that represents it."""


class Values:
    """The quantised type and the range of integers of a map that QONNX quantises to a number of bits.

    Attributes:
        offset: The difference of the file's integers and the signed integers of ``type``.
        type: The type of the map.
        low: The least integer in the file.
        high: The greatest integer in the file.
        cut: The real values of ``low`` and ``high``.
        ends: Whether ``low`` and ``high`` are the ends of the type's datatype.
    """

    def __init__(self, bits: int, signed: bool, narrow: bool, scale: float, zero: int) -> None:
        # Unsigned integers become signed ones of the same bits by subtracting half of their number; one bit becomes two
        self.offset = 0 if signed else 1 << (max(bits, 2) - 1)
        self.type = TensorType(DataType(max(bits, 2), True), scale, zero - self.offset)
        self.low, self.high = low, high = ends_of(bits, signed, narrow)
        self.cut = (float((low - zero) * scale), float((high - zero) * scale))
        self.ends = (low - self.offset, high - self.offset) == (self.type.datatype.low, self.type.datatype.high)


def in_values(layers: Layers, operation: OnnxOperation, values: Values, zero_first: bool = True) -> Layers:
    """Quantise the operation's first input to ``values``, and append a Clip if these are not all of the type's.

    zero_first: as in Mark.
    """
    low, high = values.type.datatype.low, values.type.datatype.high
    offset, zero = values.offset, values.type.zero_point
    require(low <= zero <= high, RangeError("its zero point", zero + offset, low + offset, high + offset))
    larger = typed(layers, operation, values.type)
    if zero_first:
        larger = with_zero_first(larger, operation, len(layers.nodes))
    if values.ends:
        return larger
    source = larger.value(operation.outputs[0])
    if not isinstance(source, Map):
        raise RefusedError("nothing reads its first output")
    return with_conversion(larger, operation, source, values.type, Activate("clip", values.cut))


def with_zero_first(layers: Layers, operation: OnnxOperation, count: int) -> Layers:
    """Return the network with the zero point of the output's layer noted as added before rounding.

    The same applies to all layers after the first ``count``.
    """
    value = layers.value(operation.outputs[0])
    own = [value.node] if isinstance(value, Map) else []
    for index in {*own, *range(count, len(layers.nodes))}:
        layers = layers.marked(index, replace(layers.mark(index), zero_first=True))
    return layers


def bits_of(layers: Layers, operation: OnnxOperation, position: int) -> int:
    """Return the number of bits that an operation has as its constant input ``position``, 1…32."""
    array = np.asarray(layers.constant(operation, position), np.float64)
    require(array.size == 1, ShapeError("the number of bits", f"{array.size} values", "one value"))
    bits = float(array.ravel()[0])
    require(1 <= bits <= 32 and bits.is_integer(), RangeError("the number of bits", bits, 1, 32, integer=True))
    return int(bits)


def check_bits(bits: int, signed: bool) -> None:
    """Raise RangeError if a map's integers have too few or too many bits; unsigned ones count as one bit more."""
    more = 0 if signed else 1
    what = f"bits of {'signed' if signed else 'unsigned'} integers of a map"
    require(2 <= bits + more <= WIDEST, RangeError(what, bits, 2 - more, WIDEST - more))


def ends_of(bits: int, signed: bool, narrow: bool) -> tuple[int, int]:
    """Return the least and the greatest integer of ``bits`` bits.

    narrow: whether the least signed integer, or the greatest unsigned one, is excluded.
    """
    if signed:
        return -(1 << (bits - 1)) + narrow, (1 << (bits - 1)) - 1
    return 0, (1 << bits) - 1 - narrow
