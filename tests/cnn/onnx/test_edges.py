"""Tests of Pad operators that repeat values of the map, against onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boards.errors import (
    ChoiceError,
    InvalidValueError,
    RangeError,
    SeveralFaultsError,
    SystolicError,
    UnsupportedError,
)
from cnn.maps import Padding
from cnn.onnx.network import network_of
from cnn.ops import Convolution, MaxPool, Pad
from scheduler.streaming.refusals import check_layers
from scheduler.systolic.layers import lower
from tests.support.cases import cases
from tests.support.errors import raises, refused
from tests.support.executed import executed
from tests.support.low_bit import Layers
from tests.support.onnx.networks import check_against_runtime, convolved, pixels
from tests.support.onnx.quantising import Form, quantised, steps_on_noise
from tests.support.onnx.writer import Writer

SIDES = (1, 3, 7, 6)


def repeated(
    repeats: tuple[int, ...], kind: str = "MaxPool", mode: str = "edge", first: Any = None, **attributes: Any
) -> Any:
    """Write a map of both signs, a Pad, and an operator that reads the padded map.

    Args:
        repeats: rows and columns added above, left, below and right.
        kind: the operator that reads the padded map.
        mode: the mode of the Pad.
        first: zero padding before the Pad, in the same order.
        attributes: attributes of the reading operator.
    """
    writer = Writer()
    source = convolved(writer, "picture", 3, 4, pads=[1] * 4)
    if first is not None:
        source = writer.put("Pad", [source, writer.constant([0, 0, *first[:2], 0, 0, *first[2:]], np.int64)])
    around = writer.constant([0, 0, *repeats[:2], 0, 0, *repeats[2:]], np.int64)
    source = writer.put("Pad", [source, around], mode=mode)
    inputs = [source, writer.constant(np.ones((2, 4, 3, 3)))] if kind == "Conv" else [source]
    source = writer.put("Identity", [writer.put(kind, inputs, **attributes)])
    weights = np.random.default_rng(1).normal(0, 0.3, (5, 2 if kind == "Conv" else 4, 1, 1))
    return writer.model([writer.put("Conv", [source, writer.constant(weights)])], SIDES)


TINY: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [1, 1]}
FORMS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((0, 0, 1, 1), TINY),  # as exported tiny detectors write it
    ((1, 1, 0, 0), TINY),
    ((2, 1, 2, 1), {"kernel_shape": [3, 3], "strides": [2, 2]}),
    ((1, 2, 0, 1), {"kernel_shape": [3, 4], "strides": [2, 2], "pads": [1, 1, 1, 0]}),
    ((0, 0, 0, 0), TINY),
]


@cases("pads, attributes", FORMS, ids=str)
def test_edge_padding_before_a_max_pool_equals_onnxruntime(pads: tuple[int, ...], attributes: dict[str, Any]) -> None:
    model = repeated(pads, **attributes)
    check_against_runtime(model, pixels(*SIDES[1:]))
    kinds = [type(node.op) for node in network_of(model, "net.onnx", "net").nodes[1:]]
    assert kinds in ([Convolution, MaxPool, Convolution], [Convolution, MaxPool, MaxPool, Convolution])


AROUND: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((1, 1, 1, 1), {"kind": "Conv", "mode": "reflect"}),
    ((1, 1, 1, 1), {"kind": "Conv", "mode": "edge"}),
    ((0, 2, 3, 1), {"kind": "Conv", "mode": "wrap"}),
    ((3, 0, 2, 5), {"kind": "Conv", "mode": "reflect", "strides": [2, 2]}),
    ((4, 9, 0, 1), {"kind": "Relu", "mode": "edge"}),
    ((2, 1, 2, 1), {"mode": "reflect", **TINY}),
]


@cases("pads, attributes", AROUND, ids=str)
def test_pad_that_repeats_values_becomes_a_layer(pads: tuple[int, ...], attributes: dict[str, Any]) -> None:
    model = repeated(pads, **attributes)
    check_against_runtime(model, pixels(*SIDES[1:]))
    (op,) = (node.op for node in network_of(model, "net.onnx", "net").nodes if isinstance(node.op, Pad))
    assert (op.mode, op.padding) == (attributes["mode"], Padding(*pads))


def test_pad_of_many_values_becomes_a_layer_for_rows_and_one_for_columns() -> None:
    """Use a Pad that would need 8 × 9 copies as one layer."""
    model = repeated((5, 4, 2, 4), kind="Conv", mode="reflect")
    check_against_runtime(model, pixels(*SIDES[1:]))
    ops = [node.op for node in network_of(model, "net.onnx", "net").nodes if isinstance(node.op, Pad)]
    assert ops == [Pad(Padding(top=5, bottom=2), "reflect"), Pad(Padding(left=4, right=4), "reflect")]


@cases("mode", ["edge", "reflect", "wrap"])
def test_pad_of_size_0_is_ignored(mode: str) -> None:
    check_against_runtime(repeated((0, 0, 0, 0), mode=mode, **TINY), pixels(*SIDES[1:]))


def test_zero_padding_before_edge_padding_equals_onnxruntime() -> None:
    check_against_runtime(repeated((0, 0, 1, 1), first=(1, 0, 1, 1), **TINY), pixels(*SIDES[1:]))


@cases("form", [Form(), Form(activations="QUInt8")], ids=str)
def test_quantised_pad_of_values_is_within_a_step_of_onnxruntime(form: Form, tmp_path: Path) -> None:
    model = repeated((1, 2, 1, 1), kind="Conv", mode="reflect")
    steps = steps_on_noise(quantised(model, tmp_path, form, SIDES))
    assert len(steps) >= 3
    assert max(steps.values()) <= 1, steps


@cases("form", [Form(), Form(activations="QUInt8")], ids=str)
def test_quantised_edge_padding_before_a_max_pool_is_within_a_step_of_onnxruntime(form: Form, tmp_path: Path) -> None:
    steps = steps_on_noise(quantised(repeated((0, 0, 1, 1), **TINY), tmp_path, form, SIDES))
    assert len(steps) >= 2
    assert max(steps.values()) <= 1, steps


@cases(
    "pads, options, fault",
    [
        (
            (1, 1, 1, 1),
            {"mode": "mirror", **TINY},
            ChoiceError("mode", "mirror", ("constant", "edge", "reflect", "wrap"), where="Pad '/Pad_1'"),
        ),
        ((7, 1, 1, 1), {"mode": "reflect", **TINY}, RangeError("padding", 7, 0, 6, where="Pad '/Pad_1'")),
        ((1, 1, 1, 7), {"mode": "wrap", "kind": "Conv"}, RangeError("padding", 7, 0, 6, where="Pad '/Pad_1'")),
        ((-1, 0, 0, 1), TINY, RangeError("padding", -1, low=0, where="Pad '/Pad_1'")),
        (
            (0, 0, 2, 0),
            TINY,
            InvalidValueError("padding", (0, 0, 2, 0), "less than the window of 2×2", where="MaxPool '/MaxPool_2'"),
        ),
        (
            (0, 0, 1, 1),
            {**TINY, "ceil_mode": 1},
            UnsupportedError(
                "MaxPool '/MaxPool_2'",
                "after a Pad of mode edge it must have no dilations, ceil_mode or auto_pad",
            ),
        ),
    ],
    ids=str,
)
def test_wrong_pad_of_values_is_refused(pads: tuple[int, ...], options: dict[str, Any], fault: SystolicError) -> None:
    with refused(fault):
        network_of(repeated(pads, **options), "net.onnx", "net")


@pytest.mark.engine
@pytest.mark.parametrize("style", ["streaming", "systolic"])
def test_design_with_edge_padding_before_a_max_pool_equals_golden_model(style: str, tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(repeated((0, 0, 1, 1), **TINY).SerializeToString())
    assert executed(tmp_path / "net.onnx", style).mismatches == 0


@pytest.mark.engine
@pytest.mark.parametrize("engine", ["hls", "rtl"])
@pytest.mark.parametrize(("pads", "attributes"), AROUND[:4], ids=str)
def test_array_design_with_pad_of_values_equals_golden_model(
    engine: str, pads: tuple[int, ...], attributes: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "net.onnx").write_bytes(repeated(pads, **attributes).SerializeToString())
    assert executed(tmp_path / "net.onnx", "systolic", engine=engine).mismatches == 0


def test_pipeline_with_pad_of_values_is_refused(tmp_path: Path) -> None:
    network = network_of(repeated((1, 1, 1, 1), kind="Conv", mode="reflect"), "net.onnx", "net")
    reason = "it pads in mode reflect, for which no block exists; use the systolic style"
    with refused(UnsupportedError("pad 'pad1'", reason, where="net.onnx: Pad 'pad1'")):
        check_layers(network)


def test_array_with_too_many_copies_of_a_pad_is_refused() -> None:
    network = Layers(3, 40, 40, "INT8", "INT8").conv(4, 1).around("reflect", Padding(11, 11, 11, 11)).network()
    with raises(SeveralFaultsError) as caught:
        lower(network)
    (fault,) = caught.value.errors
    assert isinstance(fault, UnsupportedError)
    assert fault.reason.startswith("it repeats values of a map in 529 copies, and the array makes at most 512;")
