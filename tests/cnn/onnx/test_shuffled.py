"""Tests of shuffles of channels, rows and columns, and of selections with channels last, against onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from boards.errors import SeveralFaultsError, SystolicError, UnsupportedError
from cnn.onnx.network import network_of
from cnn.ops import Convolution, DepthToSpace, Reorg
from tests.fuzz.graphs.run import difference
from tests.support.cases import cases
from tests.support.errors import raises_among
from tests.support.executed import executed
from tests.support.onnx.outputs import check_the_hosts, with_a_reader
from tests.support.onnx.quantising import Form, quantised, steps_on_noise
from tests.support.onnx.writer import Writer

RANDOM = np.random.default_rng(41)
SIDES = (1, 12, 4, 6)

SHUFFLES: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    "channels": ((1, 3, 4, 4, 6), (0, 2, 1, 3, 4), SIDES),
    "channels of flat maps": ((1, 2, 6, 24), (0, 2, 1, 3), SIDES),
    "three parts of them": ((1, 2, 3, 2, 4, 6), (0, 3, 1, 2, 4, 5), SIDES),
    "pixel_shuffle": ((1, 3, 2, 2, 4, 6), (0, 1, 4, 2, 5, 3), (1, 3, 8, 12)),
    "pixel_shuffle of rows": ((1, 4, 3, 1, 4, 6), (0, 1, 4, 2, 5, 3), (1, 4, 12, 6)),
    "depth to space": ((1, 2, 2, 3, 4, 6), (0, 3, 4, 1, 5, 2), (1, 3, 8, 12)),
    "pixel_unshuffle": ((1, 12, 2, 2, 3, 2), (0, 1, 3, 5, 2, 4), (1, 48, 2, 3)),
    "space to depth": ((1, 12, 2, 2, 3, 2), (0, 3, 5, 1, 2, 4), (1, 48, 2, 3)),
}


def shuffled(view: tuple[int, ...], order: tuple[int, ...], sides: tuple[int, ...]) -> Any:
    """Write a shuffle between two convolutions."""
    writer = Writer()
    weights = [writer.constant(RANDOM.normal(0, 0.4, shape)) for shape in ((12, 12, 1, 1), (5, sides[1], 1, 1))]
    source = writer.put("Relu", [writer.put("Conv", ["picture", weights[0]])])
    source = writer.put("Reshape", [source, writer.constant(view, np.int64)])
    source = writer.put("Transpose", [source], perm=order)
    source = writer.put("Reshape", [source, writer.constant(sides, np.int64)])
    return writer.model([writer.put("Conv", [source, weights[1]])], SIDES)


@cases("name", SHUFFLES)
def test_shuffle_equals_onnxruntime(name: str) -> None:
    assert difference(shuffled(*SHUFFLES[name]), RANDOM.random(SIDES).astype(np.float32)) < 1e-5


def test_shuffle_uses_only_the_layers_that_it_needs() -> None:
    kinds = {
        name: [type(node.op) for node in network_of(shuffled(*SHUFFLES[name]), "net.onnx", "net").nodes[2:-1]]
        for name in SHUFFLES
    }
    assert kinds["channels"] == kinds["channels of flat maps"] == [Convolution]
    assert kinds["pixel_shuffle"] == [Convolution, DepthToSpace]
    assert kinds["depth to space"] == [DepthToSpace]
    assert kinds["pixel_unshuffle"] == [Reorg, Convolution]
    assert kinds["space to depth"] == [Reorg]


def in_parts(view: tuple[int, ...], order: tuple[int, ...], sides: tuple[int, ...]) -> Any:
    """Write the same shuffle as a sequence of Transposes of two neighbouring sides, with Reshapes between them."""
    writer, left, now = Writer(), list(order), list(range(len(view)))
    weights = [writer.constant(RANDOM.normal(0, 0.4, shape)) for shape in ((12, 12, 1, 1), (5, sides[1], 1, 1))]
    source = writer.put("Relu", [writer.put("Conv", ["picture", weights[0]])])
    for place, axis in enumerate(left):
        for at in range(now.index(axis), place, -1):
            front, back = (int(np.prod([view[i] for i in part])) for part in (now[1 : at - 1], now[at + 1 :]))
            around = [1, front, view[now[at - 1]], view[now[at]], back]
            source = writer.put("Reshape", [source, writer.constant(around, np.int64)])
            source = writer.put("Transpose", [source], perm=(0, 1, 3, 2, 4))
            now[at - 1], now[at] = now[at], now[at - 1]
    source = writer.put("Reshape", [source, writer.constant(sides, np.int64)])
    return writer.model([writer.put("Conv", [source, weights[1]])], SIDES)


@cases("name", SHUFFLES)
def test_consecutive_transposes_become_one_shuffle(name: str) -> None:
    """Write a reorg as SkyNet does."""
    model = in_parts(*SHUFFLES[name])
    assert difference(model, RANDOM.random(SIDES).astype(np.float32)) < 1e-5
    kinds = [type(node.op) for node in network_of(model, "net.onnx", "net").nodes[2:-1]]
    assert len(kinds) <= 3
    assert set(kinds) <= {Convolution, DepthToSpace, Reorg}


def test_transposes_that_undo_each_other_are_removed() -> None:
    writer = Writer()
    source = writer.put("Conv", ["picture", writer.constant(RANDOM.normal(0, 0.4, (12, 12, 1, 1)))])
    for _ in range(2):
        source = writer.put("Transpose", [source], perm=(0, 1, 3, 2))
    model = writer.model([writer.put("Conv", [source, writer.constant(RANDOM.normal(0, 0.4, (2, 12, 1, 1)))])], SIDES)
    assert difference(model, RANDOM.random(SIDES).astype(np.float32)) < 1e-5
    assert len(network_of(model, "net.onnx", "net").nodes) == 3


@cases("kind", ["Relu", "Concat", "Conv", "output"])
def test_values_in_an_unsupported_order_are_refused(kind: str) -> None:
    writer = Writer()
    kernel = writer.constant(RANDOM.normal(0, 0.4, (12, 12, 1, 1)))
    source = writer.put("Transpose", [writer.put("Conv", ["picture", kernel])], perm=(0, 1, 3, 2))
    inputs = {"Relu": [source], "Concat": [source, source], "Conv": [source, kernel]}
    if kind == "output":
        assert check_the_hosts([writer.model([source], SIDES)], RANDOM.random(SIDES[1:]).astype(np.float32)) == 1
        source = with_a_reader(writer, source)
    else:
        source = writer.put(kind, inputs[kind], **({"axis": 1} if kind == "Concat" else {}))
        source = with_a_reader(writer, source)
    reason = "perm (0, 1, 3, 2) of (1, 12, 4, 6) reorders values in a way that no layer does"
    with pytest.raises(SystolicError) as caught:
        network_of(writer.model([source], SIDES), "net.onnx", "net")
    faults = caught.value.errors if isinstance(caught.value, SeveralFaultsError) else [caught.value]
    assert [getattr(fault, "reason", "") for fault in faults] == [reason]


@cases(
    "view, order",
    [
        ((1, 12, 6, 4), (0, 1, 3, 2)),
        ((1, 3, 4, 4, 6), (0, 1, 3, 2, 4)),
        ((1, 12, 4, 2, 3), (0, 1, 2, 4, 3)),
        ((1, 12, 2, 2, 2, 3), (0, 1, 3, 5, 2, 4)),
    ],
)
def test_unsupported_shuffle_is_refused(view: tuple[int, ...], order: tuple[int, ...]) -> None:
    with raises_among(UnsupportedError, reason=f"perm {order} of {view} reorders values in a way that no layer does"):
        network_of(shuffled(view, order, SIDES), "net.onnx", "net")


@cases("name", ["channels", "pixel_shuffle", "pixel_unshuffle"])
def test_quantised_shuffle_is_within_a_step_of_onnxruntime(name: str, tmp_path: Path) -> None:
    steps = steps_on_noise(quantised(shuffled(*SHUFFLES[name]), tmp_path, Form(), SIDES))
    assert max(steps.values()) <= 1, steps


@cases("keeps", [0, 1])
@cases("axis", [-1, 3])
def test_selection_with_channels_last_equals_onnxruntime(axis: int, keeps: int) -> None:
    for kind in ("ArgMax", "TopK"):
        writer = Writer()
        kernel = writer.constant(RANDOM.normal(0, 0.4, (7, 12, 3, 3)))
        last = writer.put("Transpose", [writer.put("Conv", ["picture", kernel])], perm=(0, 2, 3, 1))
        if kind == "ArgMax":
            ends = [writer.put(kind, [last], axis=axis, keepdims=keeps)]
        else:
            values = writer.put(kind, [last, writer.constant([3], np.int64)], outputs=2, axis=axis)
            ends = [values, values + "_"]
        model = writer.model(ends, SIDES)
        for output in model.graph.output:
            output.type.tensor_type.ClearField("shape")
            if output.name.endswith("_") or kind == "ArgMax":
                output.type.tensor_type.elem_type = onnx.TensorProto.INT64
        assert difference(model, RANDOM.random(SIDES).astype(np.float32)) < 1e-5


def with_unequal_sides(half: int) -> Any:
    """Write one half or the other of the operators on windows and maps that are not square."""
    writer = Writer(19)

    def convolved(source: str, filters: int, channels: int, *window: int, **attributes: Any) -> str:
        weights = writer.constant(RANDOM.normal(0, 0.4, (filters, channels, *window)))
        return writer.put("Conv", [source, weights], **attributes)

    last = writer.put("Relu", [convolved("picture", 6, 3, 3, 2, strides=[2, 1], pads=[1, 0, 1, 1])])
    if half == 0:
        last = writer.put("MaxPool", [last], kernel_shape=[2, 3], strides=[1, 2], pads=[1, 1, 0, 1])
        last = writer.put("Pad", [last, writer.constant([0, 0, 1, 0, 0, 0, 0, 2], np.int64), writer.constant(0.5)])
        last = writer.put(
            "PRelu", [convolved(last, 6, 1, 1, 3, group=6), writer.constant(np.arange(-2, 4).reshape(6, 1, 1))]
        )
        last = writer.put(
            "AveragePool", [last], kernel_shape=[2, 2], strides=[1, 2], pads=[1, 0, 0, 0], count_include_pad=1
        )
    else:
        sizes = writer.constant([1, 6, 6, 12], np.int64)
        last = writer.put("Resize", [last, "", "", sizes], mode="nearest")
        last = writer.put("MaxPool", [last], kernel_shape=[3, 1], strides=[2, 2])
        last = writer.put("ReduceMean", [last, writer.constant([2], np.int64)], keepdims=1)
    return writer.model([convolved(last, 5, 6, 1, 1)], (1, 3, 8, 8))


@cases("half", [0, 1])
def test_windows_and_maps_that_are_not_square_equal_onnxruntime(half: int) -> None:
    assert difference(with_unequal_sides(half), RANDOM.random((1, 3, 8, 8)).astype(np.float32)) < 1e-5


@pytest.mark.engine
@pytest.mark.parametrize("style", ["systolic", "streaming"])
@pytest.mark.parametrize("half", [0, 1])
def test_design_with_windows_that_are_not_square_equals_golden_model(half: int, style: str, tmp_path: Path) -> None:
    onnx.save(with_unequal_sides(half), tmp_path / "net.onnx")
    result = executed(tmp_path / "net.onnx", style)
    assert result.mismatches == 0 < sum(layer.values for layer in result.layers)
