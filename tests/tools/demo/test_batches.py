"""Scenes as the training sees them."""

from __future__ import annotations

import numpy as np

from tools.demo.batches import mirrored


def test_mirrored_twice_equals_the_original() -> None:
    truths = np.array([[1, 10, 20, 50, 60]], np.float32)
    assert mirrored(truths)[0].tolist() == [1, 110, 20, 150, 60]
    assert np.array_equal(mirrored(mirrored(truths)), truths)
