"""Writes a quantised network as QONNX or FINN-ONNX: Conv, MatMul and pools on floats that are multiples of a scale.

qonnx    A Quant follows each layer, and the scale of the weights includes the requantiser. hls4ml reads this dialect.
         Executed in floats, a value near a half may differ by a step.

finn     A MultiThreshold follows each layer of at most 8 bits. Executed, every integer is equal.

This project reads both again with equal integers (cnn.onnx.quantised.stated).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import ChoiceError, SystolicError
from cnn.activations import LEAKY_SLOPE
from cnn.datatype import BIPOLAR, TERNARY, DataType, TensorType
from cnn.maps import IntArray, Padding
from cnn.onnx.file import load_onnx
from cnn.onnx.graph import RefusedError, named
from cnn.onnx.heads import named_heads, with_metadata
from cnn.onnx.quantised.stated import attributes_of
from cnn.ops import (
    Concat,
    Custom,
    DepthToSpace,
    Detection,
    MaxPool,
    Output,
    Pad,
    QActivate,
    QAdd,
    QAveragePool,
    QConvolution,
    QDense,
    QInput,
    QMultiply,
    QSoftmax,
    Reorg,
    Slice,
    Softmax,
    TopK,
    Upsample,
    assert_never,
)
from cnn.quantisation.thresholds import thresholds_of
from cnn.quantized import QNode, QuantizedNetwork
from cnn.requantise import THRESHOLD_BITS, MultiplyShift, Requantising, Thresholds
from cnn.tables import all_values

# An ONNX file of a quantised network while it is being written.

DOMAIN = "qonnx.custom_op.general"
"""The domain of Quant, BipolarQuant and MultiThreshold."""

LABELS = "_labels"
"""The end of the names of tensors that hold labels, which are integers and not floats."""


def kind_of(name: str) -> int:
    """Return the ONNX element type of a tensor, by its name: INT64 for labels, FLOAT for all others."""
    return int(load_onnx().TensorProto.INT64 if name.endswith(LABELS) else load_onnx().TensorProto.FLOAT)


@dataclass(eq=False)
class FileWriter:
    """An ONNX graph under construction, to which the layers of an integer network are written.

    Attributes:
        network: The quantised network.
        dialect: One of DIALECTS.
        nodes: The operators so far.
        arrays: The initialisers so far.
        names: The name of each network node's output tensor, which holds floats.
    """

    network: QuantizedNetwork
    dialect: str
    nodes: list[Any] = field(default_factory=list)
    arrays: list[Any] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def constant(self, values: Any, kind: npt.DTypeLike = np.float32) -> str:
        """Add a constant array (initialiser) to the ONNX graph and return its name."""
        name = f"constant{len(self.arrays)}"
        self.arrays.append(load_onnx().numpy_helper.from_array(np.array(values, kind), name))
        return name

    def put(self, kind: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Add an operator to the ONNX graph and return the name of its output."""
        name = f"{kind.lower()}{len(self.nodes)}"
        made = load_onnx().helper.make_node(kind, list(inputs), [name], name=f"{kind}_{name}", **attributes)
        self.nodes.append(made)
        return name

    def quant(self, source: str, type_: TensorType, **attributes: Any) -> str:
        """Add a Quant operator that quantises the tensor ``source`` to a type, and return its output's name."""
        narrow = int(type_.datatype == TERNARY)
        return self.rounded(source, type_.datatype, type_.scale, zero=type_.zero_point, narrow=narrow, **attributes)

    def rounded(self, source: str, datatype: DataType, scale: Any, zero: int = 0, **attributes: Any) -> str:
        """Add a Quant or BipolarQuant of the given datatype and scale, and return the name of its output."""
        size = self.constant(scale)
        if datatype == BIPOLAR:
            return self.put("BipolarQuant", [source, size], domain=DOMAIN)
        inputs = [source, size, self.constant(zero), self.constant(datatype.bits)]
        attributes = {"signed": int(datatype.signed), "rounding_mode": "ROUND", **attributes}
        return self.put("Quant", inputs, domain=DOMAIN, **attributes)


# Operations that move values, as ONNX operators. Each function returns the name of the output.


