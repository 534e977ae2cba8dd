"""Labelled pictures as batches at the network's input size, with random brightness, contrast and mirroring."""

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
"""The size in bytes of the pictures that are kept in memory; the others are read from disk in each epoch."""
MIN_BOX_SIDE = 1.0
"""The smallest side of a box, in pixels of the network's input. Smaller boxes are ignored."""


@dataclass(frozen=True, eq=False)
class Example:
    """One picture at the network's input size with its labelled boxes or class.

    Attributes:
        pixels: uint8 array of (channels, height, width).
        truths: float32 array of (objects, 5): class, x0, y0, x1, y1, in pixels of the network's input.
        category: The class of the picture; −1 if it has none.
    """

    pixels: npt.NDArray[np.uint8]
    truths: FloatArray
    category: int = -1


@dataclass(frozen=True, eq=False)
class Batch:
    """Several pictures with their labelled boxes or classes.

    Attributes:
        pictures: float32 array of (pictures, channels, height, width), values in 0…1.
        truths: The truths of each picture, as in ``Example``.
        categories: The class of each picture; −1 if it has none.
    """

    pictures: FloatArray
    truths: list[FloatArray]
    categories: npt.NDArray[np.int64]


@dataclass(eq=False)
class TrainingData:
    """The labelled pictures of a training, read when they are needed.

    Attributes:
        labels: The label of each class, in the order of the class numbers.
        shape: The shape of the network's input.
        fit: The method of resizing, one of FITS.
    """

    pictures: tuple[LabelledPicture, ...]
    labels: tuple[str, ...]
    shape: Shape
    fit: str
    _examples: dict[int, Example] = field(default_factory=dict)

    def epoch(self, random: Random, size: int) -> Iterator[Batch]:
        """Yield batches of ``size`` varied pictures in random order, for one epoch. An incomplete batch is dropped.

        Raises:
            RangeError: There are fewer than ``size`` pictures.
            SystolicError: A picture cannot be used; see ``load_frame``.
        """
        order = random.permutation(len(self.pictures))
        for start in range(0, self.steps(size) * size, size):
            yield varied([self.example(int(index)) for index in order[start : start + size]], random)

    def steps(self, size: int) -> int:
        """Return the number of batches per epoch with ``size`` pictures per batch.

        Raises:
            RangeError: There are fewer than ``size`` pictures.
        """
        if len(self.pictures) < size:
            remedy = "give more pictures, or a smaller --batch"
            raise RangeError("the number of pictures for one batch", len(self.pictures), size, remedy=remedy)
        return len(self.pictures) // size

    def example(self, index: int) -> Example:
        """Return the picture number ``index``, resized but without random variation."""
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
        is_visible = np.min(boxes[:, 3:] - boxes[:, 1:3], axis=1, initial=np.inf) >= MIN_BOX_SIDE
        return Example(pixels, boxes[is_visible].astype(np.float32))


def varied(examples: list[Example], random: Random) -> Batch:
    """Return the examples as a batch, with random brightness and contrast, and each mirrored with probability 0.5."""
    flips = random.random(len(examples)) < 0.5
    pixels = np.stack([e.pixels[:, :, ::-1] if f else e.pixels for e, f in zip(examples, flips, strict=True)])
    channels = pixels.shape[1]
    gain = random.uniform(0.75, 1.25, (len(examples), channels, 1, 1)) ** 0.3
    gain = gain * random.uniform(0.75, 1.25, (len(examples), 1, 1, 1))
    lift = random.uniform(-0.08, 0.08, (len(examples), 1, 1, 1))
    values = np.clip(pixels.astype(np.float32) / 255 * gain.astype(np.float32) + lift.astype(np.float32), 0, 1)
    width = pixels.shape[3]
    truths = [mirrored(e.truths, width) if f else e.truths for e, f in zip(examples, flips, strict=True)]
    # Rounded to the 256 levels of a picture, because the quantised network reads only these.
    values = np.rint(values * 255) / np.float32(255)
    return Batch(np.asarray(values, np.float32), truths, np.array([e.category for e in examples], np.int64))


def mirrored(truths: FloatArray, width: float) -> FloatArray:
    """Return the boxes (objects, 5) of a picture, mirrored left to right; the picture is ``width`` pixels wide."""
    return np.stack([truths[:, 0], width - truths[:, 3], truths[:, 2], width - truths[:, 1], truths[:, 4]], 1)
