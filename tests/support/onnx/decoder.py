"""A decoder, whose maps become larger layer by layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.onnx.networks import convolved
from tests.support.onnx.writer import Writer

SIDES = (1, 3, 5, 7)
"""The input of the decoder has these sides."""


def decoder(mode: str = "DCR", pads: tuple[int, ...] = (1, 1, 1, 1)) -> Any:
    """Return a network with a depth to space and two transposed convolutions, one after the other."""
    writer, random = Writer(), np.random.default_rng(2)
    last = writer.put("Relu", [convolved(writer, "picture", 3, 8, strides=[2, 2], pads=[1, 1, 1, 1])])
    last = writer.put("DepthToSpace", [last], blocksize=2, mode=mode)
    arrays = [writer.constant(random.normal(0, 0.3, (2, 3, 4, 4))), writer.constant(random.normal(size=3))]
    last = writer.put("Relu", [writer.put("ConvTranspose", [last, *arrays], strides=[2, 2], pads=pads)])
    arrays = [writer.constant(random.normal(0, 0.3, (3, 1, 2, 2)))]
    last = writer.put("ConvTranspose", [last, *arrays], strides=[2, 2], group=3)
    return writer.model([writer.put("Relu", [convolved(writer, last, 3, 2)])], SIDES)