def pool(writer: FileWriter, op: MaxPool, inputs: Sequence[str]) -> str:
    """Write a max pool layer as an ONNX MaxPool and return the name of its output."""
    sides = {"kernel_shape": list(op.window), "strides": [op.stride] * 2}
    return writer.put("MaxPool", inputs, pads=pads(op.padding), **sides)


def sliced(writer: FileWriter, op: Slice, inputs: Sequence[str]) -> str:
    """Write a slice of channels as an ONNX Slice and return the name of its output."""
    ends = ([op.first], [op.first + op.channels], [1])
    return writer.put("Slice", [inputs[0], *(writer.constant(values, np.int64) for values in ends)])


def reorg(writer: FileWriter, node: QNode, op: Reorg, inputs: Sequence[str]) -> str:
    """Write a space-to-depth layer as an ONNX SpaceToDepth, or in darknet's order as Reshapes and a Transpose."""
    if op.order == "block":
        return writer.put("SpaceToDepth", inputs, blocksize=op.stride)
    before, s = writer.network.nodes[node.inputs[0]].shape, op.stride
    return _moved(writer, node, inputs[0], (before.channels // s**2, before.height, s, before.width, s))


def padded(writer: FileWriter, op: Pad, inputs: Sequence[str]) -> str:
    """Write a padding layer that repeats the map's values as an ONNX Pad."""
    top, left, bottom, right = pads(op.padding)
    sides = writer.constant([0, 0, top, left, 0, 0, bottom, right], np.int64)
    return writer.put("Pad", [*inputs, sides], mode=op.mode)


def depth_to_space(writer: FileWriter, node: QNode, op: DepthToSpace, inputs: Sequence[str]) -> str:
    """Write a depth-to-space layer as an ONNX DepthToSpace, or as Reshapes and a Transpose if blocks are not square."""
    if op.rows == op.columns:
        return writer.put("DepthToSpace", inputs, blocksize=op.rows)
    before = writer.network.nodes[node.inputs[0]].shape
    parts = op.rows, op.columns, node.shape.channels, before.height, before.width
    return _moved(writer, node, inputs[0], parts, (2, 3, 0, 4, 1))


def _moved(
    writer: FileWriter, node: QNode, source: str, parts: Sequence[int], order: Sequence[int] = (2, 4, 0, 1, 3)
) -> str:
    """Write a Reshape to ``parts``, a Transpose and a Reshape to the node's shape; return the name of the output."""
    split = writer.put("Reshape", [source, writer.constant([1, *parts], np.int64)])
    turned = writer.put("Transpose", [split], perm=[0, *(1 + i for i in order)])
    sides = [1, node.shape.channels, node.shape.height, node.shape.width]
    return writer.put("Reshape", [turned, writer.constant(sides, np.int64)])


def upsample(writer: FileWriter, op: Upsample, inputs: Sequence[str]) -> str:
    """Write an upsampling layer as an ONNX Resize in mode nearest."""
    scales = writer.constant([1, 1, op.stride, op.columns])
    mode = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return writer.put("Resize", [inputs[0], "", scales], mode="nearest", **mode)


def pads(padding: Padding) -> list[int]:
    """Return the padding in ONNX's order: top, left, bottom, right."""
    return [padding.top, padding.left, padding.bottom, padding.right]


DIALECTS = ("qonnx", "finn")
OPSET, IR = 13, 8

Doubles = npt.NDArray[np.float64]


def to_onnx(network: QuantizedNetwork, dialect: str = "qonnx") -> bytes:
    """Return an integer network as the bytes of an ONNX file, in the dialect "qonnx" or "finn".

    Its input "picture" is 1 × channels × height × width floats of 0 to 1, and its outputs are floats. The inputs of a
    detection head are outputs, and the metadata describes the head if a file of heads can describe it.

    Args:
        network: The network.
        dialect: One of DIALECTS.

    Raises:
        ChoiceError: There is no such dialect.
        UnsupportedError: The dialect cannot express a layer.
    """
    if dialect not in DIALECTS:
        raise ChoiceError("the dialect", dialect, DIALECTS)
    onnx, writer = load_onnx(), FileWriter(network, dialect)
    for node in network.nodes:
        try:
            writer.names.append(_written(writer, node))
        except SystolicError as error:  # an error about any value of the layer
            raise named(error, f"the export of {node.name!r} ({node.source}) as {dialect}") from error
    shape = network.input_shape
    picture = (1, shape.channels, shape.height, shape.width)
    graph = onnx.helper.make_graph(
        writer.nodes,
        network.name,
        [onnx.helper.make_tensor_value_info("picture", onnx.TensorProto.FLOAT, picture)],
        [onnx.helper.make_tensor_value_info(name, kind_of(name), None) for name in _ends(writer)],
        writer.arrays,
    )
    opsets = [onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid(DOMAIN, 1)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=IR, producer_name="systolic")
    return with_metadata(model, named_heads(network.nodes, writer.names))


def _ends(writer: FileWriter) -> list[str]:
    """Return the names of the graph's output tensors: those that no layer reads, or that detection heads read."""
    nodes = writer.network.nodes
    read = {i for node in nodes for i in node.inputs}
    last = [i for i in range(len(nodes)) if i not in read]
    ends = [i for index in last for i in (nodes[index].inputs if isinstance(nodes[index].op, Detection) else (index,))]
    return list(dict.fromkeys(writer.names[i] for i in ends))


def _written(writer: FileWriter, node: QNode) -> str:
    """Write one layer of the integer network as ONNX operators, and return the name of their output."""
    inputs = [writer.names[i] for i in node.inputs]
    match node.op:
        case QInput():
            return _pixels(writer, node.type)
        case QConvolution() | QDense() as op:
            return _weighted(writer, node, op, inputs)
        case QAveragePool() as op:
            return _average(writer, node, op, inputs)
        case QAdd() as op:
            return _add(writer, node, op, inputs)
        case QMultiply() as op:
            return _multiply(writer, node, op, inputs)
        case QActivate() as op:
            return _looked_up(writer, node, op, inputs)
        case MaxPool() as op:
            return pool(writer, op, inputs)
        case Concat():
            return writer.put("Concat", inputs, axis=1)
        case Slice() as op:
            return sliced(writer, op, inputs)
        case Reorg() as op:
            return reorg(writer, node, op, inputs)
        case DepthToSpace() as op:
            return depth_to_space(writer, node, op, inputs)
        case Pad() as op:
            return padded(writer, op, inputs)
        case Upsample() as op:
            return upsample(writer, op, inputs)
        case Custom() as op:
            raise RefusedError(f"{op.layer} is a layer of another package, which has no operator here")
        case Softmax() as op:
            return _softmax(writer, node, op, inputs)
        case QSoftmax() as op:
            return _integer_softmax(writer, op, inputs)
        case TopK() as op:
            return _top_k(writer, op, inputs)
        case Output() | Detection():
            return inputs[0]
    assert_never(node.op)


def _pixels(writer: FileWriter, type_: TensorType) -> str:
    """Write a Quant of the input image that keeps each pixel's integer, and an Add for its zero point."""
    pixels = writer.quant("picture", replace(type_, zero_point=0))
    offset = -type_.zero_point * type_.scale
    return writer.put("Add", [pixels, writer.constant(offset)]) if offset else pixels


def _weighted(writer: FileWriter, node: QNode, op: QConvolution | QDense, inputs: Sequence[str]) -> str:
    source = writer.network.nodes[node.inputs[0]].type
    weights, by = op.weights.astype(np.int64), op.requantiser
    if _has_thresholds(writer, node):
        steps = thresholds_of(by, node.type.datatype)
        weights = np.where(_column(steps.flip, weights), -weights, weights)
        sums = _sums(writer, op, inputs[0], weights, 1.0)
        edges = steps.thresholds - 0.5 - source.zero_point * _totals(weights)[:, None]
        return _shaped(writer, node, _counted(writer, node, sums, edges * source.scale))
    gain, offset, activation = _affine(by)
    weights = weights * _column(np.sign(gain).astype(np.int64), weights)
    scale = np.where(gain == 0, 1.0, np.abs(gain)) * node.type.scale / source.scale
    # acc · gain = (real sum / source scale + zero point · Σ w) · gain, in steps of the output
    bias = (offset + source.zero_point * _totals(weights) * np.abs(gain) - node.type.zero_point) * node.type.scale
    sums = _sums(writer, op, inputs[0], weights, scale, bias)
    return _shaped(writer, node, _rounded(writer, node, _activated(writer, sums, activation)))


def _sums(
    writer: FileWriter,
    op: QConvolution | QDense,
    source: str,
    weights: IntArray,
    scale: Any,
    bias: Doubles | None = None,
) -> str:
    """Write a convolution or dense layer as a Conv or MatMul with quantised weights, and return its output's name.

    Args:
        weights: The integer weights.
        scale: The scale of the weights, one number or one per filter.
        bias: The bias in floats; None writes none.
    """
    sizes = np.broadcast_to(np.asarray(scale, np.float64), (len(weights),)) if np.size(scale) > 1 else np.array(scale)
    column = sizes.reshape(-1, *(1,) * (weights.ndim - 1)) if sizes.size > 1 else sizes
    values, size = weights * column, column
    if isinstance(op, QDense):
        values, size = values.T, size.T
    datatype = _least(weights, op.weight_type)
    kernel = writer.rounded(writer.constant(values), datatype, size, narrow=1)
    if isinstance(op, QDense):
        sums = writer.put("MatMul", [writer.put("Flatten", [source]), kernel])
        return sums if bias is None else writer.put("Add", [sums, writer.constant(bias)])
    inputs = [source, kernel, *([] if bias is None else [writer.constant(bias)])]
    slide: dict[str, Any] = {"kernel_shape": list(weights.shape[2:]), "strides": [op.stride] * 2}
    if op.dilation != (1, 1):
        slide["dilations"] = list(op.dilation)
    return writer.put("Conv", inputs, **slide, pads=pads(op.padding), group=op.groups)


def _least(weights: IntArray, datatype: DataType) -> DataType:
    """Return the datatype of weights for the file: TERNARY if BIPOLAR weights include a 0, else ``datatype``."""
    return TERNARY if datatype == BIPOLAR and not weights.all() else datatype


def _affine(by: Requantising) -> tuple[Doubles, Doubles, str]:
    """Return gain and offset of a requantiser, y = round(gain · acc + offset), and its activation's ONNX name or ""."""
    assert not isinstance(by, Thresholds)
    gain: Doubles = np.ldexp(by.multiplier.astype(np.float64), -by.shift.astype(np.int32))
    if isinstance(by, MultiplyShift):
        return gain, np.ldexp(by.bias.astype(np.float64), -by.shift.astype(np.int32)), ""
    offset: Doubles = by.bias * gain
    if np.array_equal(by.negative, by.multiplier):
        return gain, offset, ""
    if not by.negative.any():
        return gain, offset, "Relu"
    if np.abs(by.negative - LEAKY_SLOPE * by.multiplier).max() <= 1:
        return gain, offset, "LeakyRelu"
    raise RefusedError("ONNX has no activation with its multipliers for sums below 0")


def _activated(writer: FileWriter, source: str, activation: str) -> str:
    if not activation:
        return source
    return writer.put(activation, [source], **({"alpha": LEAKY_SLOPE} if activation == "LeakyRelu" else {}))


def _has_thresholds(writer: FileWriter, node: QNode) -> bool:
    """Return whether a node's output is written as a MultiThreshold instead of a Quant."""
    few = writer.dialect == "finn" and node.type.datatype.bits <= THRESHOLD_BITS
    return few or isinstance(node.requantiser, Thresholds)


def _counted(writer: FileWriter, node: QNode, source: str, edges: npt.NDArray[np.floating[Any]]) -> str:
    """Write a MultiThreshold for a node's output. Thresholds are half a sum lower, so that float rounding has no
    effect."""
    datatype, type_ = node.type.datatype, node.type
    return writer.put(
        "MultiThreshold",
        [source, writer.constant(edges)],
        domain=DOMAIN,
        out_dtype=datatype.name,
        out_scale=float(type_.scale * datatype.step),
        out_bias=float((datatype.low - type_.zero_point) * type_.scale),
        **attributes_of(writer.network, node),
    )


def _rounded(writer: FileWriter, node: QNode, source: str) -> str:
    """Write a Quant to the type of a node's output, and return its output's name."""
    return writer.quant(source, node.type, **attributes_of(writer.network, node))


def _requantised(writer: FileWriter, node: QNode, by: Requantising, source: str, per_sum: float, zero: int) -> str:
    """Write the requantisation of an average pool, addition or product as a MultiThreshold or Quant.

    Args:
        per_sum: The real value of a sum of 1.
        zero: The sum that represents 0.
    """
    if _has_thresholds(writer, node):
        steps = thresholds_of(by, node.type.datatype)
        if steps.flip.any():
            raise RefusedError("its output falls as the sum rises")
        return _counted(writer, node, source, (steps.thresholds - 0.5 - zero) * per_sum)
    return _rounded(writer, node, _activated(writer, source, _affine(by)[2]))


def _average(writer: FileWriter, node: QNode, op: QAveragePool, inputs: Sequence[str]) -> str:
    source = writer.network.nodes[node.inputs[0]]
    count = source.shape.height * source.shape.width
    mean = writer.put("GlobalAveragePool", inputs)
    return _requantised(writer, node, op.requantiser, mean, source.type.scale / count, count * source.type.zero_point)


def _add(writer: FileWriter, node: QNode, op: QAdd, inputs: Sequence[str]) -> str:
    types = [writer.network.nodes[i].type for i in node.inputs]
    if _has_thresholds(writer, node):  # then the file multiplies each map by its integer multiplier
        factors = [writer.constant(m / type_.scale) for m, type_ in zip(op.multipliers, types, strict=True)]
        inputs = [writer.put("Mul", pair) for pair in zip(inputs, factors, strict=True)]
    total = inputs[0]
    for name in inputs[1:]:
        total = writer.put("Add", [total, name])
    zero = sum(m * type_.zero_point for m, type_ in zip(op.multipliers, types, strict=True))
    return _requantised(writer, node, op.requantiser, total, 1.0, zero)


def _multiply(writer: FileWriter, node: QNode, op: QMultiply, inputs: Sequence[str]) -> str:
    first, second = (writer.network.nodes[i].type.scale for i in node.inputs)
    return _requantised(writer, node, op.requantiser, writer.put("Mul", inputs), first * second, 0)


def _looked_up(writer: FileWriter, node: QNode, op: QActivate, inputs: Sequence[str]) -> str:
    """Write a lookup-table layer as a Gather from a constant, followed by a Quant that states the output's type."""
    read = writer.network.nodes[node.inputs[0]].type
    steps = writer.put("Div", [inputs[0], writer.constant(read.scale)])
    # The half is needed because the cast to integers truncates.
    places = writer.put("Add", [steps, writer.constant(read.zero_point - read.datatype.low + 0.5)])
    cast = writer.put("Cast", [places], to=load_onnx().TensorProto.INT64)
    values = (all_values(op.table, read.datatype) - node.type.zero_point) * node.type.scale
    return writer.quant(writer.put("Gather", [writer.constant(values), cast]), node.type)


def _softmax(writer: FileWriter, node: QNode, op: Softmax, inputs: Sequence[str]) -> str:
    if op.groups > 1 or (node.shape.height * node.shape.width > 1 and not op.each):
        raise RefusedError("its softmax is over parts of the channels, or over several positions")
    return writer.put("LogSoftmax" if op.logarithm else "Softmax", inputs, axis=1)


def _integer_softmax(writer: FileWriter, op: QSoftmax, inputs: Sequence[str]) -> str:
    """Write an integer softmax as a float Softmax, whose probabilities differ only by rounding."""
    if op.method != "stable":
        raise RefusedError(f"a softmax by the method {op.method!r} has no operator, only one by 'stable'")
    return writer.put("Softmax", inputs, axis=1)


def _top_k(writer: FileWriter, op: TopK, inputs: Sequence[str]) -> str:
    values = writer.put("TopK", [inputs[0], writer.constant([op.k], np.int64)], axis=1)
    writer.nodes[-1].output.append(values + LABELS)
    return values + LABELS * op.labels


def _shaped(writer: FileWriter, node: QNode, name: str) -> str:
    """Write a Reshape of a dense layer's output, a row of values, to a map of one position; return the name."""
    if not isinstance(node.op, QDense):
        return name
    return writer.put("Reshape", [name, writer.constant([1, node.shape.channels, 1, 1], np.int64)])


def _column(values: npt.NDArray[Any], like: IntArray) -> npt.NDArray[Any]:
    return values.reshape(-1, *(1,) * (like.ndim - 1))


def _totals(weights: IntArray) -> IntArray:
    totals: IntArray = weights.reshape(len(weights), -1).sum(axis=1)
    return totals
