"""Tests of QONNX and FINN-ONNX files: every tensor against the package qonnx."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cnn.integer_model import run_node
from cnn.onnx.network import read_model
from tests.support.cases import cases
from tests.support.onnx.trained import DOMAIN, SIDES, few_bits, of_one_bit, streamlined, unstreamlined

Array = np.ndarray[Any, Any]


@cases("make", [few_bits, of_one_bit, streamlined, unstreamlined])
def test_tensor_equals_qonnx(make: Any) -> None:
    wrapper = pytest.importorskip("qonnx.core.modelwrapper", reason="qonnx executes its own operators")
    from qonnx.core.onnx_exec import execute_onnx

    model = make()
    read = read_model(model, "net.onnx", "net")
    assert read.quantized is not None
    picture = np.random.default_rng(5).integers(0, 256, SIDES[1:], np.uint8)
    full = wrapper.ModelWrapper(model).transform(_shapes())
    feed = {"picture": (picture[None] / np.float32(255)).astype(np.float32)}
    theirs = execute_onnx(full, feed, return_full_exec_context=True)
    quants = [node.output[0] for node in model.graph.node if node.domain == DOMAIN]
    values: list[Array | None] = [picture]
    steps = {}
    for index, node in enumerate(read.quantized.nodes[1:], 1):
        ours = run_node(node, read.quantized.nodes, values, picture)
        for name in (name for name in quants if read.tensors.get(name) == index):
            first = np.moveaxis(theirs[name], -1, 1) if name in read.last else theirs[name]
            exact = np.rint(first.reshape(ours.shape) / node.type.scale) + node.type.zero_point
            steps[name] = int(np.abs(ours.astype(np.int64) - exact).max())
            ours = exact.astype(ours.dtype)
        values.append(ours)
    assert len(steps) >= 2
    assert max(steps.values()) <= (0 if make is not few_bits else 1), steps


def _shapes() -> Any:
    from qonnx.transformation.infer_shapes import InferShapes

    return InferShapes()
