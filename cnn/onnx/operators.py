"""The table of one function per ONNX operator, and the functions for Conv, Gemm, MatMul and Softmax.

Each function takes the network read so far and the next operation, and returns the network with that operation in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from boards.errors import InvalidValueError, ShapeError
from cnn.maps import Shape
from cnn.onnx import arithmetic, pools, reductions, shapes
from cnn.onnx.activations import ACTIVATIONS, LOOK_UP, activation, looked_up
from cnn.onnx.arithmetic import broadcast, floats
from cnn.onnx.graph import OnnxOperation, RefusedError, require
from cnn.onnx.layers import NO_PADDING, Layers, Map
from cnn.onnx.pads import padded
from cnn.onnx.quantised.cast import cast
from cnn.onnx.quantised.linear import dequantise, quantise
from cnn.onnx.reordering import place, slices, transposed
from cnn.onnx.resizing import resize
from cnn.onnx.selection import arg_max, top_k
from cnn.onnx.sliding import (
    Window,
    check_pair,
    check_sides,
    check_size,
    check_window,
    convolved,
    inside_map,
    planar,
    slide_of,
)
from cnn.onnx.transposed import transposed_convolution
from cnn.ops import Convolution, Dense, Softmax

LAST_AXIS_OPSET = 13
"""The first opset in which Softmax is over one axis, by default the last.

Before that, it is over all sides from its axis on, by default from side 1."""

Builder: TypeAlias = Callable[[Layers, OnnxOperation], Layers]


def convolution(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX Conv: append a convolution, whose padding includes the zeros of a Pad before it."""
    source = layers.padded(operation)
    channels = layers.shape_of(replace(source, padding=NO_PADDING)).channels
    weights = floats(layers.constant(operation, 1))
    rank = len(source.shape)
    fits = rank == weights.ndim >= 3
    require(fits, ShapeError("weights", weights.shape, f"{max(3, rank)} sides, the same number as its input"))
    operation = planar(operation, source)
    weights = weights.reshape(*weights.shape[:2], 1, -1) if rank == 3 else weights
    filters, each, *window = weights.shape
    groups = operation.integer("group", 1)
    fits = groups >= 1 and filters % groups == 0 and each * groups == channels
    required = f"{channels} channels in {groups} groups, and filters that are a multiple of the groups"
    require(fits and min(weights.shape) >= 1, ShapeError("weights", (filters, each, *window), required))
    check_window(operation, window)
    dilations = operation.integers("dilations", (1, 1))
    check_pair("dilations", dilations)
    check_size(window)
    reach = [(side - 1) * step + 1 for side, step in zip(window, dilations, strict=True)]
    slide = slide_of(layers, operation, source, reach)
    weights, slide = inside_map(weights, dilations, slide)
    check_sides(slide.window)
    rows, columns = weights.shape[2:]
    dilation = (dilations[0] if rows > 1 else 1, dilations[1] if columns > 1 else 1)
    bias = floats(layers.constant(operation, 2)) if layers.optional(operation, 2) is not None else np.zeros(filters)
    require(bias.shape == (filters,), ShapeError("bias", bias.shape, (filters,)))
    op = Convolution(weights, floats(bias), None, 1, NO_PADDING, groups, "linear", dilation=dilation)
    return convolved(layers, operation, source.node, Window(op, slide))


