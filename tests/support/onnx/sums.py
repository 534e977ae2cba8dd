"""Files with a function that reads quantised sums, and images that produce every possible sum."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from cnn.integer_model import run_integer
from cnn.onnx.network import OnnxNetwork
from tests.support.onnx.writer import Writer

Array = np.ndarray[Any, Any]

WEIGHTS = (1, 7, -7)
"""The weights. With pixels of 0 to 255, their sums are all integers from LOW to HIGH."""
LOW, HIGH = -7 * 255, 8 * 255
SIDE = 62
"""The rows and columns of an image that has a position for each of these sums."""


class OfSums(Writer):
    """A file of pixels from 0 to 255 and a 1×1 convolution of integers, for a function that reads its sums."""

    def stepped(self, source: str, scale: float, zero: int = 0, bits: int = 8, signed: bool = True) -> str:
        """Append a quantiser and a dequantiser.

        For fewer than 8 bits, a Clip of the integers is between them. 16 bits require opset 21.
        """
        kind = np.dtype(f"{'' if signed else 'u'}int{max(bits, 8)}").type
        grid = [self.constant(scale), self.constant(zero, kind)]
        integers = self.put("QuantizeLinear", [source, *grid])
        if bits < 8:
            low = -(1 << bits - 1) if signed else 0
            ends = [self.constant(low, kind), self.constant(low + (1 << bits) - 1, kind)]
            integers = self.put("Clip", [integers, *ends])
        return self.put("DequantizeLinear", [integers, *grid])

    def sums(self, step: float, offsets: Sequence[int] = (0, -300), gains: Sequence[float] = ()) -> str:
        """Append the convolution, with one channel per offset, which is added to its sums.

        Args:
            step: The float value of a sum of 1.
            offsets: The offset of each channel.
            gains: A factor of the step per channel. By default, all channels have the same step.
        """
        pixels = self.stepped("picture", 1 / 255, 0, 8, signed=False)
        scales = np.array(gains or 1.0) * step * 255
        weights = np.tile(np.array(WEIGHTS, np.int8).reshape(1, 3, 1, 1), (len(offsets), 1, 1, 1))
        grid = [self.constant(scales), self.constant(np.zeros(scales.shape), np.int8)]
        kernel = self.put("DequantizeLinear", [self.constant(weights, np.int8), *grid], axis=0)
        steps = [self.constant(scales / 255), self.constant(np.zeros(scales.shape), np.int32)]
        bias = self.put("DequantizeLinear", [self.constant(offsets, np.int32), *steps], axis=0)
        return self.put("Conv", [pixels, kernel, bias])

    def saved(self, last: str, folder: Path) -> Path:
        """Save the file whose output is the tensor ``last``, and return its path."""
        path = folder / "net.onnx"
        onnx.save(self.model([last], (1, 3, SIDE, SIDE)), path)
        return path


def every_sum() -> Array:
    """Return an image of uint8 [3, SIDE, SIDE] with each sum from LOW to HIGH. The other positions have HIGH."""
    sums = np.minimum(LOW + np.arange(SIDE * SIDE), HIGH)
    second = np.clip(-(-(sums - 255) // 7), 0, 255)
    third = np.clip(-(sums // 7), 0, 255)
    first = sums - 7 * second + 7 * third
    picture = np.stack([first, second, third])
    assert picture.min() >= 0
    assert picture.max() <= 255
    return picture.astype(np.uint8).reshape(3, SIDE, SIDE)


def off(path: Path, read: OnnxNetwork) -> Array:
    """Return the difference of each output value from onnxruntime in steps, for every sum."""
    picture = every_sum()
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (told,) = session.run(None, {"picture": (picture[None] / 255).astype(np.float32)})
    assert read.quantized is not None
    integers, type_ = run_integer(read.quantized, picture)[-1], read.quantized.nodes[-1].type
    assert integers is not None
    return np.asarray(np.abs(np.rint(told[0] / type_.scale) + type_.zero_point - integers))
