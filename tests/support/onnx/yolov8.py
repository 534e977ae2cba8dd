"""A detector with ultralytics' layout, as its exporter writes it: SiLU, C2f, SPPF, and a head that decodes boxes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.support.onnx.writer import Writer

BINS = 16


@dataclass(frozen=True)
class Form:
    """The size of a detector.

    Attributes:
        channels: The filters of the first convolution.
        repeats: The bottlenecks of the longer C2f blocks.
        side: The rows and columns of the image.
        classes: The number of classes.
    """

    channels: int = 16
    repeats: int = 2
    side: int = 640
    classes: int = 80


class Detector:
    """A graph under construction. Its layers are the names of tensors."""

    def __init__(self, form: Form, seed: int = 0) -> None:
        self.form, self.writer = form, Writer()
        self.random = np.random.default_rng(seed)
        self.channels = {"picture": 3}

    def weights(self, filters: int, channels: int, size: int) -> npt.NDArray[np.floating]:
        """Return random weights [filters, channels, size, size]; the mean of each filter is 0."""
        spread = np.sqrt(2.5 / (channels * size * size))
        weights = self.random.normal(0, spread, (filters, channels, size, size))
        return np.asarray(weights - weights.mean(axis=(1, 2, 3), keepdims=True))

    def biases(self, filters: int) -> npt.NDArray[np.floating]:
        """Return random biases."""
        return np.asarray(self.random.normal(0.2, 0.3, filters))

    def conv(self, source: str, filters: int, size: int = 1, stride: int = 1, curve: bool = True) -> str:
        """Append a convolution with its batch norm folded in, and with ``curve`` a SiLU."""
        weights = self.weights(filters, self.channels[source], size)
        arrays = [self.writer.constant(weights), self.writer.constant(self.biases(filters))]
        slid: dict[str, Any] = {"kernel_shape": [size] * 2, "strides": [stride] * 2, "pads": [size // 2] * 4}
        name = self.writer.put("Conv", [source, *arrays], **slid)
        if curve:
            name = self.writer.put("Mul", [name, self.writer.put("Sigmoid", [name])])
        self.channels[name] = filters
        return name

    def joined(self, *sources: str) -> str:
        name = self.writer.put("Concat", list(sources), axis=1)
        self.channels[name] = sum(self.channels[source] for source in sources)
        return name

    def c2f(self, source: str, filters: int, repeats: int = 1, shortcut: bool = True) -> str:
        """Append two halves, bottlenecks after the second half, and the concat of all their outputs."""
        half = filters // 2
        halves = self.conv(source, filters)
        first = self.writer.put("Split", [halves, self.writer.constant([half, half], np.int64)], 2, axis=1)
        parts = [first, first + "_"]
        self.channels.update(dict.fromkeys(parts, half))
        for _ in range(repeats):
            longer = self.conv(self.conv(parts[-1], half, 3), half, 3)
            if shortcut:
                longer = self.writer.put("Add", [parts[-1], longer])
                self.channels[longer] = half
            parts.append(longer)
        return self.conv(self.joined(*parts), filters)

    def sppf(self, source: str, filters: int) -> str:
        """Append three 5×5 pools in sequence, and the concat of all their outputs."""
        parts = [self.conv(source, self.channels[source] // 2)]
        for _ in range(3):
            name = self.writer.put("MaxPool", [parts[-1]], kernel_shape=[5, 5], strides=[1, 1], pads=[2] * 4)
            self.channels[name] = self.channels[parts[-1]]
            parts.append(name)
        return self.conv(self.joined(*parts), filters)

    def upsampled(self, source: str) -> str:
        scales = self.writer.constant([1, 1, 2, 2])
        how = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        name = self.writer.put("Resize", [source, "", scales], **how)  # type: ignore[arg-type]
        self.channels[name] = self.channels[source]
        return name

    def sizes(self) -> list[str]:
        """Return the three maps that the head reads, from fine to coarse."""
        c, n = self.form.channels, self.form.repeats
        x = self.c2f(self.conv(self.conv("picture", c, 3, 2), 2 * c, 3, 2), 2 * c)
        fine = self.c2f(self.conv(x, 4 * c, 3, 2), 4 * c, n)
        middle = self.c2f(self.conv(fine, 8 * c, 3, 2), 8 * c, n)
        coarse = self.sppf(self.c2f(self.conv(middle, 16 * c, 3, 2), 16 * c), 16 * c)
        up = self.c2f(self.joined(self.upsampled(coarse), middle), 8 * c, shortcut=False)
        first = self.c2f(self.joined(self.upsampled(up), fine), 4 * c, shortcut=False)
        second = self.c2f(self.joined(self.conv(first, 4 * c, 3, 2), up), 8 * c, shortcut=False)
        third = self.c2f(self.joined(self.conv(second, 8 * c, 3, 2), coarse), 16 * c, shortcut=False)
        return [first, second, third]

    def heads(self) -> list[tuple[str, str]]:
        """Return the box map and the class map of each size."""
        classes = self.form.classes
        sizes = self.sizes()
        boxes = max(16, self.channels[sizes[0]] // 4, 4 * BINS)
        inner = max(self.channels[sizes[0]], min(classes, 100))
        return [
            (
                self.conv(self.conv(self.conv(size, boxes, 3), boxes, 3), 4 * BINS, curve=False),
                self.conv(self.conv(self.conv(size, inner, 3), inner, 3), classes, curve=False),
            )
            for size in sizes
        ]

    def model(self) -> Any:
        """Return the model with the exporter's decoding.

        The mean of each distribution gives a side of a box.
        """
        put, constant = self.writer.put, self.writer.constant
        count = 4 * BINS + self.form.classes
        views = [put("Reshape", [self.joined(*pair), constant([1, count, -1], np.int64)]) for pair in self.heads()]
        every = put("Concat", views, axis=2)
        boxes = put("Split", [every, constant([4 * BINS, self.form.classes], np.int64)], 2, axis=1)
        spread = put("Transpose", [put("Reshape", [boxes, constant([1, 4, BINS, -1], np.int64)])], perm=[0, 2, 1, 3])
        weights = constant(np.arange(BINS).reshape(1, BINS, 1, 1))
        mean = put("Conv", [put("Softmax", [spread], axis=1), weights], kernel_shape=[1, 1])
        sides = put("Reshape", [mean, constant([1, 4, -1], np.int64)])
        answer = put("Concat", [sides, put("Sigmoid", [boxes + "_"])], axis=1)
        return self.writer.model([answer], (1, 3, self.form.side, self.form.side))
