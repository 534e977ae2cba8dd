# ruff: noqa: E501 (an operator and its error stay on one line)
"""Forms of each operator: those that become layers, and those that are refused with their errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from boards.errors import (
    ChoiceError,
    InvalidValueError,
    MissingValueError,
    RangeError,
    ShapeError,
    SystolicError,
    UnsupportedError,
)
from tests.support.onnx.networks import RANDOM, convolved
from tests.support.onnx.writer import Writer

Graph = Callable[[Writer], str]
"""A graph appends its operators to a writer and returns the name of its output."""
HEIGHT, WIDTH = 11, 14
"""The rows and columns of the image. A 3×3 convolution without padding has 9×12 outputs."""


def after_convolution(
    kind: str, *constants: Any, channels: int = 4, opset: int = 17, **attributes: Any
) -> tuple[int, Graph]:
    """Return the operator after a convolution, with constants as further inputs: lists are int64, None is left out."""

    def graph(writer: Writer) -> str:
        return writer.put(kind, [convolved(writer, "picture", 3, channels), *_arrays(writer, constants)], **attributes)

    return opset, graph


def of_picture(kind: str, *constants: Any, opset: int = 17, **attributes: Any) -> tuple[int, Graph]:
    """Return the operator on the image, followed by a convolution."""
    return opset, lambda writer: ended(writer, writer.put(kind, ["picture", *_arrays(writer, constants)], **attributes))


def of_values(kind: str, *constants: Any, opset: int = 17, **attributes: Any) -> tuple[int, Graph]:
    """Return the operator after an average of four channels."""

    def graph(writer: Writer) -> str:
        source = writer.put("GlobalAveragePool", [convolved(writer, "picture", 3, 4)])
        return writer.put(kind, [source, *_arrays(writer, constants)], **attributes)

    return opset, graph


def of_row(kind: str, *constants: Any, opset: int = 17, **attributes: Any) -> tuple[int, Graph]:
    """Return the operator after four values in a row."""

    def graph(writer: Writer) -> str:
        source = writer.put("Flatten", [writer.put("GlobalAveragePool", [convolved(writer, "picture", 3, 4)])])
        return writer.put(kind, [source, *_arrays(writer, constants)], **attributes)

    return opset, graph


def _arrays(writer: Writer, constants: Sequence[Any]) -> list[str]:
    """Append initialisers: lists are int64, arrays are float32, and None is left out."""
    return [
        "" if array is None else writer.constant(array, np.int64 if isinstance(array, list) else np.float32)
        for array in constants
    ]


def ended(writer: Writer, source: str) -> str:
    """Append a convolution of 1 × 1 from three channels to two, and return its output."""
    weights = writer.constant(RANDOM.normal(size=(2, 3, 1, 1)))
    return writer.put("Conv", [source, weights])


def window(*sides: int, channels: int = 3, filters: int = 4) -> Any:
    """Return random weights of a convolution, the same for each shape."""
    return np.random.default_rng(7).normal(0, 0.3, (filters, channels, *sides))


def _of_two(kind: str, **attributes: Any) -> tuple[int, Graph]:
    def graph(writer: Writer) -> str:
        return writer.put(kind, [convolved(writer, "picture", 3, 4), convolved(writer, "picture", 3, 4)], **attributes)

    return 17, graph


def _split(
    sizes: Sequence[int] | None, outputs: int, opset: int = 17, channels: int = 5, **attributes: Any
) -> tuple[int, Graph]:
    """Return a Relu of the second-last part of a Split of a convolution's channels. The other parts are not read."""

    def graph(writer: Writer) -> str:
        source = convolved(writer, "picture", 3, channels)
        first = writer.put(
            "Split", [source, *([] if sizes is None else _arrays(writer, [list(sizes)]))], outputs, **attributes
        )
        return writer.put("Relu", [first + "_" * (outputs - 2)])

    return opset, graph


def constant_and_map(kind: str, constant: Any) -> tuple[int, Graph]:
    """Return the operator of a constant and a map."""
    return 17, lambda writer: writer.put(kind, [*_arrays(writer, [constant]), convolved(writer, "picture", 3, 4)])


def _padded(writer: Writer, kind: str, **attributes: Any) -> str:
    """Append the operator, or nothing, to a map that is padded with zeros."""
    first = writer.put("Relu", [convolved(writer, "picture", 3, 4)])  # onnxruntime pads pools with the least value
    around = writer.put("Pad", [first, writer.constant([0, 0, 1, 2, 0, 0, 2, 0], np.int64)])
    return writer.put(kind, [around], **attributes) if kind else around


def _conv_of_padded(writer: Writer) -> str:
    """Append a convolution whose auto_pad is computed from the padded sides."""
    around = _padded(writer, "")
    return writer.put(
        "Conv", [around, writer.constant(window(3, 2, channels=4))], auto_pad="SAME_UPPER", strides=[2, 2]
    )


