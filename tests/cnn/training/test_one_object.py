"""Tests of the loss of averaged anchors: its minimum is where the host decodes the truth."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs PyTorch: pip install -e '.[train]'")

from cnn.maps import Shape  # noqa: E402
from cnn.ops import OneObject  # noqa: E402
from cnn.training.grid import grid_of  # noqa: E402
from cnn.training.loss import one_object_loss  # noqa: E402
from host.vision.heads.boxes import decode_one_object  # noqa: E402
from host.vision.heads.head import Head  # noqa: E402

pytestmark = pytest.mark.engine

ANCHORS = ((20.0, 20.0), (10.0, 30.0))
PICTURE, MAP = Shape(3, 64, 96), Shape(14, 4, 6)
HEAD = OneObject(ANCHORS, 2, False)


def test_minimum_of_the_loss_decodes_to_the_truth() -> None:
    grid = grid_of(HEAD, MAP, PICTURE)
    truths = [np.array([[0, 1, 1, 5, 6], [1, 40, 20, 62, 50]], np.float32), np.empty((0, 5), np.float32)]
    output = torch.zeros(2, MAP.channels, MAP.height, MAP.width, requires_grad=True)
    optimiser = torch.optim.Adam([output], 0.1)
    for _ in range(300):
        optimiser.zero_grad()
        loss = one_object_loss(output, truths, grid)
        loss.backward()
        optimiser.step()
    assert float(loss.detach()) < 0.2
    head = Head("one-object", ANCHORS, 2)
    seen, nothing = (decode_one_object(map_.detach().numpy(), head, PICTURE.height, PICTURE.width) for map_ in output)
    size = np.array([96, 64, 96, 64])
    assert seen.boxes[0] * size == pytest.approx([40, 20, 62, 50], abs=0.5)  # the larger of the two
    assert seen.probabilities[0][1] > 0.9 > 0.1 > seen.probabilities[0][0]
    assert nothing.probabilities.max() < 0.1


def test_images_without_objects_have_a_loss() -> None:
    grid = grid_of(HEAD, MAP, PICTURE)
    none = [np.empty((0, 5), np.float32)]
    assert float(one_object_loss(torch.zeros(1, 14, 4, 6), none, grid)) == pytest.approx(24 * np.log(2))
