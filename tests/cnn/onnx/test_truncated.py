"""Tests of QONNX's Trunc after average pools, convolutions and integers: every integer equals qonnx's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from boards.errors import (
    ChoiceError,
    InvalidValueError,
    MismatchError,
    RangeError,
    SystolicError,
    UnsupportedError,
)
from cnn.integer_model import run_node
from cnn.onnx.network import read_model
from cnn.ops import QConvolution
from tests.support.cases import cases
from tests.support.errors import refused
from tests.support.executed import executed
from tests.support.onnx.trained import DOMAIN, Trained, weights

SIDES = (1, 3, 8, 12)
OF_ANY_SIGN = ("FLOOR", "CEIL")
OF_NO_SIGN = ("UP", "DOWN", "HALF_UP", "HALF_DOWN")


class Truncated(Trained):
    """Writer of Trunc in either version."""

    version = 1

    def trunc(self, source: str, scale: float, before: int, bits: int, given: float = 0.0, **attributes: Any) -> str:
        """Write a Trunc. A scale ``given`` for the output selects version 2."""
        inputs = [source, self.constant(scale), self.constant(0.0), self.constant(float(before))]
        inputs += [self.constant(given)] * bool(given)
        self.version = 2 if given else 1
        return self.put("Trunc", [*inputs, self.constant(float(bits))], domain=DOMAIN, **attributes)

    def levels(self, bits: int = 4, signed: int = 0) -> str:
        """Return a convolution with outputs in steps of 1/8."""
        kernel = self.quant(self.constant(weights(6, 3, 3, 3)), 4, 0.1)
        last = self.put("Conv", [self.quant("picture", 8, 1 / 128), kernel], kernel_shape=[3, 3], pads=[1] * 4)
        return self.quant(last if signed else self.put("Relu", [last]), bits, 1 / 8, signed=signed)

    def file(self, *outputs: str) -> Any:
        """Return the model with both operator domains."""
        model = self.model(outputs, SIDES)
        model.opset_import.append(helper.make_opsetid(DOMAIN, self.version))
        return model


def _averaged(writer: Truncated, source: str, kind: str) -> tuple[str, int]:
    """Write the sum that Brevitas exports for an average, and return it with its additional bits."""
    if kind == "global":
        return writer.put("Mul", [writer.put("GlobalAveragePool", [source]), writer.constant(96.0)]), 7
    if kind == "whole":
        pool = writer.put("AveragePool", [source], kernel_shape=[8, 12])
        return writer.put("Mul", [pool, writer.constant(96.0)]), 7
    pool = writer.put("AveragePool", [source], kernel_shape=[4, 4], strides=[4, 4])
    return writer.put("Mul", [pool, writer.constant(16.0)]), 4


def pooled(kind: str, mode: str, given: bool = False, signed: int = 0) -> Any:
    """Write TruncAvgPool2d, and a classifier after it."""
    writer = Truncated()
    source, more = _averaged(writer, writer.levels(signed=signed), kind)
    attributes: dict[str, Any] = {"signed": signed, "narrow": 0} if given else {}
    scale = 2.0**more / 8 if given else 0.0
    last = writer.trunc(source, 1 / 8, 4 + more, 4, scale, rounding_mode=mode, **attributes)
    kernel = writer.quant(writer.constant(weights(5, 6, 1, 1)), 8, 0.01)
    return writer.file(writer.put("Relu", [writer.put("Conv", [last, kernel], kernel_shape=[1, 1])]))


def steps(model: Any, kind: str = "Trunc") -> list[int]:
    """Return the difference of each output of that operator from qonnx's, in steps, for qonnx's integers as inputs."""
    wrapper = pytest.importorskip("qonnx.core.modelwrapper", reason="qonnx executes its own operators")
    from qonnx.core.onnx_exec import execute_onnx
    from qonnx.transformation.infer_shapes import InferShapes

    read = read_model(model, "net.onnx", "net")
    assert read.quantized is not None
    picture = np.random.default_rng(5).integers(0, 256, SIDES[1:], np.uint8)
    feed = {"picture": (picture[None] / np.float32(255)).astype(np.float32)}
    theirs = execute_onnx(wrapper.ModelWrapper(model).transform(InferShapes()), feed, return_full_exec_context=True)
    names = {read.tensors[node.output[0]]: node for node in model.graph.node if node.output[0] in read.tensors}
    values: list[Any] = [picture]
    far = []
    for index, node in enumerate(read.quantized.nodes[1:], 1):
        ours = run_node(node, read.quantized.nodes, values, picture)
        if index in names and names[index].op_type in ("Quant", kind):
            exact = np.rint(theirs[names[index].output[0]].reshape(ours.shape) / node.type.scale) + node.type.zero_point
            if names[index].op_type == kind:
                assert len(np.unique(exact)) > 2  # some values must be rounded
                far.append(int(np.abs(ours.astype(np.int64) - exact).max()))
            ours = exact.astype(ours.dtype)
        values.append(ours)
    return far


@cases("given", [False, True], ids=["version 1", "version 2"])
@cases("kind", ["global", "whole", "windows"])
@cases("mode", [*OF_ANY_SIGN, *OF_NO_SIGN])
def test_average_pool_of_brevitas_equals_qonnx(kind: str, mode: str, given: bool) -> None:
    assert steps(pooled(kind, mode, given)) == [0]


@cases("mode", OF_ANY_SIGN)
@cases("kind", ["global", "windows"])
def test_average_pool_of_signed_values_equals_qonnx(kind: str, mode: str) -> None:
    assert steps(pooled(kind, mode, True, signed=1)) == [0]
    assert steps(pooled(kind, mode, False, signed=1)) == [0]


@cases("mode", ["ROUND", "HALF_EVEN"])
def test_average_pool_with_halves_to_even_is_within_a_step_of_qonnx(mode: str) -> None:
    assert max(steps(pooled("windows", mode))) <= 1


@cases("mode", [*OF_ANY_SIGN, "HALF_UP"])
def test_trunc_of_integers_equals_qonnx(mode: str) -> None:
    writer = Truncated()
    last = writer.trunc(writer.levels(bits=8, signed=int(mode == "FLOOR")), 1 / 8, 8, 5, rounding_mode=mode)
    assert steps(writer.file(last)) == [0]


def test_trunc_of_a_convolution_equals_qonnx() -> None:
    """Use version 2, which also clips to its bits."""
    writer = Truncated()
    kernel = writer.quant(writer.constant(weights(5, 6, 1, 1)), 4, 0.125)
    last = writer.put("Conv", [writer.levels(), kernel], kernel_shape=[1, 1])
    last = writer.trunc(last, 1 / 64, 12, 4, 1 / 8, rounding_mode="FLOOR", signed=1, narrow=1)
    assert steps(writer.file(last)) == [0]


def test_floor_of_an_average_pool_has_the_exact_bias() -> None:
    """Check ⌊acc / 2^4⌋ = (acc − 8 + 8) >> 4."""
    read = read_model(pooled("windows", "FLOOR"), "net.onnx", "net")
    assert read.quantized is not None
    op = next(node.op for node in read.quantized.nodes if node.name == "average1")
    assert isinstance(op, QConvolution)
    by: Any = op.requantiser
    assert (np.abs(op.weights) == 1).all()
    assert ((by.multiplier << 4) == (1 << by.shift)).all()


@pytest.mark.engine
@pytest.mark.parametrize("style", ["systolic", "streaming"])
@pytest.mark.parametrize("kind", ["windows", "global"])
def test_design_with_trunc_equals_golden_model(kind: str, style: str, tmp_path: Path) -> None:
    onnx.save(pooled(kind, "FLOOR"), tmp_path / "net.onnx")
    result = executed(tmp_path / "net.onnx", style)
    assert result.mismatches == 0


def _one(change: Any) -> Any:
    writer = Truncated()
    return writer.file(writer.put("Relu", [change(writer)]))


@cases(
    "change, fault",
    [
        (
            lambda w: w.trunc(w.levels(), 1 / 4, 8, 4),
            MismatchError("its scale", 0.25, 0.125, where="qonnx.custom_op.general.Trunc '/Trunc_5'"),
        ),
        (
            lambda w: w.trunc(w.levels(), 1 / 8, 4, 8),
            RangeError("bits left out", -4, 0, 24, where="qonnx.custom_op.general.Trunc '/Trunc_5'"),
        ),
        (
            lambda w: w.trunc(w.levels(), 1 / 8, 32, 2),
            RangeError("bits left out", 30, 0, 24, where="qonnx.custom_op.general.Trunc '/Trunc_5'"),
        ),
        (
            lambda w: w.trunc(w.levels(), 1 / 8, 4, 4, 1e30),
            RangeError("bits left out", 103, 0, 24, where="qonnx.custom_op.general.Trunc '/Trunc_5'"),
        ),
        (
            lambda w: w.trunc(w.levels(), 1 / 8, 4, 4, float("nan")),
            InvalidValueError(
                "a scale", np.nan, "finite and above 0", where="qonnx.custom_op.general.Trunc '/Trunc_5'"
            ),
        ),
        (
            lambda w: w.trunc(w.levels(), 0.0, 4, 4),
            InvalidValueError("a scale", 0.0, "finite and above 0", where="qonnx.custom_op.general.Trunc '/Trunc_5'"),
        ),
        (
            lambda w: w.trunc(w.levels(), 1 / 8, 20, 20),
            RangeError(
                "bits of unsigned integers of a map", 20, 1, 15, where="qonnx.custom_op.general.Trunc '/Trunc_5'"
            ),
        ),
        (
            lambda w: w.trunc(w.levels(8), 1 / 8, 5, 4),
            RangeError("an integer in 4 bits", 127, 0, 15, where="qonnx.custom_op.general.Trunc '/Trunc_5'"),
        ),
        (
            lambda w: w.trunc(w.levels(), 1 / 8, 8, 4, rounding_mode="NEAR"),
            ChoiceError(
                "rounding_mode",
                "NEAR",
                ("FLOOR", "CEIL", "ROUND", "HALF_EVEN", "DOWN", "ROUND_TO_ZERO", "UP", "HALF_UP", "HALF_DOWN"),
                where="qonnx.custom_op.general.Trunc '/Trunc_5'",
            ),
        ),
        (
            lambda w: w.trunc(w.levels(signed=1), 1 / 8, 8, 4, rounding_mode="DOWN"),
            ChoiceError(
                "rounding_mode of values below 0",
                "DOWN",
                ("FLOOR", "CEIL", "ROUND", "HALF_EVEN"),
                where="qonnx.custom_op.general.Trunc '/Trunc_4'",
            ),
        ),
        (
            lambda w: w.trunc(w.put("Sigmoid", [w.levels()]), 1 / 8, 8, 4),
            UnsupportedError(
                "qonnx.custom_op.general.Trunc '/Trunc_6'",
                "integers must be before it, or a sum of integers that nothing else reads",
            ),
        ),
        (
            lambda w: w.trunc("picture", 1 / 255, 8, 4),
            UnsupportedError(
                "qonnx.custom_op.general.Trunc '/Trunc_0'",
                "integers must be before it, or a sum of integers that nothing else reads",
            ),
        ),
        (
            lambda w: w.put("Trunc", [w.levels(), *map(w.constant, (1 / 8, 1.0, 8.0, 4.0))], domain=DOMAIN),
            InvalidValueError("its zero point", 1.0, "0", where="qonnx.custom_op.general.Trunc '/Trunc_5'"),
        ),
    ],
)
def test_wrong_trunc_is_refused(change: Any, fault: SystolicError) -> None:
    with refused(fault):
        read_model(_one(change), "net.onnx", "net")
