"""Tests that PyTorch's Threshold, exported as a comparison and a Where, becomes one function, and near misses do
not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

from boards.errors import SeveralFaultsError, UnsupportedError
from cnn.onnx.network import network_of
from cnn.onnx.operators import UNKNOWN
from cnn.ops import Activate
from tests.support.cases import cases
from tests.support.errors import faults_of, raises
from tests.support.onnx.networks import check_against_runtime, convolved, pixels
from tests.support.onnx.writer import Writer

SHAPE = (1, 3, 9, 7)


def chosen(kind: str, kept: int, other: float = 0.0, operator: bool = False, compared: bool = True) -> Any:
    """Write a Where on a comparison of a map with 0.4.

    Args:
        kind: the comparison.
        kept: the input of the Where that is the map, 1 or 2.
        other: the constant that is its other input.
        operator: whether the threshold is a Constant operator.
        compared: whether the map itself is compared, or its negative.
    """
    writer = Writer()
    source = convolved(writer, "picture", 3, 4)
    number = "threshold" if operator else writer.constant(0.4)
    if operator:
        value = numpy_helper.from_array(np.array(0.4, np.float32))
        writer.nodes.append(helper.make_node("Constant", [], [number], value=value))
    condition = writer.put(kind, [source if compared else writer.put("Neg", [source]), number])
    branches = [source, writer.constant(other)]
    last = writer.put("Where", [condition, *(branches if kept == 1 else branches[::-1])])
    return writer.model([last], SHAPE)


@cases("operator", [False, True])
@cases("kind, kept", [("LessOrEqual", 2), ("Greater", 1)])
def test_operator_where_by_a_threshold_becomes_one_function(kind: str, kept: int, operator: bool) -> None:
    network = check_against_runtime(chosen(kind, kept, operator=operator), pixels(*SHAPE[1:]))
    (op,) = (node.op for node in network.nodes if isinstance(node.op, Activate))
    assert op.function == "thresholded_relu"
    assert op.parameters == pytest.approx((0.4,))


@cases(
    "model",
    [
        chosen("LessOrEqual", 1),
        chosen("Greater", 2),
        chosen("Less", 2),
        chosen("Greater", 1, other=20.0),
        chosen("Greater", 1, compared=False),
    ],
)
def test_operator_where_of_another_form_is_refused(model: Any) -> None:
    with raises(SeveralFaultsError) as caught:
        network_of(model, "net.onnx", "net")
    kinds = [error.subject.split()[0] for error in faults_of(caught.value, UnsupportedError, reason=UNKNOWN)]
    assert kinds[1:] == ["Where"]
