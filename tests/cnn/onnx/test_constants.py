"""Tests of operators on constants that exporters write before a layer, against onnxruntime, and of their limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import numpy_helper

from boards.errors import InvalidValueError, RangeError, SystolicError
from cnn.onnx.network import network_of
from tests.fuzz.graphs.run import difference
from tests.support.cases import cases
from tests.support.errors import refused
from tests.support.onnx.writer import Writer

RANDOM = np.random.default_rng(53)
SIDES = (1, 4, 9)


def integers(writer: Writer, *values: int) -> str:
    return writer.constant(values, np.int64)


def pads_of_old_exporters(writer: Writer) -> str:
    """Write torch.nn.functional.pad(x, (2, 0)) as PyTorch's TorchScript exporter does.

    The exporter appends zeros for all other sides to the given pads, last side first, and then reverses the order.
    """
    given = integers(writer, 2, 0)
    length = writer.put("Gather", [writer.put("Shape", [given]), integers(writer, 0)], axis=0)
    missing = writer.put("Sub", [writer.put("Mul", [integers(writer, 3), integers(writer, 2)]), length])
    zeros = writer.put("ConstantOfShape", [missing], value=tensor_of(np.zeros(1, np.int64)))
    pairs = writer.put("Reshape", [writer.put("Concat", [given, zeros], axis=0), integers(writer, -1, 2)])
    ends = [integers(writer, end) for end in (-1, -(2**63) + 1, 0, -1)]
    turned = writer.put("Transpose", [writer.put("Slice", [pairs, *ends])], perm=[1, 0])
    pads = writer.put("Cast", [writer.put("Reshape", [turned, integers(writer, -1)])], to=7)
    padded = writer.put("Pad", ["picture", pads])
    return writer.put("Conv", [padded, writer.constant(RANDOM.normal(0, 0.4, (5, 4, 3)))])


def shares(writer: Writer) -> str:
    """Write a sum weighted by trained numbers, which are clipped at 0 and divided by their sum (BiFPN)."""
    weights = writer.put("Relu", [writer.constant([0.7, -0.2, 0.4])])
    axes: dict[str, Any] = {"axes": [0]} if writer.opset < 13 else {}
    over = [integers(writer, 0)] if writer.opset >= 13 else []
    total = writer.put("Add", [writer.put("ReduceSum", [weights, *over], keepdims=1, **axes), writer.constant(1e-4)])
    share = writer.put("Div", [weights, total])
    maps = [writer.put("Conv", ["picture", writer.constant(RANDOM.normal(0, 0.4, (4, 4, 1)))]) for _ in range(3)]
    parts = [
        writer.put("Mul", [name, writer.put("Gather", [share, writer.constant(i, np.int64)])])
        for i, name in enumerate(maps)
    ]
    return writer.put("Sum", parts)


def repeated(writer: Writer) -> str:
    """Write a constant per channel, made by Range, Tile, Where and Expand."""
    axes: dict[str, Any] = {"axes": [0, 2]} if writer.opset < 13 else {}
    over = [integers(writer, 0, 2)] if writer.opset >= 13 else []
    steps = writer.put("Cast", [writer.put("Range", [integers_scalar(writer, each) for each in (0, 4, 2)])], to=1)
    tiled = writer.put("Tile", [steps, integers(writer, 2)])
    chosen = writer.put("Where", [writer.put("Less", [tiled, writer.constant(1.0)]), writer.constant(-0.5), tiled])
    column = writer.put("Expand", [writer.put("Unsqueeze", [chosen, *over], **axes), integers(writer, 1, 4, 1)])
    return writer.put("Mul", [writer.put("Relu", ["picture"]), column])


def integers_scalar(writer: Writer, value: int) -> str:
    return writer.constant(value, np.int64)


def tensor_of(values: Any) -> Any:
    return numpy_helper.from_array(values)


@cases("opset", [11, 17])
@cases("graph", [pads_of_old_exporters, shares, repeated])
def test_operators_on_constants_equal_onnxruntime(graph: Callable[[Writer], str], opset: int) -> None:
    writer = Writer(opset)
    model = writer.model([graph(writer)], SIDES)
    del model.graph.output[0].type.tensor_type.shape.dim[3:]
    assert difference(model, RANDOM.random(SIDES).astype(np.float32)) < 1e-5


HOSTILE: dict[str, tuple[Callable[[Writer], str], SystolicError]] = {
    "sides": (
        lambda w: w.put("ConstantOfShape", [integers(w, 1 << 40)]),
        RangeError(
            "the number of values that it computes from constants",
            1099511627776,
            high=65536,
            where="ConstantOfShape '/ConstantOfShape_0'",
        ),
    ),
    "sides below 0": (
        lambda w: w.put("ConstantOfShape", [integers(w, -(1 << 20), -(1 << 20))]),
        RangeError(
            "the number of values that it computes from constants",
            1099511627776,
            high=65536,
            where="ConstantOfShape '/ConstantOfShape_0'",
        ),
    ),
    "expanded": (
        lambda w: w.put("Expand", [w.constant([1.0]), integers(w, 1 << 30, 1)]),
        RangeError(
            "the number of values that it computes from constants", 1073741824, high=65536, where="Expand '/Expand_0'"
        ),
    ),
    "repeated": (
        lambda w: w.put("Tile", [w.constant([1.0]), integers(w, 1 << 30)]),
        RangeError(
            "the number of values that it computes from constants", 1073741824, high=65536, where="Tile '/Tile_0'"
        ),
    ),
    "counted": (
        lambda w: w.put("Range", [w.constant(x) for x in (0.0, 1e9, 0.5)]),
        RangeError(
            "the number of values that it computes from constants", 2000000000, high=65536, where="Range '/Range_0'"
        ),
    ),
    "in no steps": (
        lambda w: w.put("Range", [w.constant(x) for x in (0.0, 1.0, 0.0)]),
        InvalidValueError(
            "start, limit and step", (0.0, 1.0, 0.0), "finite, with a step other than 0", where="Range '/Range_0'"
        ),
    ),
    "of no number": (
        lambda w: w.put("Range", [w.constant(x) for x in (0.0, np.nan, 1.0)]),
        InvalidValueError(
            "start, limit and step", (0.0, np.nan, 1.0), "finite, with a step other than 0", where="Range '/Range_0'"
        ),
    ),
}


@cases("name", HOSTILE)
def test_constant_that_is_too_large_is_refused_before_it_is_computed(name: str) -> None:
    graph, fault = HOSTILE[name]
    writer = Writer()
    model = writer.model([writer.put("Add", ["picture", graph(writer)])], SIDES)
    with refused(fault):
        network_of(model, "net.onnx", "net")
