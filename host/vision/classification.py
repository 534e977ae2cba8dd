"""What a classifier's last layer gives → its most probable classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from host.vision.detection import FloatArray, label_of

TOP = 5
"""Classes that are told of a picture."""


@dataclass(frozen=True)
class Score:
    """A class, and how probable it is, 0…1. index: of the class."""

    label: str
    probability: float
    index: int


def classify(output: FloatArray, labels: Sequence[str], top: int = TOP) -> tuple[Score, ...]:
    """The most probable classes, that one first: a softmax over the values of the last layer, float32 of any shape.

    Of classes that are as probable the first one comes first.
    """
    values = output.ravel().astype(np.float64)
    powers = np.exp(values - values.max())
    shares = powers / powers.sum()
    order = np.argsort(-shares, kind="stable")[:top]
    return tuple(Score(label_of(labels, int(index)), float(shares[index]), int(index)) for index in order)
