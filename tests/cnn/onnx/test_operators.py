# ruff: noqa: E501 (an operator and what is said of it stay on one line)
"""Forms of each operator: what another runtime makes of it, and the sentence where it is no layer here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from boards.errors import NetworkError
from cnn.float_model import run_float
from cnn.network import Convolution, Softmax
from cnn.onnx.network import network_of
from tests.cnn.onnx.test_network import RANDOM, check_against_runtime, convolved, pixels
from tests.cnn.onnx.writer import Writer

Graph = Callable[[Writer], str]
HEIGHT, WIDTH = 11, 14
"""Of the picture; a convolution without padding leaves 9 × 12 of it."""


def behind(kind: str, *constants: Any, channels: int = 4, opset: int = 17, **attributes: Any) -> tuple[int, Graph]:
    """The operator behind a convolution, with constants as further inputs: lists are whole numbers, None left out."""

    def graph(writer: Writer) -> str:
        return writer.put(kind, [convolved(writer, "picture", 3, channels), *_arrays(writer, constants)], **attributes)

    return opset, graph


def of_picture(kind: str, *constants: Any, opset: int = 17, **attributes: Any) -> tuple[int, Graph]:
    """The operator on the picture, and a convolution behind it."""
    return opset, lambda writer: _ended(
        writer, writer.put(kind, ["picture", *_arrays(writer, constants)], **attributes)
    )


def of_values(kind: str, *constants: Any, opset: int = 17, **attributes: Any) -> tuple[int, Graph]:
    """The operator behind an average of four channels."""

    def graph(writer: Writer) -> str:
        source = writer.put("GlobalAveragePool", [convolved(writer, "picture", 3, 4)])
        return writer.put(kind, [source, *_arrays(writer, constants)], **attributes)

    return opset, graph


def of_row(kind: str, *constants: Any, opset: int = 17, **attributes: Any) -> tuple[int, Graph]:
    """The operator behind four values in a row."""

    def graph(writer: Writer) -> str:
        source = writer.put("Flatten", [writer.put("GlobalAveragePool", [convolved(writer, "picture", 3, 4)])])
        return writer.put(kind, [source, *_arrays(writer, constants)], **attributes)

    return opset, graph


def _arrays(writer: Writer, constants: Sequence[Any]) -> list[str]:
    """Initialisers: lists are whole numbers, arrays what they are, None is left out."""
    return [
        "" if array is None else writer.constant(array, np.int64 if isinstance(array, list) else np.float32)
        for array in constants
    ]


def _ended(writer: Writer, source: str) -> str:
    weights = writer.constant(RANDOM.normal(size=(2, 3, 1, 1)))
    return writer.put("Conv", [source, weights])


def window(*sides: int, channels: int = 3, filters: int = 4) -> Any:
    return np.random.default_rng(7).normal(0, 0.3, (filters, channels, *sides))


def _of_two(kind: str, **attributes: Any) -> tuple[int, Graph]:
    def graph(writer: Writer) -> str:
        return writer.put(kind, [convolved(writer, "picture", 3, 4), convolved(writer, "picture", 3, 4)], **attributes)

    return 17, graph


def _split(
    sizes: Sequence[int] | None, outputs: int, opset: int = 17, channels: int = 5, **attributes: Any
) -> tuple[int, Graph]:
    """The parts, each through a convolution of its own channels, added up; the last part is not read."""

    def graph(writer: Writer) -> str:
        source = convolved(writer, "picture", 3, channels)
        first = writer.put(
            "Split", [source, *([] if sizes is None else _arrays(writer, [list(sizes)]))], outputs, **attributes
        )
        return writer.put("Relu", [first + "_" * (outputs - 2)])

    return opset, graph


def behind_constant(kind: str, constant: Any) -> tuple[int, Graph]:
    """The operator of a constant and a map."""
    return 17, lambda writer: writer.put(kind, [*_arrays(writer, [constant]), convolved(writer, "picture", 3, 4)])


def _padded(writer: Writer, kind: str, **attributes: Any) -> str:
    """The operator, or none, of a map with zeros around it."""
    first = writer.put("Relu", [convolved(writer, "picture", 3, 4)])  # onnxruntime pads below all values
    around = writer.put("Pad", [first, writer.constant([0, 0, 1, 2, 0, 0, 2, 0], np.int64)])
    return writer.put(kind, [around], **attributes) if kind else around


def _conv_of_padded(writer: Writer) -> str:
    """auto_pad is reckoned of the sides with their zeros."""
    around = _padded(writer, "")
    return writer.put(
        "Conv", [around, writer.constant(window(3, 2, channels=4))], auto_pad="SAME_UPPER", strides=[2, 2]
    )


def _as_it_is(writer: Writer) -> str:
    """Reshaped to what its own Shape says, all of it."""
    source = convolved(writer, "picture", 3, 4)
    return writer.put("Reshape", [source, writer.put("Shape", [source])])


def _two_matrices(writer: Writer) -> str:
    source = writer.put("Flatten", [writer.put("GlobalAveragePool", [convolved(writer, "picture", 3, 4)])])
    for sides in ((4, 6), (6, 5)):
        source = writer.put("MatMul", [source, writer.constant(RANDOM.normal(size=sides))])
    return source


MEANT: dict[str, tuple[int, Graph]] = {
    "Shape, all of it": (17, _as_it_is),
    "MatMul behind MatMul": (17, _two_matrices),
    "Split, parts of two": _split(None, 4, opset=18, channels=8, axis=1, num_outputs=4),
    "Resize, one pixel of PyTorch": of_values(
        "Resize", None, np.array([1, 1, 1, 1]), coordinate_transformation_mode="pytorch_half_pixel"
    ),
    "Flatten": behind("Flatten"),
    "Flatten 0": behind("Flatten", axis=0),
    "Flatten -3": behind("Flatten", axis=-3),
    "Reshape 1 -1": behind("Reshape", [1, -1]),
    "Reshape 0 -1": behind("Reshape", [0, -1]),
    "Reshape 0 0 -1": behind("Reshape", [0, 0, -1]),
    "Reshape without an open side": behind("Reshape", [1, 4, 108]),
    "Reshape, the batch open": behind("Reshape", [-1, 4, 9, 12]),
    "Reshape, a side more": behind("Reshape", [0, 0, 0, 4, 3]),
    "Squeeze 2 3": of_values("Squeeze", [2, 3]),
    "Squeeze -1": of_values("Squeeze", [-1]),
    "Unsqueeze 4": behind("Unsqueeze", [4]),
    "Unsqueeze -1 1": behind("Unsqueeze", [-1, 1]),
    "Unsqueeze, then in another order": (
        17,
        lambda writer: writer.put(
            "Transpose", [_values(writer, "Unsqueeze", [4])], perm=[0, 4, 1, 2, 3]
        ),
    ),
    "Unsqueeze, an attribute": behind("Unsqueeze", axes=[4], opset=11),
    "Transpose of values": of_values("Transpose", perm=[0, 2, 3, 1]),
    "Transpose of values, backwards": of_values("Transpose", perm=[0, 3, 1, 2]),
    "Transpose in order": behind("Transpose", perm=[0, 1, 2, 3]),
    "Transpose, all backwards": of_values("Transpose"),
    "Identity": behind("Identity"),
    "Concat": _of_two("Concat", axis=1),
    "Concat -3": _of_two("Concat", axis=-3),
    "Concat of one": behind("Concat", axis=1),
    "Slice": behind("Slice", [1], [3], [1]),
    "Slice -3": behind("Slice", [1], [3], [-3], [1]),
    "Slice from the end": behind("Slice", [-3], [-1], [1]),
    "Slice far": behind("Slice", [2], [1 << 40], [1]),
    "Slice of all sides": behind("Slice", [0, 1, 0, 0], [1, 4, 9, 12]),
    "Slice of nothing": behind("Slice", [0, 0], [4, 9], [1, 2], [1, 1]),
    "Slice, attributes": behind("Slice", starts=[1], ends=[2], axes=[1], opset=9),
    "Gather in order": behind("Gather", [1, 2], axis=1),
    "Gather in any order": behind("Gather", [3, -4, 1, 1, 2], axis=1),
    "Split": _split((2, 2, 1), 3, axis=1),
    "Split -3": _split((1, 4), 2, axis=-3),
    "Split, of parts": _split(None, 2, opset=18, axis=1, num_outputs=2),
    "Split, the last part smaller": _split(None, 3, opset=18, axis=1, num_outputs=3),
    "Pad": of_picture("Pad", [0, 0, 1, 2, 0, 0, 3, 4]),
    "Pad, a value": of_picture("Pad", [0, 0, 1, 0, 0, 0, 0, 1], 0.0),
    "Pad, sides": of_picture("Pad", [2, 1, 0, 3], None, [3, 2], opset=18),
    "Pad, sides from the end": of_picture("Pad", [2, 3], None, [-1], opset=18),
    "SpaceToDepth": (17, lambda writer: writer.put("SpaceToDepth", [_even(writer)], blocksize=2)),
    "SpaceToDepth 3": behind("SpaceToDepth", blocksize=3),
    "SpaceToDepth 1": behind("SpaceToDepth", blocksize=1),
    "Resize": behind("Resize", None, np.array([1, 1, 2, 2]), coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
    "Resize 3": behind("Resize", None, np.array([1, 1, 3, 3]), coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
    "Resize, half pixels": behind("Resize", None, np.array([1, 1, 2, 2])),
    "Resize, half pixels up": behind("Resize", None, np.array([1, 1, 3, 3]), nearest_mode="round_prefer_ceil"),
    "Resize, half pixels of PyTorch": behind(
        "Resize", None, np.array([1, 1, 2, 2]), coordinate_transformation_mode="pytorch_half_pixel"
    ),
    "Resize to the same": behind("Resize", None, np.array([1, 1, 1, 1]), coordinate_transformation_mode="align_corners"),
    "Resize to a size": behind("Resize", None, None, [1, 4, 18, 24]),
    "Upsample": behind("Upsample", np.array([1, 1, 2, 2]), mode="nearest", opset=9),
    "Upsample, an attribute": behind("Upsample", scales=[1.0, 1.0, 3.0, 3.0], mode="nearest", opset=7),
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
        f"Conv {mode}, stride {stride}, {rows} × {columns}": behind(
            "Conv", window(rows, columns, channels=4), auto_pad=mode, strides=[stride, stride]
        )
        for mode in ("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET")
        for stride in (1, 2, 3)
        for rows, columns in ((2, 3), (4, 1))
    },
    **{
        f"MaxPool {size}, stride {stride}, pads {pads}, rounded {up}": behind(
            "MaxPool", kernel_shape=[size, size], strides=[stride, stride], pads=pads, ceil_mode=up
        )
        for size, pads in ((2, [0, 0, 0, 0]), (3, [1, 1, 1, 1]), (3, [1, 0, 0, 2]), (4, [0, 1, 2, 1]))
        for stride in (1, 2, 3, 4)
        for up in (0, 1)
    },
    "MaxPool of a stride of 1": behind("MaxPool", kernel_shape=[2, 2]),
    "MaxPool of 2 rows and 3 columns": behind("MaxPool", kernel_shape=[2, 3], pads=[1, 0, 0, 2]),
    "MaxPool of a row": behind("MaxPool", kernel_shape=[1, 3], strides=[2, 2]),
    "MaxPool of two strides": behind("MaxPool", kernel_shape=[2, 2], strides=[2, 1], pads=[0, 1, 0, 1]),
    "MaxPool of strides without a common part": behind("MaxPool", kernel_shape=[3, 4], strides=[3, 2]),
    "MaxPool of a dilation for each side": behind("MaxPool", kernel_shape=[2, 3], dilations=[3, 2], strides=[1, 2]),
    "AveragePool of two strides": behind("AveragePool", kernel_shape=[3, 2], strides=[1, 2], pads=[1, 0, 1, 0]),
    **{
        f"Conv of strides {down} and {across}": behind(
            "Conv", window(3, 2, channels=4 // groups, filters=4), strides=[down, across], pads=[1, 0, 2, 1], group=groups
        )
        for down, across, groups in ((2, 1, 1), (1, 3, 2), (2, 3, 4), (4, 2, 1))
    },
    "Slice of every second row": behind("Slice", [0], [1 << 40], [2], [2]),
    "Resize, nearest, by 3/2": behind("Resize", None, np.array([1, 1, 1.5, 1.5])),
    "Resize, nearest, to fewer and to more": behind("Resize", None, np.array([1, 1, 0.8, 2.5])),
    "Resize, aligned corners, by 3": behind("Resize", None, np.array([1, 1, 3, 3]), coordinate_transformation_mode="align_corners"),
    "Resize, ceil": behind("Resize", None, np.array([1, 1, 2, 2]), nearest_mode="ceil", coordinate_transformation_mode="asymmetric"),
    **{
        f"Resize, linear, {mode}, {down:g} and {across:g}": behind(
            "Resize", None, np.array([1, 1, down, across]), mode="linear", coordinate_transformation_mode=mode, opset=19
        )
        for mode in ("half_pixel", "asymmetric", "pytorch_half_pixel")
        for down, across in ((1.5, 1.5), (0.75, 2.0), (1.0, 0.4), (2.5, 1.25))
    },
    "Pad with a number": of_picture("Pad", [0, 0, 1, 2, 0, 0, 0, 3], 0.5),
    "Pad with a number behind a Pad": (17, lambda writer: _padded_twice(writer)),
    "PRelu of channels above 1": behind("PRelu", np.array([0.1, 2, 1, -3]).reshape(4, 1, 1)),
    **{f"ReduceMean over {axes}": behind("ReduceMean", axes=axes) for axes in ([1], [2], [3], [1, 2], [1, 2, 3])},
    "ReduceMean over rows, no sides kept": behind("ReduceMean", axes=[-2], keepdims=0),
    "Softmax of each position": behind("Softmax", axis=1),
    "LogSoftmax of each position": behind("LogSoftmax", axis=-3),
    "LogSoftmax of values": of_values("LogSoftmax", axis=1),
    "Exp": behind("Exp"),
    "Sqrt": (17, lambda writer: writer.put("Sqrt", [writer.put("Abs", [writer.put("Tanh", ["picture"])])])),
    "MaxPool, a dilation of 1": behind("MaxPool", kernel_shape=[2, 2], dilations=[1, 1]),
    "MaxPool behind a Pad": (17, lambda writer: _padded(writer, "MaxPool", kernel_shape=[3, 3])),
    "Conv of the size of what was padded": (17, lambda writer: _conv_of_padded(writer)),
    "a Pad behind all": (17, lambda writer: _padded(writer, "")),
    "GlobalMaxPool of a wide map": behind("GlobalMaxPool"),
    "GlobalMaxPool": (17, lambda writer: writer.put("GlobalMaxPool", [_even(writer)])),
    "AveragePool of all": behind("AveragePool", kernel_shape=[9, 12]),
    "AveragePool of one": behind("AveragePool", kernel_shape=[1, 1]),
    "AveragePool of every second": behind("AveragePool", kernel_shape=[1, 1], strides=[2, 2]),
    "AveragePool of 2": behind("AveragePool", kernel_shape=[2, 2], strides=[2, 2]),
    "AveragePool of 9 and 11": behind("AveragePool", kernel_shape=[9, 11]),
    "AveragePool that counts padding": behind(
        "AveragePool", kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 2, 1], count_include_pad=1
    ),
    "AveragePool with a dilation": behind("AveragePool", kernel_shape=[2, 3], dilations=[3, 2], opset=19),
    "AveragePool whose last window ends with the map": behind(
        "AveragePool", kernel_shape=[3, 2], strides=[2, 2], ceil_mode=1
    ),
    "ReduceMean": behind("ReduceMean", axes=[2, 3]),
    "ReduceMean, no sides kept": behind("ReduceMean", axes=[3, -2], keepdims=0),
    "ReduceMean, an input": behind("ReduceMean", [2, 3], opset=18),
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
    "Add a number": behind("Add", 0.5),
    "Add one a channel": behind("Add", np.arange(4).reshape(4, 1, 1)),
    "Add to all sides": behind("Add", np.arange(4).reshape(1, 4, 1, 1)),
    "Sub": behind("Sub", np.arange(4).reshape(4, 1, 1)),
    "Add of the map": behind_constant("Add", np.arange(4).reshape(4, 1, 1)),
    "Mul of the map": behind_constant("Mul", np.arange(4).reshape(4, 1, 1)),
    "Mul": behind("Mul", np.arange(4).reshape(4, 1, 1)),
    "Div by 1 and others": behind("Div", np.arange(1, 5).reshape(4, 1, 1)),
    "Div of the picture": of_picture("Div", np.array([0.5, 1.0, 2.0]).reshape(3, 1, 1)),
    "Sub of the map": behind_constant("Sub", np.arange(4).reshape(4, 1, 1)),
    "Max with a number": behind("Max", np.array(0.25)),
    "Min with a number": behind_constant("Min", np.array(0.25)),
    "Neg": behind("Neg"),
    "PRelu of channels": behind("PRelu", np.array([0.1, -0.5, 1, 0]).reshape(4, 1, 1)),
    "Max of one": behind("Max"),
    **{f"{kind} of maps": _of_two(kind) for kind in ("Add", "Sub", "Max", "Min", "Sum", "Mul")},
    "Clip 0 6": behind("Clip", 0.0, 6.0),
    "Clip from 0": behind("Clip", 0.0),
    "Clip to infinity": behind("Clip", 0.0, np.array(np.inf)),
    "Clip to 5": behind("Clip", 0.0, 5.0),
    "Clip from -1": behind("Clip", -1.0, 6.0),
    "Clip without end": behind("Clip", None, 6.0),
    "LeakyRelu": behind("LeakyRelu", alpha=0.1),
    "LeakyRelu, its own slope": behind("LeakyRelu"),
    "Relu": behind("Relu"),
    "Sigmoid": behind("Sigmoid"),
    "Sigmoid of the picture": of_picture("Sigmoid"),
    "BatchNormalization": behind("BatchNormalization", np.arange(4), np.ones(4), np.arange(4), np.arange(4), epsilon=0.5),
    "BatchNormalization, its own epsilon": behind("BatchNormalization", np.ones(4), np.ones(4), np.ones(4), np.zeros(4)),
}  # fmt: skip


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


@pytest.mark.parametrize("name", MEANT)
def test_a_form_is_what_another_runtime_makes_of_it(name: str) -> None:
    opset, graph = MEANT[name]
    writer = Writer(opset)
    picture = pixels(3, HEIGHT, WIDTH)
    network = check_against_runtime(writer.model([graph(writer)], (1, 3, HEIGHT, WIDTH)), picture)
    for node, values in zip(network.nodes, run_float(network, picture), strict=True):
        assert values.shape == (node.shape.channels, node.shape.height, node.shape.width)


REFUSED: list[tuple[tuple[int, Graph], str]] = [
    (behind("Gather", [1], axis=0), "places are picked by a number or a list of them, along any axis but the batch's"),
    (behind("Gather", [[1]], axis=2), "places are picked by a number or a list of them, along any axis but the batch's"),
    (behind("Gather", [0, 1, 3], axis=2), "rows and columns are picked in steps of one length, 1 or more"),
    (behind("Gather", [3, 1], axis=2), "rows and columns are picked in steps of one length, 1 or more"),
    (behind("Gather", [9], axis=2), "there are no such places of 9"),
    (behind("Gather", [-13], axis=3), "there are no such places of 12"),
    (behind("Gather", [4], axis=1), "there are no such channels of 4"),
    (behind("Flatten", axis=5), "axis 5 is none of 4"),
    (behind("Flatten", axis=-5), "axis -5 is none of 4"),
    (behind("Flatten", axis=2), "its output must have the batch of 1 in front and as many values as (1, 4, 9, 12), not"),
    (behind("Reshape", [-1, -1]), "its shape (-1, -1) has more than one open side"),
    (behind("Reshape", [1, -2]), "its shape (1, -2) has more than one open side"),
    (behind("Reshape", [1, 5, -1]), "(1, 4, 9, 12) has no shape (1, 5, -1)"),
    (behind("Reshape", [0, -1], allowzero=1), "(1, 4, 9, 12) has no shape (0, -1)"),
    (behind("Reshape", [1, 4, 9]), "its output must have the batch of 1 in front"),
    (behind("Reshape", np.array([1.0, -1.0])), "whole numbers are needed, not float32"),
    (of_values("Squeeze", [1]), "axes (1,) of (1, 4, 1, 1) are not all 1"),
    (of_values("Squeeze", [2, 4]), "axis 4 is none of 4"),
    (of_values("Squeeze", [0]), "its output must have the batch of 1 in front"),
    (behind("Transpose", perm=[0, 1, 3, 2]), "perm (0, 1, 3, 2) of (1, 4, 9, 12) changes the order of the values"),
    (behind("Transpose", perm=[0, 1, 1, 2]), "perm (0, 1, 1, 2) does not order 4 sides"),
    (_of_two("Concat", axis=2), "maps are joined along their channels, axis 1"),
    (behind("Slice", [5], [2], [2], [-1]), "steps of rows and columns are 1 or more, not -1"),
    (behind("Slice", [0], [4], [1], [0]), "a step is not 0"),
    (behind("Slice", [1], [1], [0]), "a batch of 1 is not cut"),
    (behind("Slice", [3], [2], [1]), "places 3…1 are none"),
    (behind("Slice", [1, 1], [2], [1]), "starts, ends, axes and steps must be as many"),
    (behind("Slice", None, [2], [1]), "starts are missing"),
    (behind("Slice", [0], [4], [4]), "axis 4 is none of 4"),
    (_split((2, 3), 2), "maps are split along their channels, axis 1"),
    (_split((2, 2), 2, axis=1), "(2, 2) do not make 5"),
    (_split((5,), 2, axis=1), "(5,) do not make 5"),
    (_split(None, 2, opset=18, axis=1, num_outputs=0), "num_outputs must be 1…5, not 0"),
    (of_picture("Pad", [0, 0, 1, 1, 0, 0, 1, 1], mode="reflect"), "padding is with one number, mode constant"),
    (of_picture("Pad", [0, 0, 1, 1, 0, 0, 1, 1], np.inf), "padding is with a number, not with inf"),
    (of_picture("Pad", [0, 0, -1, 0, 0, 0, 0, 0], 0.5), "padding is 0 or more, not"),
    (of_picture("Pad", [0, 1, 0, 0, 0, 0, 0, 0]), "rows and columns alone are padded, not channels"),
    (of_picture("Pad", [0, 0, 0, 0, 1, 0, 0, 0]), "rows and columns alone are padded, not channels"),
    (of_picture("Pad", [1, 1]), "there must be 8 pads, not 2"),
    (of_picture("Pad", [0, 0, -1, 0, 0, 0, 0, 0]), "padding is 0…255 on a side, not [-1, 0, 0, 0]"),
    (of_picture("Pad", [0, 0, 0, 0, 0, 0, 0, 256]), "padding is 0…255 on a side, not [0, 0, 0, 256]"),
    (behind("SpaceToDepth", blocksize=2), "blocksize 2 must divide height and width of 4×9×12"),
    (behind("SpaceToDepth", blocksize=0), "blocksize 0 must divide height and width"),
    (behind("Resize", None, np.array([1, 1, 2, 2]), mode="cubic"), "pixels are repeated or interpolated (mode nearest, linear), not 'cubic'"),
    (behind("Resize", None, np.array([1, 2, 2, 2])), "height and width become 1 or more, batch and channels stay"),
    (behind("Resize", None, np.array([2, 2])), "there must be a factor for each of four sides"),
    (
        behind("Resize", None, np.array([1, 1, 2, 2]), coordinate_transformation_mode="tf_crop_and_resize"),
        "coordinate_transformation_mode 'tf_crop_and_resize' with nearest_mode 'round_prefer_floor' is not known",
    ),
    (behind("Conv", window(3, 3, channels=4), strides=[10, 9], pads=[9] * 4), "of strides 10 and 9 a window has at most 64 rows and columns, not"),
    (behind("Conv", window(3, 3, channels=4), strides=[0, 1]), "strides are two, 1 or more, not (0, 1)"),
    (behind("Conv", window(10, 3, channels=4)), "the window (10, 3) is larger than the padded map 4×9×12"),
    (behind("Conv", window(3, 3, channels=4), pads=[0, -1, 0, 0]), "pads are four, 0 or more, not (0, -1, 0, 0)"),
    (behind("Conv", window(3, 3, channels=4), pads=[1, 1]), "pads are four, 0 or more, not (1, 1)"),
    (behind("Conv", window(3, 3, channels=4), auto_pad="SAME"), "auto_pad 'SAME' is not known"),
    (behind("Conv", window(3, 3, channels=4), dilations=[0, 1]), "dilations are two, 1 or more, not (0, 1)"),
    (behind("Conv", window(3, 3, channels=4), dilations=[2]), "dilations are two, 1 or more, not (2,)"),
    (behind("Conv", window(3, 3, channels=4), dilations=[32, 1]), "a dilated window has at most 64 rows and columns, not [65, 3]"),
    (behind("Conv", window(3, 3, channels=2)), "1 groups of 2 channels do not fit 4, 4 filters"),
    (behind("Conv", window(3, 3, channels=2, filters=3), group=2), "2 groups of 2 channels do not fit 4, 3 filters"),
    (behind("Conv", window(3, 3, channels=4), group=0), "0 groups of 4 channels do not fit 4, 4 filters"),
    (behind("Conv", window(3, channels=4)), "weights have 4 sides, as many as the map, not 3"),
    (behind("Conv", window(3, 3, channels=4), np.arange(3)), "there must be 4 biases, not (3,)"),
    (behind("MaxPool", kernel_shape=[2]), "a pool's window has two sides, not (2,)"),
    (behind("MaxPool", kernel_shape=[2, 2], pads=[0, 2, 0, 0]), "padding would put a whole window of 2×2 outside the map"),
    (_of_two("Div"), "Div of two maps is no layer; a map and a constant would do"),
    (behind("Max", np.array([1, 2]).reshape(2, 1, 1)), "there must be one number or 4, not 2"),
    (behind("Max", np.zeros((0, 1, 1))), "input 1 must be one number, not 0"),
    (behind_constant("Div", np.array(2.0)), "the constant must be the second input"),
    (behind("AveragePool", kernel_shape=[2, 2], pads=[0, 2, 0, 0]), "one of its windows lies outside the map"),
    (behind("AveragePool", kernel_shape=[2]), "a pool has a window, not (2,)"),
    (behind("ReduceMean", axes=[0, 2]), "it is over channels, height or width, not over axes (0, 2)"),
    (behind("ReduceMean"), "it is over channels, height or width, not over axes all"),
    (behind("Softmax", axis=2), "it is over the channels of a position, not over axis 2 of (1, 4, 9, 12) in opset 17"),
    (behind("Softmax", axis=1, opset=11), "it is over the channels of a position, not over axis 1 of (1, 4, 9, 12) in opset 11"),
    (of_values("Softmax", axis=2), "it is over the channels of a position"),
    (of_row("MatMul", np.ones(4)), "the matrix has two sides, not 1"),
    (of_row("MatMul", np.ones((5, 4))), "a matrix of 5 rows multiplies 5 values in one row, not (1, 4)"),
    (of_row("Gemm", np.ones((4, 4)), transA=1), "the picture's side is not transposed (transA 0)"),
    (of_row("Gemm", np.ones((4, 5)), np.ones(4)), "there must be one number or 5, not 4"),
    (behind("Div", np.array([1, 2, 0, 3]).reshape(4, 1, 1)), "a divisor is 0"),
    (behind("Add", np.ones((1, 1, 12))), "a constant is one number, or one for each channel, not (1, 1, 12) to (1, 4, 9, 12)"),
    (behind("Add", np.ones((1, 1, 4, 1, 1))), "a constant is one number, or one for each channel"),
    (behind("Add", np.ones((3, 1, 1))), "there must be one number or 4, not 3"),
    (behind("BatchNormalization", *[np.ones(4)] * 4, training_mode=1), "it must be exported for inference (training_mode 0)"),
    (behind("BatchNormalization", *[np.ones(4)] * 3, np.array([1, 1, -1, 1])), "variances and epsilon must not be below 0"),
    (behind("BatchNormalization", *[np.ones(4)] * 4, epsilon=0.0), "variances and epsilon must not be below 0"),
    (behind("MaxPool", kernel_shape=["a", "b"]), "its attribute kernel_shape must be a list of whole numbers"),
    (behind("MaxPool", kernel_shape=2), "its attribute kernel_shape must be a list of whole numbers, not 2"),
    (behind("Concat", axis=1.5), "its attribute axis must be a whole number, not 1.5"),
    (behind("LeakyRelu", alpha="much"), "its attribute alpha must be a number, not 'much'"),
    (behind("Resize", None, np.array([1, 1, 2, 2]), mode=3), "its attribute mode must be a text, not 3"),
]  # fmt: skip


@pytest.mark.parametrize(("form", "sentence"), REFUSED, ids=[sentence for _, sentence in REFUSED])
def test_a_form_that_is_no_layer_says_why(form: tuple[int, Graph], sentence: str) -> None:
    opset, graph = form
    writer = Writer(opset)
    with pytest.raises(NetworkError) as caught:
        network_of(writer.model([graph(writer)], (1, 3, HEIGHT, WIDTH)), "net.onnx", "net")
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [("value_float", 2.5), ("value_int", 2), ("value_floats", [2.5] * 4), ("value_ints", [1, 2, 3, 4])],
)
def test_every_kind_of_constant(key: str, value: Any) -> None:
    """Numbers are float32 or int64; whole ones are cast before they are added."""
    writer = Writer()
    writer.nodes.append(onnx.helper.make_node("Constant", [], ["number"], **{key: value}))
    number = writer.put("Cast", ["number"], to=onnx.TensorProto.FLOAT)
    shape = writer.put("Reshape", [number, writer.constant([-1, 1, 1], np.int64)])
    source = writer.put("Add", [convolved(writer, "picture", 3, 4), shape])
    check_against_runtime(writer.model([source], (1, 3, HEIGHT, WIDTH)), pixels(3, HEIGHT, WIDTH))


def test_where_the_greatest_was_is_not_told() -> None:
    writer = Writer()
    first = writer.put("MaxPool", [convolved(writer, "picture", 3, 4)], outputs=2, kernel_shape=[2, 2])
    check_against_runtime(writer.model([first], (1, 3, HEIGHT, WIDTH)), pixels(3, HEIGHT, WIDTH))
    with pytest.raises(NetworkError, match="where the greatest was is not told"):
        network_of(writer.model([first, first + "_"], (1, 3, HEIGHT, WIDTH)), "net.onnx", "net")


@pytest.mark.parametrize(
    ("shape", "sentence"),
    [
        ((1, 3, 8, 8, 8), "must be pictures, batch × channels × height × width, signals, batch × channels × length"),
        ((3, 8, 8), "must be of one picture, not 3: export it with a batch of 1, or any"),
        ((2, 3, 8, 8), "must be of one picture, not 2: export it with a batch of 1, or any"),
        ((1, 3, 8, "width"), "leaves its height and width open: give --size WIDTHxHEIGHT"),
        ((1, 3, "height", 8), "leaves its height and width open"),
        ((1, "channels", 8, 8), "must have 1…65,536 channels and sides of at most 8,192, not 0×8×8"),
        ((1, 65537, 8, 8), "must have 1…65,536 channels and sides of at most 8,192, not 65537×8×8"),
        ((1, 3, 8, 8193), "must have 1…65,536 channels and sides of at most 8,192, not 3×8×8193"),
    ],
)
def test_a_picture_has_four_sides_within_limits(shape: tuple[int | str, ...], sentence: str) -> None:
    writer = Writer()
    with pytest.raises(NetworkError) as caught:
        network_of(writer.model([_ended(writer, "picture")], shape), "net.onnx", "net")
    assert f"net.onnx: the input 'picture' {sentence}" in str(caught.value)


@pytest.mark.parametrize("batch", [0, 1, "batch"])
def test_a_batch_is_1_or_any(batch: int | str) -> None:
    writer = Writer()
    network = network_of(writer.model([_ended(writer, "picture")], (batch, 3, 8, 8192)), "net.onnx", "net")
    assert str(network.input_shape) == "3×8×8192"


def test_the_first_opset_that_is_read() -> None:
    for opset, is_read in ((6, False), (7, True)):
        writer = Writer(opset)
        model = writer.model([_ended(writer, "picture")], (1, 3, 8, 8))
        if is_read:
            network_of(model, "net.onnx", "net")
        else:
            with pytest.raises(NetworkError, match=r"must be of opset 7 to \d+, not 6"):
                network_of(model, "net.onnx", "net")


def test_a_softmax_s_axis_is_the_last_where_none_is_named() -> None:
    """Since opset 13. Of four sides that is the width, of one value: no layer."""
    writer = Writer(13)
    opset, graph = of_values("Softmax", opset=13)
    assert opset == writer.opset
    with pytest.raises(NetworkError, match="it is over the channels of a position"):
        network_of(writer.model([graph(writer)], (1, 3, HEIGHT, WIDTH)), "net.onnx", "net")


@pytest.mark.parametrize("sides", [(1, -1), (1, -1, 1, 1), (1, -1, 2)], ids=str)
@pytest.mark.parametrize("kind", ["Softmax", "LogSoftmax"])
def test_a_softmax_of_a_flattened_map_is_not_of_each_position(kind: str, sides: tuple[int, ...]) -> None:
    """It is over values of rows and columns too, however many sides these are looked at as; a map of one position has
    no others."""
    writer = Writer()
    flat = writer.put(kind, [writer.put("Reshape", ["picture", writer.constant(sides, np.int64)])], axis=1)
    with pytest.raises(NetworkError, match=rf"position, not over {12 if len(sides) != 3 else 6} values of a map of 3×"):
        network_of(writer.model([flat], (1, 3, 2, 2)), "net.onnx", "net")
    if len(sides) != 3:
        pixel = network_of(writer.model([flat], (1, 3, 1, 1)), "net.onnx", "net")
        assert pixel.nodes[-1].op == Softmax(logarithm=kind == "LogSoftmax")


def test_weights_of_other_floats_are_float32() -> None:
    writer = Writer()
    for kind in (np.float64, np.float16):
        weights = writer.constant(window(1, 1, channels=3, filters=2), kind)
        op = network_of(writer.model([writer.put("Conv", ["picture", weights])]), "net.onnx", "net").nodes[-1].op
        assert isinstance(op, Convolution)
        assert op.weights.dtype == np.float32
        np.testing.assert_allclose(op.weights, window(1, 1, channels=3, filters=2), rtol=1e-3)


def test_a_length_is_a_map_of_one_row() -> None:
    """Every operator of one side against onnxruntime, and the sides that its layers have."""
    writer = Writer()
    kernel = writer.constant(RANDOM.normal(size=(6, 2, 3)))
    first = writer.put("Conv", ["picture", kernel], group=2, strides=[2], pads=[2, 1], dilations=[2], kernel_shape=[3])
    norm = [writer.constant(values) for values in (np.arange(6), np.ones(6), np.arange(6), np.full(6, 2))]
    first = writer.put("Relu", [writer.put("BatchNormalization", [first, *norm])])
    pooled = writer.put("MaxPool", [first], kernel_shape=[3], strides=[2], pads=[1, 1])
    mean = writer.put("AveragePool", [first], kernel_shape=[3], strides=[2], pads=[1, 1], count_include_pad=1)
    both = writer.put("Concat", [pooled, mean], axis=1)
    part = writer.put("Slice", [both, *(writer.constant([number], np.int64) for number in (2, 9, 1))])
    around = writer.put("Pad", [part, writer.constant([0, 0, 1, 0, 0, 2], np.int64)])
    last = writer.put("Conv", [around, writer.constant(RANDOM.normal(size=(4, 7, 2)))])
    ends = [writer.put("GlobalMaxPool", [last]), writer.put("ReduceMean", [last], axes=[2], keepdims=0)]
    model = writer.model(ends, (1, 4, 33))
    network = network_of(model, "net.onnx", "net")
    assert {node.shape.height for node in network.nodes} == {1}
    picture = RANDOM.random((4, 1, 33)).astype(np.float32)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    outputs = run_float(network, picture)
    for index, wanted in zip(network.outputs, session.run(None, {"picture": picture.reshape(1, 4, 33)}), strict=True):
        np.testing.assert_allclose(outputs[index].ravel(), wanted.ravel(), rtol=1e-4, atol=1e-5)


def test_values_are_a_map_of_one_place() -> None:
    writer = Writer()
    matrix = writer.constant(RANDOM.normal(size=(5, 4)))
    row = writer.put("Relu", [writer.put("MatMul", ["picture", matrix])])
    model = writer.model([writer.put("Concat", [row, "picture"], axis=1)], (1, 5))
    network = network_of(model, "net.onnx", "net")
    # Of the picture a concat joins what a convolution gives.
    assert [str(node.shape) for node in network.nodes] == ["5×1×1", "4×1×1", "5×1×1", "9×1×1"]


@pytest.mark.parametrize(
    ("kind", "attributes", "sentence"),
    [
        ("Conv", {"strides": [1, 1]}, "strides of a length are 1, not (1, 1)"),
        ("Conv", {"pads": [1]}, "pads of a length are 2, not (1,)"),
        ("MaxPool", {"kernel_shape": [2, 2]}, "kernel_shape of a length are 1, not (2, 2)"),
    ],
)
def test_numbers_of_a_length(kind: str, attributes: dict[str, Any], sentence: str) -> None:
    writer = Writer()
    kernel = [writer.constant(np.ones((2, 3, 3)))] if kind == "Conv" else []
    model = writer.model([writer.put(kind, ["picture", *kernel], **attributes)], (1, 3, 9))
    with pytest.raises(NetworkError) as caught:
        network_of(model, "net.onnx", "net")
    assert sentence in str(caught.value)
