"""Files whose last axis is the channels, and a comparison with onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime

from cnn.float_model import run_float
from cnn.onnx.network import read_model
from tests.support.onnx.networks import pixels
from tests.support.onnx.outputs import outputs_of
from tests.support.onnx.writer import FIRST, Writer

SIDES = (1, 8, 12, 3)
"""The shape of the input of these files: batch, rows, columns, channels."""


def turned(writer: Writer, source: str, order: tuple[int, ...] = FIRST) -> str:
    """Append a Transpose and return its output. By default, it moves the last axis to the front."""
    return writer.put("Transpose", [source], perm=order)


def check(model: Any, sides: tuple[int, ...] = SIDES) -> Any:
    """Check every output against onnxruntime in the file's order of values, and return what the reader made."""
    picture = pixels(*sides[1:])
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"picture": picture[None]})
    read = read_model(model, "net.onnx", "net")
    shape = read.network.input_shape
    first = np.moveaxis(picture, -1, 0) if "picture" in read.last else picture
    maps = run_float(read.network, np.ascontiguousarray(first).reshape(shape.channels, shape.height, shape.width))
    outputs = outputs_of(read.network, maps)
    for value, right in zip(model.graph.output, expected, strict=True):
        ours = outputs[value.name]
        np.testing.assert_allclose(ours.ravel(), right.ravel(), rtol=0, atol=1e-4 * max(1.0, np.abs(right).max()))
    return read
