"""Labelled pictures as batches at the network's input size, lit and mirrored at random."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from boards.errors import RangeError
from cnn.maps import FloatArray, Shape
from host.vision.channels import load_frame, network_input
from systolic.evaluation.layouts.labelled import LabelledPicture

Random = np.random.Generator

CACHE = 1 << 30
"""Bytes of pictures that stay in memory; others are read each time."""
LEAST_SIDE = 1.0
"""Pixels of a box at the network's input; smaller ones are nothing that it could see."""


@dataclass(frozen=True, eq=False)
class Example:
    """pixels: uint8 [channels, height, width]. truths: float32 [objects, 5], class and x0, y0, x1, y1 in pixels of
    the input. category: the class of the picture, −1 where it has none."""

    pixels: npt.NDArray[np.uint8]
    truths: FloatArray
    category: int = -1


@dataclass(frozen=True, eq=False)
class Batch:
    """pictures: float32 [n, channels, height, width], 0…1; the rest by picture as in an ``Example``."""

    pictures: FloatArray
    truths: list[FloatArray]
    categories: npt.NDArray[np.int64]


@dataclass(eq=False)
class TrainingData:
    """labels: of the classes, by their number. shape: of the network's input. fit: one of FITS."""

    pictures: tuple[LabelledPicture, ...]
    labels: tuple[str, ...]
    shape: Shape
    fit: str
    _examples: dict[int, Example] = field(default_factory=dict)

    def epoch(self, random: Random, size: int) -> Iterator[Batch]:
        """All pictures in random order, ``size`` at a time; what does not fill the last batch is left out.

        Raises RangeError as ``steps`` does, and the errors of ``load_frame`` for a picture that cannot be used.
        """
        order = random.permutation(len(self.pictures))
        for start in range(0, self.steps(size) * size, size):
            yield varied([self.example(int(index)) for index in order[start : start + size]], random)

    def steps(self, size: int) -> int:
        """Return the number of batches of an epoch; RangeError if there are fewer pictures than one batch takes."""
        if len(self.pictures) < size:
            remedy = "give more pictures, or a smaller --batch"
            raise RangeError("the number of pictures for one batch", len(self.pictures), size, remedy=remedy)
        return len(self.pictures) // size

    def example(self, index: int) -> Example:
        """The picture of that number, as it is."""
        example = self._examples.get(index)
        if example is None:
            example = self._read(self.pictures[index])
            if example.pixels.nbytes * (len(self._examples) + 1) <= CACHE:
                self._examples[index] = example
        return example

    def _read(self, picture: LabelledPicture) -> Example:
        shape = self.shape
        frame = load_frame(picture.path)
        pixels, placement = network_input(frame, (shape.channels, shape.height, shape.width), self.fit)
        if picture.category is not None:
            return Example(pixels, np.empty((0, 5), np.float32), self.labels.index(picture.category))
        truths = picture.in_pixels(frame.shape[1], frame.shape[0]).truths or ()
        rows = [[self.labels.index(truth.label), *truth.box] for truth in truths if truth.counts]
        boxes = np.array(rows, np.float64).reshape(-1, 5)
        boxes[:, 1:] = placement.to_input(boxes[:, 1:])
        edges = np.array([shape.width, shape.height] * 2)
        boxes[:, 1:] = np.clip(boxes[:, 1:], 0, edges)
        is_visible = np.min(boxes[:, 3:] - boxes[:, 1:3], axis=1, initial=np.inf) >= LEAST_SIDE
        return Example(pixels, boxes[is_visible].astype(np.float32))


def varied(examples: list[Example], random: Random) -> Batch:
    """With light and contrast changed at random, and half of the pictures mirrored."""
    flips = random.random(len(examples)) < 0.5
    pixels = np.stack([e.pixels[:, :, ::-1] if f else e.pixels for e, f in zip(examples, flips, strict=True)])
    channels = pixels.shape[1]
    gain = random.uniform(0.75, 1.25, (len(examples), channels, 1, 1)) ** 0.3
    gain = gain * random.uniform(0.75, 1.25, (len(examples), 1, 1, 1))
    lift = random.uniform(-0.08, 0.08, (len(examples), 1, 1, 1))
    values = np.clip(pixels.astype(np.float32) / 255 * gain.astype(np.float32) + lift.astype(np.float32), 0, 1)
    width = pixels.shape[3]
    truths = [mirrored(e.truths, width) if f else e.truths for e, f in zip(examples, flips, strict=True)]
    # Whole levels, as pictures have them: the integers read nothing between.
    values = np.rint(values * 255) / np.float32(255)
    return Batch(np.asarray(values, np.float32), truths, np.array([e.category for e in examples], np.int64))


def mirrored(truths: FloatArray, width: float) -> FloatArray:
    """Truths [objects, 5] of the same picture, ``width`` pixels wide, turned left to right."""
    return np.stack([truths[:, 0], width - truths[:, 3], truths[:, 2], width - truths[:, 1], truths[:, 4]], 1)