def dense(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX Gemm or MatMul: append a dense layer that multiplies a row of values by a constant matrix."""
    source = layers.map(operation)
    values = layers.nodes[source.node].shape.values
    matrix, bias = floats(layers.constant(operation, 1)), np.zeros(1, np.float32)
    require(matrix.ndim == 2, ShapeError("the matrix", matrix.shape, "two sides"))
    if operation.kind == "Gemm":
        transposes = operation.integer("transA", 0)
        require(not transposes, InvalidValueError("transA", transposes, "0, because the map cannot be transposed"))
        matrix = matrix.T if operation.integer("transB", 0) else matrix
        matrix = matrix * np.float32(operation.number("alpha", 1.0))
        if layers.optional(operation, 2) is not None:
            bias = floats(layers.constant(operation, 2)) * np.float32(operation.number("beta", 1.0))
    inputs, outputs = matrix.shape
    fits = source.shape == (1, inputs) and inputs == values
    require(fits, ShapeError("its input", source.shape, f"one row of {inputs} values, the rows of the matrix"))
    op = Dense(np.ascontiguousarray(matrix.T), broadcast(bias, outputs), None, "linear")
    larger = layers.with_node(operation, "dense", op, Shape(outputs, 1, 1), source.node)
    return larger.with_values(operation, Map(len(layers.nodes), (1, outputs)))


def softmax(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX Softmax or LogSoftmax: append a softmax over the channels of each position."""
    source = layers.map(operation)
    check_softmax(layers, operation, source.shape, 1)
    return softmax_of(layers, operation, source)


def check_softmax(layers: Layers, operation: OnnxOperation, sides: Sequence[int], channels: int) -> None:
    """Raise InvalidValueError if the axis of a Softmax or LogSoftmax is not the channels alone.

    Args:
        layers: The network read so far.
        operation: The Softmax or LogSoftmax.
        sides: The shape of its input.
        channels: The place of the channels in this shape.
    """
    later, rank = layers.opset >= LAST_AXIS_OPSET, len(sides)
    axis = operation.integer("axis", -1 if later else 1)
    first = axis + rank if axis < 0 else axis
    over = {first} if later else {side for side in range(rank) if side >= first and sides[side] > 1} | {channels}
    shapes.check_batch(layers, first != 0)
    required = f"the channels alone, for an input of shape {tuple(sides)} in opset {layers.opset}"
    require(0 <= first <= channels and over == {channels}, InvalidValueError("its axis", axis, required))


def softmax_of(layers: Layers, operation: OnnxOperation, source: Map) -> Layers:
    """Append a softmax over the channels of the tensor ``source``, which are its side 1."""
    shape = layers.positions_of(source)
    op = Softmax(each=shape.height * shape.width > 1, logarithm=operation.kind == "LogSoftmax")
    larger = layers.with_node(operation, "softmax", op, shape, source.node)
    return larger.with_values(operation, Map(len(layers.nodes), source.shape))


_OF_EACH_PICTURE = "it divides by statistics of each image, which no layer does; use a BatchNormalization"
_OF_STEPS = "it keeps a state from step to step, which no layer does; use a convolution along the steps"
_OF_BRANCHES = "its computation is known only at run time; export the graph without it"

_OF_RUN_TIME = (
    "it computes scales from each image at run time, which no layer does; quantise the model with "
    "onnxruntime.quantization.quantize_static and calibration images instead of quantize_dynamic"
)
_OF_VITIS = (
    "only Vitis AI's quantiser has this operator; quantise with vai_q_onnx and quant_format=QuantFormat.QDQ, "
    "activation_type=QuantType.QInt8, which writes QuantizeLinear and DequantizeLinear"
)
_OF_QUARK = (
    "only AMD Quark's quantiser has this operator; quantise with a configuration for 8-bit integers (such as XINT8), "
    "which writes QuantizeLinear and DequantizeLinear"
)

WRITTEN_OUT = " by its parts"
"""The suffix of the kind of an operation that replaces several operations of the file (cnn.onnx.patterns)."""

OF_DOMAINS: Mapping[str, str] = {
    "com.vai.quantize.": _OF_VITIS,
    "com.amd.quark.": _OF_QUARK,
}
"""Why operators in the domains of other tools do not become layers, and what to use instead, by domain."""

INSTEAD: Mapping[str, str] = {
    **dict.fromkeys(("DynamicQuantizeLinear", "com.microsoft.DynamicQuantizeMatMul"), _OF_RUN_TIME),
    **dict.fromkeys(("com.microsoft.DynamicQuantizeLSTM", "com.microsoft.MatMulIntegerToFloat"), _OF_RUN_TIME),
    **dict.fromkeys((f"{kind}{WRITTEN_OUT}" for kind in ("LayerNormalization", "RMSNormalization")), _OF_EACH_PICTURE),
    **dict.fromkeys(("com.microsoft.SkipLayerNormalization", "SimplifiedLayerNormalization"), _OF_EACH_PICTURE),
    **dict.fromkeys(("GroupNormalization", "InstanceNormalization", "LayerNormalization", "LRN"), _OF_EACH_PICTURE),
    **dict.fromkeys(("LpNormalization", "MeanVarianceNormalization", "RMSNormalization"), _OF_EACH_PICTURE),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), _OF_STEPS),
    **dict.fromkeys(("If", "Loop", "Scan"), _OF_BRANCHES),
    "NonMaxSuppression": "the host selects the boxes; cut the network before them (docs/reference/onnx.md, heads)",
}
"""Why operators that are often exported do not become layers, and what to use instead, by kind."""


UNKNOWN = "it is not one of the operators that become layers (docs/reference/onnx.md)"


def unknown(kind: str) -> RefusedError:
    """Return the error for an ONNX operator that cannot become a layer, with what to use instead if that is known."""
    of_domain = next((reason for domain, reason in OF_DOMAINS.items() if kind.startswith(domain)), UNKNOWN)
    return RefusedError(INSTEAD.get(kind, of_domain))


BUILDERS: dict[str, Builder] = {
    **dict.fromkeys(ACTIVATIONS, activation),
    "Add": arithmetic.arithmetic,
    "ArgMax": arg_max,
    "AveragePool": pools.average_pool,
    "BatchNormalization": arithmetic.batch_norm,
    "Cast": cast,
    "Concat": shapes.concat,
    "Conv": convolution,
    "ConvTranspose": transposed_convolution,
    "DepthToSpace": shapes.depth_to_space,
    "DequantizeLinear": dequantise,
    "Div": arithmetic.arithmetic,
    "Dropout": shapes.renamed,
    "Flatten": shapes.viewed,
    "Gather": place,
    "Gemm": dense,
    "GlobalAveragePool": pools.global_average,
    "GlobalMaxPool": pools.global_max,
    "Identity": shapes.renamed,
    "LogSoftmax": softmax,
    LOOK_UP: looked_up,
    "MatMul": dense,
    "Max": arithmetic.extreme,
    "MaxPool": pools.max_pool,
    "Min": arithmetic.extreme,
    "Mul": arithmetic.arithmetic,
    "Neg": arithmetic.negated,
    "PRelu": arithmetic.sloped,
    "Pad": padded,
    "QuantizeLinear": quantise,
    "ReduceMax": reductions.greatest,
    "ReduceMean": reductions.mean,
    "ReduceSum": reductions.mean,
    "Reshape": shapes.viewed,
    "Resize": resize,
    "Slice": slices,
    "Softmax": softmax,
    "SpaceToDepth": shapes.space_to_depth,
    "Split": shapes.split,
    "Squeeze": shapes.viewed,
    "Sub": arithmetic.arithmetic,
    "Sum": arithmetic.total,
    "TopK": top_k,
    "Transpose": transposed,
    "Unsqueeze": shapes.viewed,
    "Upsample": resize,
}
