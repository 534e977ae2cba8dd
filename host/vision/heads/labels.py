"""Decoding of outputs that are a choice of classes, made by the host or by the accelerator. Needs numpy alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import RangeError, ShapeError
from host.vision.detection import Score, classify, label_of, most_probable
from host.vision.heads.head import CLASSES, PROBABILITIES, PROBABLE, VALUED, FloatArray, Head, checked
from host.vision.heads.segmentation import Segmentation, segmented
from host.vision.placement import Placement


def chosen(output: FloatArray, head: Head, labels: Sequence[str]) -> tuple[Score, ...]:
    """Return the most probable classes of a picture, from the output ``(channels, 1, 1)`` of a head that chooses
    classes (CHOICES).

    ShapeError if the output does not fit. If the accelerator chose the labels, the probability is unknown, because it
    depends on the values of all classes, unless the accelerator computed the softmax too.
    """
    values = checked(output, head).astype(np.float32)
    if values.shape[1:] != (1, 1):
        raise ShapeError(f"the output for a {head.kind} head", output.shape, (head.channels, 1, 1))
    if head.kind == CLASSES:
        return classify(values, labels, head.k)
    if head.kind == PROBABILITIES:
        return most_probable(values, labels, head.k)
    numbers = _numbers(values, head).ravel()
    if head.kind == PROBABLE:
        shares = zip(numbers, values[head.k :].ravel(), strict=True)
        return tuple(Score(label_of(labels, int(number)), float(share), int(number)) for number, share in shares)
    theirs = [float(value) for value in values[head.k :].ravel()] if head.kind == VALUED else [None] * head.k
    pairs = zip(numbers, theirs, strict=True)
    return tuple(Score(label_of(labels, int(number)), None, int(number), value) for number, value in pairs)


def chosen_of_pixels(output: FloatArray, head: Head, placement: Placement, labels: Sequence[str]) -> Segmentation:
    """Return the class of each pixel of the picture, from an output of labels ``(channels, height, width)`` that the
    accelerator chose."""
    return segmented(_numbers(checked(output, head), head)[0], placement, labels)


def _numbers(values: npt.NDArray[np.floating[Any]], head: Head) -> npt.NDArray[np.intp]:
    """Return the class numbers ``(k, height, width)`` that the accelerator chose, from an output's first ``k``
    channels. RangeError if one is not a class."""
    numbers = values[: head.k]
    # Compared as floats: casting a float beyond the range of integers gives different results on different processors.
    wrong = numbers[(numbers <= -1) | (numbers >= head.classes)]
    if wrong.size:
        raise RangeError("a label in the accelerator's output", int(wrong[0]), 0, head.classes - 1)
    return numbers.astype(np.intp)
