"""Tests of ReduceMax and ReduceSum over channels, rows and columns, against onnxruntime and in designs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from boards.errors import InvalidValueError, SystolicError
from cnn.onnx.network import network_of
from cnn.ops import Add, MaxPool
from tests.fuzz.graphs.run import difference
from tests.support.cases import cases
from tests.support.errors import refused
from tests.support.executed import executed
from tests.support.onnx.writer import Writer

RANDOM = np.random.default_rng(71)
SIDES = (1, 3, 6, 5)


def reduced(writer: Writer, kind: str, source: str, axes: tuple[int, ...], keep: int) -> str:
    """Write the reduction with its axes as an attribute or, in later opsets, as an input."""
    later = writer.opset >= (13 if kind == "ReduceSum" else 18)
    named = [writer.constant(axes, np.int64)] if later else []
    attributes: dict[str, Any] = {} if later else {"axes": axes}
    return writer.put(kind, [source, *named], keepdims=keep, **attributes)


def after_convolution(kind: str, axes: tuple[int, ...], keep: int, opset: int, channels: int = 7) -> Any:
    writer = Writer(opset)
    source = writer.put("Conv", ["picture", writer.constant(RANDOM.normal(0, 0.4, (channels, 3, 2, 2)))])
    model = writer.model([writer.put("Sigmoid", [reduced(writer, kind, source, axes, keep)])], SIDES)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return model


@cases("opset", [11, 18])
@cases("kind", ["ReduceMax", "ReduceSum"])
@cases("axes, keep", [((1,), 1), ((2, 3), 1), ((2, 3), 0), ((-1,), 1), ((2,), 1), ((1, 2, 3), 0), ((1, -2), 1)])
def test_reduction_equals_onnxruntime(kind: str, axes: tuple[int, ...], keep: int, opset: int) -> None:
    assert difference(after_convolution(kind, axes, keep, opset), RANDOM.random(SIDES).astype(np.float32)) < 1e-5


@cases("channels, steps", [(1, 0), (2, 1), (3, 2), (8, 3), (9, 4)])
def test_reduce_max_over_channels_halves_them_in_steps(channels: int, steps: int) -> None:
    model = after_convolution("ReduceMax", (1,), 1, 18, channels)
    nodes = network_of(model, "net.onnx", "net").nodes
    assert sum(isinstance(node.op, Add) for node in nodes) == 2 * steps
    assert difference(model, RANDOM.random(SIDES).astype(np.float32)) < 1e-5


def test_reduce_max_over_all_positions_becomes_a_pool() -> None:
    nodes = network_of(after_convolution("ReduceMax", (2, 3), 1, 18), "net.onnx", "net").nodes
    assert [type(node.op) for node in nodes[2:3]] == [MaxPool]


@cases("kind", ["ReduceMax", "ReduceSum"])
def test_reduction_with_channels_last_equals_onnxruntime(kind: str) -> None:
    writer = Writer(18)
    weights = writer.constant(RANDOM.normal(0, 0.4, (7, 3, 2, 2)))
    first = writer.put("Conv", [writer.put("Transpose", ["picture"], perm=[0, 3, 1, 2]), weights])
    source = writer.put("Transpose", [first], perm=[0, 2, 3, 1])
    outputs = [reduced(writer, kind, source, axes, 1) for axes in ((3,), (1, 2))]
    model = writer.model(outputs, (1, 6, 5, 3))
    assert difference(model, RANDOM.random((1, 6, 5, 3)).astype(np.float32)) < 1e-5


def attention() -> Any:
    """Write CBAM: a map is weighted by the maximum and mean per channel, and then by those per position."""
    writer = Writer(18)
    source = writer.put("Relu", [writer.put("Conv", ["picture", writer.constant(RANDOM.normal(0, 0.4, (6, 3, 2, 2)))])])
    pools = [reduced(writer, kind, source, (2, 3), 1) for kind in ("ReduceMax", "ReduceMean")]
    gate = writer.put(
        "Add", [writer.put("Conv", [p, writer.constant(RANDOM.normal(0, 1, (6, 6, 1, 1)))]) for p in pools]
    )
    source = writer.put("Mul", [source, writer.put("Sigmoid", [gate])])
    planes = [reduced(writer, kind, source, (1,), 1) for kind in ("ReduceMean", "ReduceMax")]
    weights = writer.constant(RANDOM.normal(0, 0.4, (1, 2, 3, 3)))
    plane = writer.put("Conv", [writer.put("Concat", planes, axis=1), weights], pads=[1] * 4)
    source = writer.put("Mul", [source, writer.put("Sigmoid", [plane])])
    return writer.model([reduced(writer, "ReduceSum", source, (2, 3), 1)], SIDES)


def test_attention_over_positions_and_channels_equals_onnxruntime() -> None:
    assert difference(attention(), RANDOM.random(SIDES).astype(np.float32)) < 1e-5


@pytest.mark.engine
@pytest.mark.parametrize("style", ["systolic", "streaming"])
def test_design_with_attention_equals_golden_model(style: str, tmp_path: Path) -> None:
    onnx.save(attention(), tmp_path / "net.onnx")
    assert executed(tmp_path / "net.onnx", style).mismatches == 0


@cases(
    "kind, axes, fault",
    [
        (
            "ReduceMax",
            (0,),
            InvalidValueError(
                "axes", (0,), "channels, height or width, not the batch", where="ReduceMax '/ReduceMax_1'"
            ),
        ),
        (
            "ReduceSum",
            (),
            InvalidValueError(
                "axes", (0, 1, 2, 3), "channels, height or width, not the batch", where="ReduceSum '/ReduceSum_1'"
            ),
        ),
    ],
)
def test_reduction_over_the_batch_is_refused(kind: str, axes: tuple[int, ...], fault: SystolicError) -> None:
    with refused(fault):
        network_of(after_convolution(kind, axes, 1, 18), "net.onnx", "net")
