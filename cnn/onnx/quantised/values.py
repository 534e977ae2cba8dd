"""What the values of a map may be, by the bits of QONNX."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from boards.errors import RangeError, ShapeError
from cnn.datatype import DataType, TensorType
from cnn.onnx.graph import OnnxOperation, RefusedError, require
from cnn.onnx.layers import Layers, Map
from cnn.onnx.quantised.linear import grown, typed
from cnn.ops import Activate

DOMAINS = ("qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general")
KINDS = ("Quant", "IntQuant", "BipolarQuant", "MultiThreshold", "Trunc")
NAMES = frozenset(f"{domain}.{kind}" for domain in DOMAINS for kind in KINDS)
"""Of QONNX's operators, with the domain before them."""

ZERO_BEHIND = "zero_behind"
"""An attribute of a Quant that stands for a QuantizeLinear, which puts its zero point on what is rounded already."""

WIDEST = 16
"""Bits of a map; weights may have more."""

NEAR = 1e-3
"""How far a quotient of two numbers, which are float32, may be from the whole number that it stands for."""


class Values:
    """What the values of a map may be. low, high: its integers' ends, as the file counts them."""

    def __init__(self, bits: int, signed: bool, narrow: bool, scale: float, zero: int) -> None:
        # Unsigned integers are signed ones of as many bits, less by half of them; a single bit has two.
        self.offset = 0 if signed else 1 << (max(bits, 2) - 1)
        self.type = TensorType(DataType(max(bits, 2), True), scale, zero - self.offset)
        self.low, self.high = low, high = ends_of(bits, signed, narrow)
        self.cut = (float((low - zero) * scale), float((high - zero) * scale))
        self.ends = (low - self.offset, high - self.offset) == (self.type.datatype.low, self.type.datatype.high)


def in_values(layers: Layers, operation: OnnxOperation, values: Values, zero_first: bool = True) -> Layers:
    """The operation's first input has these values as its output. zero_first: as of a Mark."""
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
    return grown(larger, operation, source, values.type, Activate("clip", values.cut))


def with_zero_first(layers: Layers, operation: OnnxOperation, count: int) -> Layers:
    """The layer of the operation's output, and those that came with it, have their zero point added before they are
    rounded. count: of the layers before."""
    value = layers.value(operation.outputs[0])
    own = [value.node] if isinstance(value, Map) else []
    for index in {*own, *range(count, len(layers.nodes))}:
        layers = layers.marked(index, replace(layers.mark(index), zero_first=True))
    return layers


def bits_of(layers: Layers, operation: OnnxOperation, position: int) -> int:
    """Return a number of bits, which is the operation's input."""
    array = np.asarray(layers.constant(operation, position), np.float64)
    require(array.size == 1, ShapeError("the number of bits", f"{array.size} values", "one value"))
    bits = float(array.ravel()[0])
    require(1 <= bits <= 32 and bits.is_integer(), RangeError("the number of bits", bits, 1, 32, integer=True))
    return int(bits)


def check_bits(bits: int, signed: bool) -> None:
    """Raise RangeError if the integers of a map have too few or too many bits; unsigned ones take one bit more."""
    more = 0 if signed else 1
    what = f"bits of {'signed' if signed else 'unsigned'} integers of a map"
    require(2 <= bits + more <= WIDEST, RangeError(what, bits, 2 - more, WIDEST - more))


def ends_of(bits: int, signed: bool, narrow: bool) -> tuple[int, int]:
    """The least and the greatest integer of so many bits."""
    if signed:
        return -(1 << (bits - 1)) + narrow, (1 << (bits - 1)) - 1
    return 0, (1 << bits) - 1 - narrow
