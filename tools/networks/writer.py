"""Writes networks as exporters of PyTorch do: convolution, batch norm and activation are separate operators."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import ModelProto

from tests.support.onnx.writer import Writer

Floats = npt.NDArray[np.float32]

SPREAD = 74.0
"""The standard deviation of a uniformly distributed integer of 8 bits, rounded."""


class Numbers:
    """Random numbers that a seed determines on every machine: the raw bits of PCG64, without floating-point sums."""

    def __init__(self, seed: int = 1) -> None:
        self._bits = np.random.PCG64(seed)

    def integers(self, *shape: int) -> npt.NDArray[np.int8]:
        """Return integers of 8 bits, uniformly distributed."""
        count = math.prod(shape)
        raw = np.asarray(self._bits.random_raw(-(-count // 8)), "<u8")
        return raw.view(np.int8)[:count].reshape(shape)

    def weights(self, filters: int, *kernel: int) -> Floats:
        """Return weights [filters, …] whose variance keeps the size of the values from layer to layer."""
        scale = np.float32(math.sqrt(2 / math.prod(kernel)) / SPREAD)
        return np.asarray(self.integers(filters, *kernel).astype(np.float32) * scale)

    def biases(self, filters: int) -> Floats:
        """Return biases between −0.25 and 0.25."""
        return np.asarray(self.integers(filters).astype(np.float32) / np.float32(512))


class Layers:
    """A network under construction. Its layers are the names of their output tensors.

    Attributes:
        picture: The name of the input.
        channels: The channels of each tensor.
    """

    picture = "picture"

    def __init__(self, channels: int, height: int, width: int) -> None:
        self._writer, self._numbers = Writer(), Numbers()
        self._shape = (1, channels, height, width)
        self.channels = {self.picture: channels}

    def conv(
        self,
        source: str,
        filters: int,
        size: int = 1,
        stride: int = 1,
        activation: str = "relu",
        groups: int = 1,
        norm: bool = True,
    ) -> str:
        """Append a padded convolution, a batch norm with ``norm`` (else biases), and an activation."""
        kernel = (self.channels[source] // groups, size, size)
        numbers = [self._constant(self._numbers.weights(filters, *kernel))]
        numbers += [] if norm else [self._constant(self._numbers.biases(filters))]
        slid: dict[str, Any] = {"kernel_shape": [size] * 2, "strides": [stride] * 2, "pads": [(size - 1) // 2] * 4}
        name = self._put("Conv", [source, *numbers], filters, group=groups, **slid)
        return self.activated(self._normalised(name) if norm else name, activation)

    def transposed(self, source: str, filters: int, bias: bool = True) -> str:
        """Append a transposed convolution of 2×2 with stride 2."""
        numbers = [self._constant(self._numbers.weights(self.channels[source], filters, 2, 2))]
        numbers += [self._constant(self._numbers.biases(filters))] if bias else []
        return self._put("ConvTranspose", [source, *numbers], filters, kernel_shape=[2, 2], strides=[2, 2])

    def dense(self, source: str, filters: int, activation: str = "linear") -> str:
        """Append a fully connected layer with biases. ``source`` has one position."""
        numbers = [self._numbers.weights(filters, self.channels[source]), self._numbers.biases(filters)]
        name = self._put("Gemm", [source, *map(self._constant, numbers)], filters, transB=1)
        return self.activated(name, activation)

    def flattened(self, source: str, positions: int = 1) -> str:
        """Append the flattening of a map with ``positions`` pixels."""
        return self._put("Flatten", [source], self.channels[source] * positions)

    def activated(self, source: str, activation: str) -> str:
        """Append an activation: linear, relu, leaky, silu, mish or sigmoid."""
        if activation == "linear":
            return source
        filters = self.channels[source]
        if activation == "silu":
            return self.multiplied(source, self._put("Sigmoid", [source], filters))
        if activation == "mish":
            return self.multiplied(source, self._put("Tanh", [self._put("Softplus", [source], filters)], filters))
        kinds: dict[str, tuple[str, dict[str, float]]] = {
            "relu": ("Relu", {}),
            "leaky": ("LeakyRelu", {"alpha": 0.1}),
            "sigmoid": ("Sigmoid", {}),
        }
        kind, attributes = kinds[activation]
        return self._put(kind, [source], filters, **attributes)

    def max_pool(self, source: str, size: int, stride: int, padding: int = 0) -> str:
        slid: dict[str, Any] = {"kernel_shape": [size] * 2, "strides": [stride] * 2, "pads": [padding] * 4}
        return self._put("MaxPool", [source], self.channels[source], **slid)

    def average(self, source: str) -> str:
        """Append the average of all positions."""
        return self._put("GlobalAveragePool", [source], self.channels[source])

    def added(self, *sources: str) -> str:
        return self._put("Add", list(sources), self.channels[sources[0]])

    def multiplied(self, *sources: str) -> str:
        return self._put("Mul", list(sources), self.channels[sources[0]])

    def joined(self, *sources: str) -> str:
        """Append the concatenation of the channels of maps."""
        return self._put("Concat", list(sources), sum(self.channels[source] for source in sources), axis=1)

    def enlarged(self, source: str) -> str:
        """Append an enlargement in which each value becomes 2×2 values."""
        scales = self._constant(np.array([1, 1, 2, 2], np.float32))
        how = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        return self._put("Resize", [source, "", scales], self.channels[source], **how)

    def model(self, *outputs: str) -> ModelProto:
        return self._writer.model(outputs, self._shape)

    def _normalised(self, source: str) -> str:
        filters = self.channels[source]
        ones, zeros = np.ones(filters, np.float32), np.zeros(filters, np.float32)
        numbers = map(self._constant, (ones, self._numbers.biases(filters), zeros, ones))
        return self._put("BatchNormalization", [source, *numbers], filters)

    def _constant(self, values: Floats) -> str:
        return self._writer.constant(values)

    def _put(self, kind: str, inputs: list[str], channels: int, **attributes: Any) -> str:
        name = self._writer.put(kind, inputs, **attributes)
        self.channels[name] = channels
        return name
