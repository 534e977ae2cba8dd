"""The network that is trained, and the boxes that its output stands for."""

from __future__ import annotations

import numpy as np
import pytest

from cnn.training.model import build_network, suppress


def test_suppression_keeps_the_most_probable_of_overlapping_boxes() -> None:
    boxes = np.array([[0, 0, 10, 10], [0, 0, 10, 11], [50, 50, 60, 60]], float)
    assert suppress(boxes, np.array([0.5, 0.9, 0.3]), 0.01) == [1, 2]
    assert suppress(boxes, np.array([0.5, 0.9, 0.3]), 0.4) == [1]


def test_the_sixth_pool_pads_right_and_bottom_and_padding_never_wins() -> None:
    torch = pytest.importorskip("torch")
    pad, pool = list(build_network())[23:25]
    values = -torch.arange(1.0, 10.0).view(1, 1, 3, 3)
    assert pool(pad(values))[0, 0].tolist() == [[-1, -2, -3], [-4, -5, -6], [-7, -8, -9]]
