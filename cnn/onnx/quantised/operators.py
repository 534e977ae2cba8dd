"""Operators on integers: QLinearConv and similar ones (QOperator), and ConvInteger.

Each is read as the equivalent float operator between DequantizeLinear and QuantizeLinear.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from boards.errors import InvalidValueError, MismatchError, MissingValueError, ShapeError
from cnn.onnx import channels_last
from cnn.onnx.graph import Array, OnnxOperation, RefusedError, require
from cnn.onnx.layers import Layers, Map
from cnn.onnx.operators import BUILDERS as FLOATS
from cnn.onnx.operators import Builder
from cnn.onnx.quantised.values import with_zero_first

MICROSOFT = "com.microsoft."
"""The domain of onnxruntime's own operators."""

NO_ATTRIBUTES: Mapping[str, Any] = MappingProxyType({})


class Steps:
    """A sequence of float operators that replaces one operator on integers, such as a QLinearConv, while it is read.

    ``layers`` grows with every operator. Tensors between them have the name of the operation's output and a number.
    """

    def __init__(self, layers: Layers, operation: OnnxOperation) -> None:
        self.layers, self.operation, self.count = layers, operation, 0

    def name(self) -> str:
        """Return a new name for a tensor between two of the replacing operators."""
        self.count += 1
        name = f"{self.operation.outputs[0]}/{self.count}"
        self.layers = replace(self.layers, readers=Counter({**self.layers.readers, name: 1}))
        return name

    def constant(self, values: Array) -> str:
        """Add a constant array to the network's tensors and return its name."""
        name = self.name()
        larger = self.layers.with_bytes_spent(values.nbytes)
        self.layers = replace(larger, constants={**larger.constants, name: values})
        return name

    def put(
        self, kind: str, inputs: Sequence[str], output: str = "", attributes: Mapping[str, Any] = NO_ATTRIBUTES
    ) -> str:
        """Read a float operator as one of the sequence, and return the name of its output."""
        output = output or self.name()
        step = OnnxOperation(
            self.operation.name or self.operation.outputs[0], kind, tuple(inputs), (output,), attributes
        )
        last = channels_last.reads_last(self.layers, step)
        self.layers = (
            channels_last.read_last(self.layers, step, FLOATS[kind]) if last else FLOATS[kind](self.layers, step)
        )
        return output

    def floats(self, first: int, attributes: Mapping[str, Any] = NO_ATTRIBUTES) -> str:
        """Read a DequantizeLinear of an integer tensor, and return the name of its float output.

        The inputs ``first``, ``first`` + 1 and ``first`` + 2 are the integers, their scale and their zero point.
        """
        inputs = self.operation.inputs[first : first + 3]
        if isinstance(self.layers.optional(self.operation, first), Map):
            source, count = inputs[0], self.layers.readers[inputs[0]]
            name = self.put("DequantizeLinear", inputs, attributes=attributes)
            # All readers of the integers now read this map.
            self.layers = replace(self.layers, readers=Counter({**self.layers.readers, name: count}))
            require(bool(source), MissingValueError("its input"))
            return name
        return self.put("DequantizeLinear", inputs, attributes=attributes)

    def bias(self, position: int, first: int, second: int, factor: float = 1.0) -> list[str]:
        """Add an integer bias as a float constant, and return its name in a list; [] if the operator has no bias.

        Args:
            position: The bias, integers whose scale is the product of two scales.
            first: The input that has the first scale after it.
            second: The input that has the second scale after it.
            factor: A further factor of the scale.
        """
        if self.layers.optional(self.operation, position) is None:
            return []
        places = (position, first + 1, second + 1)
        integers, *scales = (self.layers.constant(self.operation, i).astype(np.float64).ravel() for i in places)
        fits = all(scale.size in (1, integers.size) for scale in scales)
        required = f"a value for each of {max(scale.size for scale in scales)} scales"
        require(fits, ShapeError("its bias", f"{integers.size} values", required))
        return [self.constant((integers * (scales[0] * scales[1] * factor)).astype(np.float32))]

    def quantised(self, source: str, first: int, zero_first: bool = False) -> Layers:
        """Read a QuantizeLinear of ``source`` that gives the operation's output, and return the network.

        The inputs ``first`` and ``first`` + 1 are its scale and zero point. zero_first: as in Mark.
        """
        count = len(self.layers.nodes)
        self.put("QuantizeLinear", [source, *self.operation.inputs[first : first + 2]], self.operation.outputs[0])
        return with_zero_first(self.layers, self.operation, count) if zero_first else self.layers


