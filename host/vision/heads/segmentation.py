"""A class for each pixel of the picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from host.vision.heads.head import FloatArray, Head, checked
from host.vision.placement import Placement


@dataclass(frozen=True)
class Segment:
    """A class and the share of the picture that it has, 0…1. index: of the class."""

    label: str
    share: float
    index: int


@dataclass(frozen=True, eq=False)
class Segmentation:
    """classes: of each pixel of the picture the number of its class, uint16 [height, width]. segments: of the classes
    that are there, the largest first."""

    classes: npt.NDArray[np.uint16]
    segments: tuple[Segment, ...]


def segment(output: FloatArray, head: Head, placement: Placement, labels: Sequence[str]) -> Segmentation:
    """Return for each pixel the greatest channel of its position, of equal ones the first; ShapeError if the output
    does not fit."""
    return segmented(checked(output, head).argmax(axis=0), placement, labels)


def segmented(chosen: npt.NDArray[np.intp], placement: Placement, labels: Sequence[str]) -> Segmentation:
    """chosen: the class of each position [height, width]."""
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
    """Of each of ``pixels`` the place among ``count`` of a map: the picture fills ``length`` from ``first`` on of the
    ``side`` of the network's input."""
    middle = first + (np.arange(pixels) + 0.5) * length / pixels
    return np.clip((middle * count / side).astype(np.intp), 0, count - 1)