def _as_it_is(writer: Writer) -> str:
    """Append a Reshape to the map's own Shape."""
    source = convolved(writer, "picture", 3, 4)
    return writer.put("Reshape", [source, writer.put("Shape", [source])])


def _two_matrices(writer: Writer) -> str:
    source = writer.put("Flatten", [writer.put("GlobalAveragePool", [convolved(writer, "picture", 3, 4)])])
    for sides in ((4, 6), (6, 5)):
        source = writer.put("MatMul", [source, writer.constant(RANDOM.normal(size=sides))])
    return source


MEANT: dict[str, tuple[int, Graph]] = {
    "Shape, all of it": (17, _as_it_is),
    "MatMul after_convolution MatMul": (17, _two_matrices),
    "Split, parts of two": _split(None, 4, opset=18, channels=8, axis=1, num_outputs=4),
    "Resize, one pixel of PyTorch": of_values(
        "Resize", None, np.array([1, 1, 1, 1]), coordinate_transformation_mode="pytorch_half_pixel"
    ),
    "Flatten": after_convolution("Flatten"),
    "Flatten 0": after_convolution("Flatten", axis=0),
    "Flatten -3": after_convolution("Flatten", axis=-3),
    "Reshape 1 -1": after_convolution("Reshape", [1, -1]),
    "Reshape 0 -1": after_convolution("Reshape", [0, -1]),
    "Reshape 0 0 -1": after_convolution("Reshape", [0, 0, -1]),
    "Reshape without an open side": after_convolution("Reshape", [1, 4, 108]),
    "Reshape, the batch open": after_convolution("Reshape", [-1, 4, 9, 12]),
    "Reshape, a side more": after_convolution("Reshape", [0, 0, 0, 4, 3]),
    "Squeeze 2 3": of_values("Squeeze", [2, 3]),
    "Squeeze -1": of_values("Squeeze", [-1]),
    "Unsqueeze 4": after_convolution("Unsqueeze", [4]),
    "Unsqueeze -1 1": after_convolution("Unsqueeze", [-1, 1]),
    "Unsqueeze, then in another order": (
        17,
        lambda writer: writer.put(
            "Transpose", [_values(writer, "Unsqueeze", [4])], perm=[0, 4, 1, 2, 3]
        ),
    ),
    "Unsqueeze, an attribute": after_convolution("Unsqueeze", axes=[4], opset=11),
    "Transpose of values": of_values("Transpose", perm=[0, 2, 3, 1]),
    "Transpose of values, backwards": of_values("Transpose", perm=[0, 3, 1, 2]),
    "Transpose in order": after_convolution("Transpose", perm=[0, 1, 2, 3]),
    "Transpose, all backwards": of_values("Transpose"),
    "Identity": after_convolution("Identity"),
    "Concat": _of_two("Concat", axis=1),
    "Concat -3": _of_two("Concat", axis=-3),
    "Concat of one": after_convolution("Concat", axis=1),
    "Slice": after_convolution("Slice", [1], [3], [1]),
    "Slice -3": after_convolution("Slice", [1], [3], [-3], [1]),
    "Slice from the end": after_convolution("Slice", [-3], [-1], [1]),
    "Slice far": after_convolution("Slice", [2], [1 << 40], [1]),
    "Slice of all sides": after_convolution("Slice", [0, 1, 0, 0], [1, 4, 9, 12]),
    "Slice of nothing": after_convolution("Slice", [0, 0], [4, 9], [1, 2], [1, 1]),
    "Slice, attributes": after_convolution("Slice", starts=[1], ends=[2], axes=[1], opset=9),
    "Gather in order": after_convolution("Gather", [1, 2], axis=1),
    "Gather in any order": after_convolution("Gather", [3, -4, 1, 1, 2], axis=1),
    "Split": _split((2, 2, 1), 3, axis=1),
    "Split -3": _split((1, 4), 2, axis=-3),
    "Split, of parts": _split(None, 2, opset=18, axis=1, num_outputs=2),
    "Split, the last part smaller": _split(None, 3, opset=18, axis=1, num_outputs=3),
    "Pad": of_picture("Pad", [0, 0, 1, 2, 0, 0, 3, 4]),
    "Pad, a value": of_picture("Pad", [0, 0, 1, 0, 0, 0, 0, 1], 0.0),
    "Pad, sides": of_picture("Pad", [2, 1, 0, 3], None, [3, 2], opset=18),
    "Pad, sides from the end": of_picture("Pad", [2, 3], None, [-1], opset=18),
    "SpaceToDepth": (17, lambda writer: writer.put("SpaceToDepth", [_even(writer)], blocksize=2)),
    "SpaceToDepth 3": after_convolution("SpaceToDepth", blocksize=3),
    "SpaceToDepth 1": after_convolution("SpaceToDepth", blocksize=1),
    "Resize": after_convolution("Resize", None, np.array([1, 1, 2, 2]), coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
    "Resize 3": after_convolution("Resize", None, np.array([1, 1, 3, 3]), coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
    "Resize, half pixels": after_convolution("Resize", None, np.array([1, 1, 2, 2])),
    "Resize, half pixels up": after_convolution("Resize", None, np.array([1, 1, 3, 3]), nearest_mode="round_prefer_ceil"),
    "Resize, half pixels of PyTorch": after_convolution(
        "Resize", None, np.array([1, 1, 2, 2]), coordinate_transformation_mode="pytorch_half_pixel"
    ),
    "Resize to the same": after_convolution("Resize", None, np.array([1, 1, 1, 1]), coordinate_transformation_mode="align_corners"),
    "Resize to a size": after_convolution("Resize", None, None, [1, 4, 18, 24]),
    "Upsample": after_convolution("Upsample", np.array([1, 1, 2, 2]), mode="nearest", opset=9),
    "Upsample, an attribute": after_convolution("Upsample", scales=[1.0, 1.0, 3.0, 3.0], mode="nearest", opset=7),
    "Conv 1 × 1": of_picture("Identity"),
    "Conv 3 × 5": (17, lambda writer: writer.put("Conv", ["picture", writer.constant(window(3, 5))])),
    "Conv dilated down": (
        17, lambda writer: writer.put("Conv", ["picture", writer.constant(window(3, 2))], dilations=[2, 1])
    ),
    "Conv dilated across": (
        17, lambda writer: writer.put("Conv", ["picture", writer.constant(window(2, 3))], dilations=[1, 3])
    ),
    "Conv, groups": (
        17, lambda writer: writer.put("Conv", ["picture", writer.constant(window(2, 2, channels=1, filters=6))], group=3)
    ),
    **{
        f"Conv {mode}, stride {stride}, {rows} × {columns}": after_convolution(
            "Conv", window(rows, columns, channels=4), auto_pad=mode, strides=[stride, stride]
        )
        for mode in ("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET")
        for stride in (1, 2, 3)
        for rows, columns in ((2, 3), (4, 1))
    },
    **{
        f"MaxPool {size}, stride {stride}, pads {pads}, rounded {up}": after_convolution(
            "MaxPool", kernel_shape=[size, size], strides=[stride, stride], pads=pads, ceil_mode=up
        )
        for size, pads in ((2, [0, 0, 0, 0]), (3, [1, 1, 1, 1]), (3, [1, 0, 0, 2]), (4, [0, 1, 2, 1]))
        for stride in (1, 2, 3, 4)
        for up in (0, 1)
    },
    "MaxPool of a stride of 1": after_convolution("MaxPool", kernel_shape=[2, 2]),
    "MaxPool of 2 rows and 3 columns": after_convolution("MaxPool", kernel_shape=[2, 3], pads=[1, 0, 0, 2]),
    "MaxPool of a row": after_convolution("MaxPool", kernel_shape=[1, 3], strides=[2, 2]),
    "MaxPool of two strides": after_convolution("MaxPool", kernel_shape=[2, 2], strides=[2, 1], pads=[0, 1, 0, 1]),
    "MaxPool of strides without a common part": after_convolution("MaxPool", kernel_shape=[3, 4], strides=[3, 2]),
    "MaxPool of a dilation for each side": after_convolution("MaxPool", kernel_shape=[2, 3], dilations=[3, 2], strides=[1, 2]),
    "AveragePool of two strides": after_convolution("AveragePool", kernel_shape=[3, 2], strides=[1, 2], pads=[1, 0, 1, 0]),
    **{
        f"Conv of strides {down} and {across}": after_convolution(
            "Conv", window(3, 2, channels=4 // groups, filters=4), strides=[down, across], pads=[1, 0, 2, 1], group=groups
        )
        for down, across, groups in ((2, 1, 1), (1, 3, 2), (2, 3, 4), (4, 2, 1))
    },
    "Slice of every second row": after_convolution("Slice", [0], [1 << 40], [2], [2]),
    "Resize, nearest, by 3/2": after_convolution("Resize", None, np.array([1, 1, 1.5, 1.5])),
    "Resize, nearest, to fewer and to more": after_convolution("Resize", None, np.array([1, 1, 0.8, 2.5])),
    "Resize, aligned corners, by 3": after_convolution("Resize", None, np.array([1, 1, 3, 3]), coordinate_transformation_mode="align_corners"),
    "Resize, ceil": after_convolution("Resize", None, np.array([1, 1, 2, 2]), nearest_mode="ceil", coordinate_transformation_mode="asymmetric"),
    **{
        f"Resize, linear, {mode}, {down:g} and {across:g}": after_convolution(
            "Resize", None, np.array([1, 1, down, across]), mode="linear", coordinate_transformation_mode=mode, opset=19
        )
        for mode in ("half_pixel", "asymmetric", "pytorch_half_pixel")
        for down, across in ((1.5, 1.5), (0.75, 2.0), (1.0, 0.4), (2.5, 1.25))
    },
    "Pad with a number": of_picture("Pad", [0, 0, 1, 2, 0, 0, 0, 3], 0.5),
    "Pad with a number after a Pad": (17, lambda writer: _padded_twice(writer)),
    "PRelu of channels above 1": after_convolution("PRelu", np.array([0.1, 2, 1, -3]).reshape(4, 1, 1)),
    **{f"ReduceMean over {axes}": after_convolution("ReduceMean", axes=axes) for axes in ([1], [2], [3], [1, 2], [1, 2, 3])},
    "ReduceMean over rows, no sides kept": after_convolution("ReduceMean", axes=[-2], keepdims=0),
    "Softmax of each position": after_convolution("Softmax", axis=1),
    "LogSoftmax of each position": after_convolution("LogSoftmax", axis=-3),
    "LogSoftmax of values": of_values("LogSoftmax", axis=1),
    "Exp": after_convolution("Exp"),
    "Sqrt": (17, lambda writer: writer.put("Sqrt", [writer.put("Abs", [writer.put("Tanh", ["picture"])])])),
    "MaxPool, a dilation of 1": after_convolution("MaxPool", kernel_shape=[2, 2], dilations=[1, 1]),
    "MaxPool after a Pad": (17, lambda writer: _padded(writer, "MaxPool", kernel_shape=[3, 3])),
    "Conv of the size of what was padded": (17, lambda writer: _conv_of_padded(writer)),
    "a Pad after all": (17, lambda writer: _padded(writer, "")),
    "GlobalMaxPool of a wide map": after_convolution("GlobalMaxPool"),
    "GlobalMaxPool": (17, lambda writer: writer.put("GlobalMaxPool", [_even(writer)])),
    "AveragePool of all": after_convolution("AveragePool", kernel_shape=[9, 12]),
    "AveragePool of one": after_convolution("AveragePool", kernel_shape=[1, 1]),
    "AveragePool of every second": after_convolution("AveragePool", kernel_shape=[1, 1], strides=[2, 2]),
    "AveragePool of 2": after_convolution("AveragePool", kernel_shape=[2, 2], strides=[2, 2]),
    "AveragePool of 9 and 11": after_convolution("AveragePool", kernel_shape=[9, 11]),
    "AveragePool that counts padding": after_convolution(
        "AveragePool", kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 2, 1], count_include_pad=1
    ),
    "AveragePool with a dilation": after_convolution("AveragePool", kernel_shape=[2, 3], dilations=[3, 2], opset=19),
    "AveragePool whose last window ends with the map": after_convolution(
        "AveragePool", kernel_shape=[3, 2], strides=[2, 2], ceil_mode=1
    ),
    "ReduceMean": after_convolution("ReduceMean", axes=[2, 3]),
    "ReduceMean, no sides kept": after_convolution("ReduceMean", axes=[3, -2], keepdims=0),
    "ReduceMean, an input": after_convolution("ReduceMean", [2, 3], opset=18),
    "Softmax of values": of_values("Softmax", axis=1),
    "Softmax of values -3": of_values("Softmax", axis=-3),
    "Softmax of values, flattened": of_values("Softmax", opset=11),
    "Softmax of a row": of_row("Softmax"),
    "Softmax of a row, flattened": of_row("Softmax", opset=11),
    "MatMul": of_row("MatMul", window(5, channels=1, filters=4).reshape(4, 5)),
    "Gemm": of_row("Gemm", window(5, channels=1, filters=4).reshape(4, 5), np.arange(5)),
    "Gemm, turned": of_row("Gemm", window(4, channels=1, filters=5).reshape(5, 4), np.arange(5), transB=1),
    "Gemm, scaled": of_row("Gemm", window(5, channels=1, filters=4).reshape(4, 5), np.arange(5), alpha=0.5, beta=3.0),
    "Gemm, one bias": of_row("Gemm", window(5, channels=1, filters=4).reshape(4, 5), np.array(2.5)),
    "Gemm, no bias": of_row("Gemm", window(5, channels=1, filters=4).reshape(4, 5)),
    "Add a number": after_convolution("Add", 0.5),
    "Add one per channel": after_convolution("Add", np.arange(4).reshape(4, 1, 1)),
    "Add to all sides": after_convolution("Add", np.arange(4).reshape(1, 4, 1, 1)),
    "Sub": after_convolution("Sub", np.arange(4).reshape(4, 1, 1)),
    "Add of the map": constant_and_map("Add", np.arange(4).reshape(4, 1, 1)),
    "Mul of the map": constant_and_map("Mul", np.arange(4).reshape(4, 1, 1)),
    "Mul": after_convolution("Mul", np.arange(4).reshape(4, 1, 1)),
    "Div by 1 and others": after_convolution("Div", np.arange(1, 5).reshape(4, 1, 1)),
    "Div of the picture": of_picture("Div", np.array([0.5, 1.0, 2.0]).reshape(3, 1, 1)),
    "Sub of the map": constant_and_map("Sub", np.arange(4).reshape(4, 1, 1)),
    "Max with a number": after_convolution("Max", np.array(0.25)),
    "Min with a number": constant_and_map("Min", np.array(0.25)),
    "Neg": after_convolution("Neg"),
    "PRelu of channels": after_convolution("PRelu", np.array([0.1, -0.5, 1, 0]).reshape(4, 1, 1)),
    "Max of one": after_convolution("Max"),
    **{f"{kind} of maps": _of_two(kind) for kind in ("Add", "Sub", "Max", "Min", "Sum", "Mul")},
    "Clip 0 6": after_convolution("Clip", 0.0, 6.0),
    "Clip from 0": after_convolution("Clip", 0.0),
    "Clip to infinity": after_convolution("Clip", 0.0, np.array(np.inf)),
    "Clip to 5": after_convolution("Clip", 0.0, 5.0),
    "Clip from -1": after_convolution("Clip", -1.0, 6.0),
    "Clip without end": after_convolution("Clip", None, 6.0),
    "LeakyRelu": after_convolution("LeakyRelu", alpha=0.1),
    "LeakyRelu, its own slope": after_convolution("LeakyRelu"),
    "Relu": after_convolution("Relu"),
    "Sigmoid": after_convolution("Sigmoid"),
    "Sigmoid of the picture": of_picture("Sigmoid"),
    "BatchNormalization": after_convolution("BatchNormalization", np.arange(4), np.ones(4), np.arange(4), np.arange(4), epsilon=0.5),
    "BatchNormalization, its own epsilon": after_convolution("BatchNormalization", np.ones(4), np.ones(4), np.ones(4), np.zeros(4)),
}  # fmt: skip
"""Each of these forms is read as what onnxruntime makes of it."""


def _padded_twice(writer: Writer) -> str:
    zeros = writer.constant([0, 0, 0, 1, 0, 0, 1, 0], np.int64)
    numbers = writer.constant([0, 0, 1, 0, 0, 0, 0, 2], np.int64)
    return writer.put("Pad", [writer.put("Pad", ["picture", zeros]), numbers, writer.constant(np.array(-0.5))])


def _values(writer: Writer, kind: str, *constants: Any) -> str:
    return of_values(kind, *constants)[1](writer)


def _even(writer: Writer) -> str:
    """8 × 8."""
    weights = writer.constant(RANDOM.normal(size=(4, 3, 4, 7)))
    return writer.put("Conv", ["picture", weights])


REFUSED: list[tuple[tuple[int, Graph], SystolicError]] = [
    (after_convolution("Gather", [1], axis=0), UnsupportedError("Gather '/Gather_1'", "it must gather by an integer or a list of integers, along any axis but the batch")),
    (after_convolution("Gather", [[1]], axis=2), UnsupportedError("Gather '/Gather_1'", "it must gather by an integer or a list of integers, along any axis but the batch")),
    (after_convolution("Gather", [0, 1, 3], axis=2), InvalidValueError("indices of rows or columns", (0, 1, 3), "ascending in equal steps", where="Gather '/Gather_1'")),
    (after_convolution("Gather", [3, 1], axis=2), InvalidValueError("indices of rows or columns", (3, 1), "ascending in equal steps", where="Gather '/Gather_1'")),
    (after_convolution("Gather", [9], axis=2), RangeError("an index", 9, -9, 8, where="Gather '/Gather_1'")),
    (after_convolution("Gather", [-13], axis=3), RangeError("an index", -13, -12, 11, where="Gather '/Gather_1'")),
    (after_convolution("Gather", [4], axis=1), RangeError("an index", 4, -4, 3, where="Gather '/Gather_1'")),
    (after_convolution("Flatten", axis=5), RangeError("an axis", 5, -4, 4, where="Flatten '/Flatten_1'")),
    (after_convolution("Flatten", axis=-5), RangeError("an axis", -5, -4, 4, where="Flatten '/Flatten_1'")),
    (after_convolution("Flatten", axis=2), ShapeError("its output", (4, 108), "a batch of 1 in front and the same number of values as (1, 4, 9, 12)", where="Flatten '/Flatten_1'")),
    (after_convolution("Reshape", [-1, -1]), InvalidValueError("its shape", (-1, -1), "sides of 0 or more, and at most one -1", where="Reshape '/Reshape_1'")),
    (after_convolution("Reshape", [1, -2]), InvalidValueError("its shape", (1, -2), "sides of 0 or more, and at most one -1", where="Reshape '/Reshape_1'")),
    (after_convolution("Reshape", [1, 5, -1]), ShapeError("its output", (1, 5, -1), "the same number of values as (1, 4, 9, 12)", where="Reshape '/Reshape_1'")),
    (after_convolution("Reshape", [0, -1], allowzero=1), ShapeError("its output", (0, -1), "the same number of values as (1, 4, 9, 12)", where="Reshape '/Reshape_1'")),
    (after_convolution("Reshape", [1, 4, 9]), ShapeError("its output", (1, 4, 9), "a batch of 1 in front and the same number of values as (1, 4, 9, 12)", where="Reshape '/Reshape_1'")),
    (after_convolution("Reshape", np.array([1.0, -1.0])), ShapeError("a constant of axes, sides or pads", "float32", "integers", where="Reshape '/Reshape_1'")),
    (of_values("Squeeze", [1]), InvalidValueError("axes", (1,), "sides of 1 in (1, 4, 1, 1)", where="Squeeze '/Squeeze_2'")),
    (of_values("Squeeze", [2, 4]), RangeError("an axis", 4, -4, 3, where="Squeeze '/Squeeze_2'")),
    (of_values("Squeeze", [0]), ShapeError("its output", (4, 1, 1), "a batch of 1 in front and the same number of values as (1, 4, 1, 1)", where="Squeeze '/Squeeze_2'")),
    (after_convolution("Transpose", perm=[0, 1, 3, 2]), UnsupportedError("Transpose '/Transpose_1'", "perm (0, 1, 3, 2) of (1, 4, 9, 12) reorders values in a way that no layer does")),
    (after_convolution("Transpose", perm=[0, 1, 1, 2]), InvalidValueError("perm", (0, 1, 1, 2), "an order of the axes 0 to 3", where="Transpose '/Transpose_1'")),
    (_of_two("Concat", axis=2), UnsupportedError("Concat '/Concat_2'", "maps are concatenated only along their channels, axis 1")),
    (after_convolution("Slice", [5], [2], [2], [-1]), RangeError("a step of rows or columns", -1, 1, where="Slice '/Slice_1'")),
    (after_convolution("Slice", [0], [4], [1], [0]), InvalidValueError("a step", 0, "other than 0", where="Slice '/Slice_1'")),
    (after_convolution("Slice", [1], [1], [0]), UnsupportedError("Slice '/Slice_1'", "it slices the batch")),
    (after_convolution("Slice", [3], [2], [1]), InvalidValueError("a range", (3, 2), "(first, end) with at least one row, column or channel", where="Slice '/Slice_1'")),
    (after_convolution("Slice", [1, 1], [2], [1]), InvalidValueError("the numbers of starts, ends, axes and steps", (2, 1, 1, 2), "equal", where="Slice '/Slice_1'")),
    (after_convolution("Slice", None, [2], [1]), MissingValueError("the input starts", where="Slice '/Slice_1'")),
    (after_convolution("Slice", [0], [4], [4]), RangeError("an axis", 4, -4, 3, where="Slice '/Slice_1'")),
    (_split((2, 3), 2), UnsupportedError("Split '/Split_1'", "maps are split only along their channels, axis 1")),
    (_split((2, 2), 2, axis=1), InvalidValueError("split", (2, 2), "numbers that add up to 5 channels, one for each of 2 outputs", where="Split '/Split_1'")),
    (_split((5,), 2, axis=1), InvalidValueError("split", (5,), "numbers that add up to 5 channels, one for each of 2 outputs", where="Split '/Split_1'")),
    (_split(None, 2, opset=18, axis=1, num_outputs=0), RangeError("num_outputs", 0, 1, 5, where="Split '/Split_1'")),
    (of_picture("Pad", [0, 0, 1, 1, 0, 0, 1, 1], np.inf), InvalidValueError("the padding value", np.inf, "finite", where="Pad '/Pad_0'")),
    (of_picture("Pad", [0, 0, -1, 0, 0, 0, 0, 0], 0.5), RangeError("padding", -1, 0, where="Pad '/Pad_0'")),
    (of_picture("Pad", [0, 1, 0, 0, 0, 0, 0, 0]), UnsupportedError("Pad '/Pad_0'", "only rows and columns are padded, not batch or channels")),
    (of_picture("Pad", [0, 0, 0, 0, 1, 0, 0, 0]), UnsupportedError("Pad '/Pad_0'", "only rows and columns are padded, not batch or channels")),
    (of_picture("Pad", [1, 1]), ShapeError("pads", "2 numbers", "8 numbers", where="Pad '/Pad_0'")),
    (of_picture("Pad", [0, 0, -1, 0, 0, 0, 0, 0]), InvalidValueError("padding", (-1, 0, 0, 0), "between 0 and 4095 on each side", where="Pad '/Pad_0'")),
    (of_picture("Pad", [0, 0, 0, 0, 0, 0, 0, 4096]), InvalidValueError("padding", (0, 0, 0, 4096), "between 0 and 4095 on each side", where="Pad '/Pad_0'")),
    (after_convolution("SpaceToDepth", blocksize=2), InvalidValueError("blocksize", 2, "a divisor of height and width of 4×9×12", where="SpaceToDepth '/SpaceToDepth_1'")),
    (after_convolution("SpaceToDepth", blocksize=0), InvalidValueError("blocksize", 0, "a divisor of height and width of 4×9×12", where="SpaceToDepth '/SpaceToDepth_1'")),
    (after_convolution("Resize", None, np.array([1, 1, 2, 2]), mode="cubic"), ChoiceError("mode", "cubic", ("nearest", "linear"), where="Resize '/Resize_1'")),
    (after_convolution("Resize", None, np.array([1, 2, 2, 2])), InvalidValueError("scales", [1.0, 2.0, 2.0, 2.0], "finite, above 0, 1 for batch and channels, and such that height and width are 1 or more", where="Resize '/Resize_1'")),
    (after_convolution("Resize", None, np.array([2, 2])), ShapeError("scales", "2 numbers", "4 numbers", where="Resize '/Resize_1'")),
    (
        after_convolution("Resize", None, np.array([1, 1, 2, 2]), coordinate_transformation_mode="tf_crop_and_resize"),
        ChoiceError("coordinate_transformation_mode", "tf_crop_and_resize", ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "asymmetric", "align_corners"), where="Resize '/Resize_1'"),
    ),
    (after_convolution("Conv", window(3, 3, channels=4), strides=[99, 98], pads=[99] * 4), RangeError("rows or columns of a window of strides 99 and 98", 9607, 1, 4095, where="Conv '/Conv_1'")),
    (after_convolution("Conv", window(3, 3, channels=4), strides=[0, 1]), InvalidValueError("strides", (0, 1), "two numbers of 1 or more", where="Conv '/Conv_1'")),
    (after_convolution("Conv", window(10, 3, channels=4)), ShapeError("its padded input", "4×9×12 before padding", "at least the window's (10, 3) places", where="Conv '/Conv_1'")),
    (after_convolution("Conv", window(3, 3, channels=4), pads=[0, -1, 0, 0]), InvalidValueError("pads", (0, -1, 0, 0), "four numbers of 0 or more", where="Conv '/Conv_1'")),
    (after_convolution("Conv", window(3, 3, channels=4), pads=[1, 1]), InvalidValueError("pads", (1, 1), "four numbers of 0 or more", where="Conv '/Conv_1'")),
    (after_convolution("Conv", window(3, 3, channels=4), auto_pad="SAME"), ChoiceError("auto_pad", "SAME", ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"), where="Conv '/Conv_1'")),
    (after_convolution("Conv", window(3, 3, channels=4), dilations=[0, 1]), InvalidValueError("dilations", (0, 1), "two numbers of 1 or more", where="Conv '/Conv_1'")),
    (after_convolution("Conv", window(3, 3, channels=4), dilations=[2]), InvalidValueError("dilations", (2,), "two numbers of 1 or more", where="Conv '/Conv_1'")),
    (after_convolution("Conv", window(3, 3, channels=4), dilations=[32, 1]), ShapeError("its padded input", "4×9×12 before padding", "at least the window's (65, 3) places", where="Conv '/Conv_1'")),
    (after_convolution("Conv", window(3, 3, channels=2)), ShapeError("weights", (4, 2, 3, 3), "4 channels in 1 groups, and filters that are a multiple of the groups", where="Conv '/Conv_1'")),
    (after_convolution("Conv", window(3, 3, channels=2, filters=3), group=2), ShapeError("weights", (3, 2, 3, 3), "4 channels in 2 groups, and filters that are a multiple of the groups", where="Conv '/Conv_1'")),
    (after_convolution("Conv", window(3, 3, channels=4), group=0), ShapeError("weights", (4, 4, 3, 3), "4 channels in 0 groups, and filters that are a multiple of the groups", where="Conv '/Conv_1'")),
    (after_convolution("Conv", window(3, channels=4)), ShapeError("weights", (4, 4, 3), "4 sides, the same number as its input", where="Conv '/Conv_1'")),
    (after_convolution("Conv", window(3, 3, channels=4), np.arange(3)), ShapeError("bias", (3,), (4,), where="Conv '/Conv_1'")),
    (after_convolution("MaxPool", kernel_shape=[2]), InvalidValueError("kernel_shape", (2,), "two numbers of 1 or more", where="MaxPool '/MaxPool_1'")),
    (after_convolution("MaxPool", kernel_shape=[2, 2], pads=[0, 2, 0, 0]), InvalidValueError("padding", (0, 2, 0, 0), "less than the window of 2×2", where="MaxPool '/MaxPool_1'")),
    (_of_two("Div"), UnsupportedError("Div '/Div_2'", "a map is divided by a map; only a map can be divided by a constant")),
    (after_convolution("Max", np.array([1, 2]).reshape(2, 1, 1)), ShapeError("its constant", "2 values", "1 or 4 values", where="Max '/Max_1'")),
    (after_convolution("Max", np.zeros((0, 1, 1))), ShapeError("input 1", "0 values", "one value", where="Max '/Max_1'")),
    (constant_and_map("Div", np.array(2.0)), UnsupportedError("Div '/Div_1'", "a constant is divided by a map; only a map can be divided by a constant")),
    (after_convolution("AveragePool", kernel_shape=[2, 2], pads=[0, 2, 0, 0]), UnsupportedError("AveragePool '/AveragePool_1'", "one of its windows would be outside the map")),
    (after_convolution("AveragePool", kernel_shape=[2]), InvalidValueError("kernel_shape", (2,), "two numbers of 1 or more", where="AveragePool '/AveragePool_1'")),
    (after_convolution("ReduceMean", axes=[0, 2]), InvalidValueError("axes", (0, 2), "channels, height or width, not the batch", where="ReduceMean '/ReduceMean_1'")),
    (after_convolution("ReduceMean"), InvalidValueError("axes", (0, 1, 2, 3), "channels, height or width, not the batch", where="ReduceMean '/ReduceMean_1'")),
    (after_convolution("Softmax", axis=2), InvalidValueError("its axis", 2, "the channels alone, for an input of shape (1, 4, 9, 12) in opset 17", where="Softmax '/Softmax_1'")),
    (after_convolution("Softmax", axis=1, opset=11), InvalidValueError("its axis", 1, "the channels alone, for an input of shape (1, 4, 9, 12) in opset 11", where="Softmax '/Softmax_1'")),
    (of_values("Softmax", axis=2), InvalidValueError("its axis", 2, "the channels alone, for an input of shape (1, 4, 1, 1) in opset 17", where="Softmax '/Softmax_2'")),
    (of_row("MatMul", np.ones(4)), ShapeError("the matrix", (4,), "two sides", where="MatMul '/MatMul_3'")),
    (of_row("MatMul", np.ones((5, 4))), ShapeError("its input", (1, 4), "one row of 5 values, the rows of the matrix", where="MatMul '/MatMul_3'")),
    (of_row("Gemm", np.ones((4, 4)), transA=1), InvalidValueError("transA", 1, "0, because the map cannot be transposed", where="Gemm '/Gemm_3'")),
    (of_row("Gemm", np.ones((4, 5)), np.ones(4)), ShapeError("its constant", "4 values", "1 or 5 values", where="Gemm '/Gemm_3'")),
    (after_convolution("Div", np.array([1, 2, 0, 3]).reshape(4, 1, 1)), UnsupportedError("Div '/Div_1'", "it divides by 0")),
    (after_convolution("Add", np.ones((1, 1, 12))), ShapeError("its constant", (1, 1, 12), "one value, or one for each channel of (1, 4, 9, 12)", where="Add '/Add_1'")),
    (after_convolution("Add", np.ones((1, 1, 4, 1, 1))), ShapeError("its constant", (1, 1, 4, 1, 1), "one value, or one for each channel of (1, 4, 9, 12)", where="Add '/Add_1'")),
    (after_convolution("Add", np.ones((3, 1, 1))), ShapeError("its constant", "3 values", "1 or 4 values", where="Add '/Add_1'")),
    (after_convolution("BatchNormalization", *[np.ones(4)] * 4, training_mode=1), UnsupportedError("BatchNormalization '/BatchNormalization_1'", "its training_mode is 1; export the model for inference")),
    (after_convolution("BatchNormalization", *[np.ones(4)] * 3, np.array([1, 1, -1, 1])), RangeError("a variance", -1.0, 0, where="BatchNormalization '/BatchNormalization_1'")),
    (after_convolution("BatchNormalization", *[np.ones(4)] * 4, epsilon=0.0), RangeError("epsilon", 0.0, 0, exclusive=True, where="BatchNormalization '/BatchNormalization_1'")),
    (after_convolution("MaxPool", kernel_shape=["a", "b"]), InvalidValueError("the attribute kernel_shape", (b'a', b'b'), "a list of whole numbers", where="MaxPool '/MaxPool_1'")),
    (after_convolution("MaxPool", kernel_shape=2), InvalidValueError("the attribute kernel_shape", 2, "a list of whole numbers", where="MaxPool '/MaxPool_1'")),
    (after_convolution("Concat", axis=1.5), InvalidValueError("the attribute axis", 1.5, "a whole number", where="Concat '/Concat_1'")),
    (after_convolution("LeakyRelu", alpha="much"), InvalidValueError("the attribute alpha", "much", "a number", where="LeakyRelu '/LeakyRelu_1'")),
    (after_convolution("Resize", None, np.array([1, 1, 2, 2]), mode=3), InvalidValueError("the attribute mode", 3, "a text", where="Resize '/Resize_1'")),
]  # fmt: skip
"""Each of these forms is refused with the error next to it."""