def convolution(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX QLinearConv as DequantizeLinear, Conv and QuantizeLinear."""
    steps = Steps(layers, operation)
    inputs = [steps.floats(0), steps.floats(3, {"axis": 0})]
    result = steps.put("Conv", [*inputs, *steps.bias(8, 0, 3)], attributes=operation.attributes)
    return steps.quantised(result, 6)


def matrix(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX QLinearMatMul as DequantizeLinear, MatMul and QuantizeLinear."""
    steps = Steps(layers, operation)
    return steps.quantised(steps.put("MatMul", [steps.floats(0), steps.floats(3, {"axis": 1})]), 6)


def gemm(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read onnxruntime's QGemm as DequantizeLinear, Gemm and QuantizeLinear."""
    steps = Steps(layers, operation)
    axis = 0 if operation.integer("transB", 0) else 1
    inputs = [steps.floats(0), steps.floats(3, {"axis": axis})]
    bias = steps.bias(6, 0, 3, operation.number("alpha", 1.0))
    return steps.quantised(steps.put("Gemm", [*inputs, *bias], attributes=operation.attributes), 7)


def qlinear_binary(kind: str) -> Builder:
    """Return the function that reads QLinearAdd or QLinearMul, whose zero point is added before rounding."""

    def build(layers: Layers, operation: OnnxOperation) -> Layers:
        steps = Steps(layers, operation)
        return steps.quantised(steps.put(kind, [steps.floats(0), steps.floats(3)]), 6, zero_first=True)

    return build


def concat(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read onnxruntime's QLinearConcat, whose first inputs are its output's scale and zero point."""
    steps = Steps(layers, operation)
    parts = [steps.floats(first) for first in range(2, len(operation.inputs), 3)]
    return steps.quantised(steps.put("Concat", parts, attributes=operation.attributes), 0)


def qlinear_unary(kind: str) -> Builder:
    """Return the function that reads onnxruntime's QLinear form of an operator on one map: a pool or an activation."""

    def build(layers: Layers, operation: OnnxOperation) -> Layers:
        last = operation.integer("channels_last", 0)
        require(not last, InvalidValueError("channels_last", last, "0, the channels before height and width"))
        steps = Steps(layers, operation)
        attributes = {key: value for key, value in operation.attributes.items() if key != "channels_last"}
        output = steps.put(kind, [steps.floats(0)], attributes=attributes)
        # onnxruntime adds the zero point before rounding for a mean over a window, and after it for a global mean.
        shape = layers.nodes[layers.padded(operation).node].shape
        windows = operation.integers("kernel_shape", ()) != (shape.height, shape.width)
        return steps.quantised(output, 3, zero_first=kind == "AveragePool" and windows)

    return build


def softmax(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read onnxruntime's QLinearSoftmax; its attribute opset decides over which axes it is."""
    steps = Steps(replace(layers, opset=operation.integer("opset", layers.opset)), operation)
    attributes = {key: value for key, value in operation.attributes.items() if key == "axis"}
    result = steps.quantised(steps.put("Softmax", [steps.floats(0)], attributes=attributes), 3)
    return replace(result, opset=layers.opset)


def sums(kind: str) -> Builder:
    """Return the function that reads ConvInteger or MatMulInteger, whose output is the integer sums themselves."""

    def build(layers: Layers, operation: OnnxOperation) -> Layers:
        source = layers.padded(operation)
        steps, integers = Steps(layers, operation), operation.inputs[0]
        zeros = _zeros(layers, operation, 2)
        require(zeros.size == 1, ShapeError("the zero point of a map", f"{zeros.size} values", "one value"))
        zero = int(zeros[0])
        unsigned = _unsigned(layers, operation, 2)
        if source.node == 0 and layers.type_of(0) is None:  # the input's own integers: a step is 1
            grid: tuple[Array, ...] = np.ones((), np.float32), np.array(zero, np.uint8 if unsigned else np.int8)
            integers = steps.put("DequantizeLinear", [integers, *(steps.constant(values) for values in grid)])
            source = steps.layers.map(replace(operation, inputs=(integers,)))
        read = steps.layers.type_of(source.node)
        if read is None:
            raise RefusedError("its input has no scale; a QuantizeLinear must be before it")
        pixels = source.node == 0  # 0…255, or −128…127 with the zero point −128
        same = zero == (0 if unsigned else -128) if pixels else zero - 128 * unsigned == read.zero_point
        expected = (0 if unsigned else -128) if pixels else read.zero_point + 128 * unsigned
        require(same, MismatchError("its zero point", zero, expected))
        weights = layers.constant(operation, 1).astype(np.int64)
        weights = weights - _of_filters(_zeros(layers, operation, 3), weights, kind)
        scale = np.float32(1 / read.scale)
        name = steps.constant((weights * np.float64(scale)).astype(np.float32))
        steps.layers = replace(steps.layers, scales={**steps.layers.scales, name: np.array([scale], np.float32)})
        steps.put(kind, [integers, name], operation.outputs[0], attributes=operation.attributes)
        return steps.layers

    return build


def _zeros(layers: Layers, operation: OnnxOperation, position: int) -> Array:
    """Return the zero points of an operator's input ``position``, int64, one or several; 0 if they are left out."""
    if layers.optional(operation, position) is None:
        return np.zeros(1, np.int64)
    return layers.constant(operation, position).astype(np.int64).ravel()


def _of_filters(zeros: Array, weights: Array, kind: str) -> Array:
    """Return the weights' zero points reshaped to broadcast to the weights: one for all, or one per filter.

    The filters are the first dimension of a Conv, and the last dimension of a matrix.
    """
    axis = 0 if kind == "Conv" else weights.ndim - 1
    fits = zeros.size in (1, weights.shape[axis] if weights.ndim else 0)
    required = "one value, or one for each filter"
    require(fits, ShapeError("the zero point of weights", f"{zeros.size} values", required))
    return zeros.reshape([-1 if side == axis else 1 for side in range(weights.ndim)])


def _unsigned(layers: Layers, operation: OnnxOperation, position: int) -> bool:
    value = layers.optional(operation, position)
    return not isinstance(value, np.ndarray) or value.dtype.kind == "u"


INTEGERS: dict[str, Callable[[Layers, OnnxOperation], Layers]] = {
    "QLinearConv": convolution,
    "QLinearMatMul": matrix,
    "ConvInteger": sums("Conv"),
    "MatMulInteger": sums("MatMul"),
    f"{MICROSOFT}QGemm": gemm,
    f"{MICROSOFT}QLinearAdd": qlinear_binary("Add"),
    f"{MICROSOFT}QLinearMul": qlinear_binary("Mul"),
    f"{MICROSOFT}QLinearConcat": concat,
    f"{MICROSOFT}QLinearAveragePool": qlinear_unary("AveragePool"),
    f"{MICROSOFT}QLinearGlobalAveragePool": qlinear_unary("GlobalAveragePool"),
    f"{MICROSOFT}QLinearLeakyRelu": qlinear_unary("LeakyRelu"),
    f"{MICROSOFT}QLinearSigmoid": qlinear_unary("Sigmoid"),
    f"{MICROSOFT}QLinearSoftmax": softmax,
}
"""The builders by kind, with the domain before the name unless it is ONNX's own."""
