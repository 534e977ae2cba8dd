"""A classifier that was quantised by training, as an ONNX file."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from tests.support.onnx.trained import DOMAIN, Trained

SIDE, CLASSES, CHOSEN = 32, 10, 3


NAMES = [f"kind {number}" for number in range(CLASSES)]


def sums_of_classes() -> tuple[Trained, str]:
    """Return the writer of a 4-bit network as Brevitas exports it, and the name of its last sums.

    The sums have one scale for all classes.
    """
    writer, random = Trained(), np.random.default_rng(5)
    last, channels = writer.quant("picture", 8, 1 / 255, signed=0), 3
    for filters in (8, 16):
        kernel = writer.constant(random.normal(0, 0.3, (filters, channels, 3, 3)))
        kernel = writer.quant(kernel, 4, np.full((filters, 1, 1, 1), 0.08), narrow=1)
        last = writer.put("Conv", [last, kernel], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        last = writer.quant(writer.put("Relu", [writer.normed(last, filters)]), 4, 0.15, signed=0)
        last = writer.put("MaxPool", [last], kernel_shape=[4, 4], strides=[4, 4])
        channels = filters
    columns = random.normal(0, 0.3, (64, CLASSES))
    matrix = writer.quant(writer.constant(columns - columns.mean(axis=0)), 4, 0.08, narrow=1)  # equal class means
    return writer, writer.put("MatMul", [writer.put("Flatten", [last]), matrix])


def file_of(writer: Trained, *outputs: str) -> Any:
    model = writer.model(outputs, (1, 3, SIDE, SIDE))
    model.opset_import.append(onnx.helper.make_opsetid(DOMAIN, 1))
    return model
