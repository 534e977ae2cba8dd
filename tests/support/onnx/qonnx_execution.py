"""The results of the package qonnx for networks that were exported as QONNX or FINN-ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cnn.integer_model import run_integer
from cnn.onnx.file import parsed
from cnn.onnx.quantised.export import to_onnx
from cnn.quantized import QuantizedNetwork

Array = np.ndarray[Any, Any]


def executed(data: bytes, picture: Array) -> list[Array]:
    """Return the outputs that qonnx computes for an image. The test is skipped if qonnx is not installed."""
    wrapper = pytest.importorskip("qonnx.core.modelwrapper", reason="qonnx executes its own operators")
    from qonnx.core.onnx_exec import execute_onnx
    from qonnx.transformation.infer_shapes import InferShapes

    model = wrapper.ModelWrapper(parsed(data, "exported.onnx")).transform(InferShapes())
    feed = {"picture": (picture[None] / np.float32(255)).astype(np.float32)}
    return list(execute_onnx(model, feed).values())


def steps_off(network: QuantizedNetwork, dialect: str) -> int:
    """Return the greatest difference of the last layer's integers from qonnx in steps."""
    shape = network.input_shape
    picture = np.random.default_rng(8).integers(0, 256, (shape.channels, shape.height, shape.width), np.uint8)
    last = network.nodes[-1]
    (floats,) = executed(to_onnx(network, dialect), picture)
    theirs = np.rint(floats.reshape(-1) / last.type.scale) + last.type.zero_point
    ours = run_integer(network, picture)[-1]
    assert ours is not None
    return int(np.abs(theirs - ours.reshape(-1)).max())
