"""Files with scales, zero points and thresholds that a test chooses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cnn.onnx.network import OnnxNetwork, read_model
from tests.support.onnx.integers import Integers
from tests.support.onnx.trained import DOMAIN, Trained


def read(model: Any) -> OnnxNetwork:
    """Read a model under the name net.onnx."""
    return read_model(model, "net.onnx", "net")


class Grids(Integers):
    """A writer that puts float operators between integers."""

    def floats_of(self, integers: list[str]) -> str:
        """Append a DequantizeLinear and return its output."""
        return self.put("DequantizeLinear", integers)

    def integers_of(self, floats: str, grid: list[str]) -> list[str]:
        """Append a QuantizeLinear and return its integers with their grid."""
        return [self.put("QuantizeLinear", [floats, *grid]), *grid]

    def conv(self, source: str = "", weights: str = "") -> str:
        """Append a Conv of four filters on the pixels or on ``source``, and return its output."""
        source = source or self.floats_of(self.pixels())
        weights = weights or self.floats_of([self.whole(-9, 9, 4, 3, 1, 1), *self.grid(0.02)])
        return self.put("Conv", [source, weights], kernel_shape=[1, 1])


def requantised(grid: Callable[[Grids], list[str]]) -> Any:
    """Return a file that quantises a convolution with the grid that a function writes."""
    writer = Grids()
    return writer.floats(writer.integers_of(writer.conv(), grid(writer)))


QUANTISES = "QuantizeLinear '/QuantizeLinear_4'"
"""The name of the QuantizeLinear of ``requantised`` in errors."""


def reaching(edges: Any, **options: Any) -> Any:
    """Return a model with thresholds after a convolution of the image."""
    writer = Trained()
    last = writer.quant("picture", 8, 1 / 255, signed=0)
    kernel = writer.constant(np.array([1, 2, 3, -1, 0, 1]).reshape(2, 3, 1, 1))
    last = writer.put("Conv", [last, kernel], kernel_shape=[1, 1])
    inputs = [last, writer.constant(edges)]
    return writer.file(writer.put("MultiThreshold", inputs, domain=DOMAIN, **{"out_dtype": "UINT2", **options}))
