"""Decoding of an output into a class for each pixel of the picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from host.vision.heads.head import FloatArray, Head, checked
from host.vision.placement import Placement


@dataclass(frozen=True)
class Segment:
    """A class in a segmented picture, and the fraction of the picture's pixels that have it.

    Attributes:
        label: Name of the class.
        share: Fraction of the pixels, 0 … 1.
        index: Number of the class.
    """

    label: str
    share: float
    index: int


@dataclass(frozen=True, eq=False)
class Segmentation:
    """The class of each pixel of a picture.

    Attributes:
        classes: Number of the class of each pixel of the picture, uint16 ``(height, width)``.
        segments: The classes that occur, the largest first.
    """

    classes: npt.NDArray[np.uint16]
    segments: tuple[Segment, ...]


def segment(output: FloatArray, head: Head, placement: Placement, labels: Sequence[str]) -> Segmentation:
    """Return the class of each pixel: the channel with the greatest value at its position, and the lower one among
    equal values.

    ShapeError if the output does not fit.
    """
    return segmented(checked(output, head).argmax(axis=0), placement, labels)


def segmented(chosen: npt.NDArray[np.intp], placement: Placement, labels: Sequence[str]) -> Segmentation:
    """Return the class of each pixel of the picture, from the class of each position of the network's output,
    ``(height, width)``."""
    rows, columns = (
        _positions(chosen.shape[axis], *spans)
        for axis, spans in enumerate(
            (
                (placement.input_height, placement.top, placement.height, placement.picture_height),
                (placement.input_width, placement.left, placement.width, placement.picture_width),
            )
        )
    )
    classes = chosen[rows[:, None], columns].astype(np.uint16)
    numbers, counts = np.unique(classes, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    segments = [(int(numbers[place]), float(counts[place] / classes.size)) for place in order]
    return Segmentation(
        classes,
        tuple(
            Segment(labels[index] if index < len(labels) else f"class {index}", share, index)
            for index, share in segments
        ),
    )


def _positions(count: int, side: int, first: int, length: int, pixels: int) -> npt.NDArray[np.intp]:
    """Return, for each pixel along one axis of the picture, its index along the same axis of the network's output.

    Args:
        count: Size of the map.
        side: Size of the network's input.
        first: First pixel of the picture in the input.
        length: Pixels that the picture occupies in the input.
        pixels: Size of the picture.
    """
    middle = first + (np.arange(pixels) + 0.5) * length / pixels
    return np.clip((middle * count / side).astype(np.intp), 0, count - 1)
