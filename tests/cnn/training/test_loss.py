"""Tests of the training loss, on cases computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from cnn.maps import Shape
from cnn.ops import Yolo
from cnn.training.grid import decode_boxes, grid_of
from cnn.training.loss import generalised_iou, head_losses, near_truths, targets
from host.vision.heads.boxes import decode_yolo
from host.vision.heads.head import Head
from tools.demo.network import ANCHORS, CELLS, CLASSES, GRID

pytestmark = pytest.mark.engine


def test_truth_is_assigned_to_its_cell_and_decodes_back() -> None:
    torch = pytest.importorskip("torch", reason="training needs PyTorch: pip install -e '.[train]'")
    truth = np.array([[2, 40, 70, 88, 102]], np.float32)
    where, goal, labels, _ = targets([truth], GRID)
    assert labels.tolist() == [2]
    assert [int(w) for w in where] == [0, int(where[1]), 2, 2]
    grid = torch.zeros(1, len(ANCHORS), CELLS, CELLS, 5 + CLASSES)
    grid[tuple(where)] = torch.cat([torch.logit(goal[0, :2]), goal[0, 2:], torch.zeros(1 + CLASSES)])
    assert decode_boxes(grid, GRID)[tuple(where)][0].tolist() == pytest.approx([40, 70, 88, 102], abs=1e-3)


def test_near_truths_selects_boxes_near_a_truth_with_its_class() -> None:
    torch = pytest.importorskip("torch", reason="training needs PyTorch: pip install -e '.[train]'")
    truths = [np.array([[4, 10, 10, 50, 50], [2, 90, 90, 130, 130]], np.float32)] * 2
    boxes = torch.zeros(2, len(ANCHORS), CELLS, CELLS, 4)
    boxes[..., 2:] = 1
    boxes[1, 3, 2, 1] = torch.tensor([92.0, 90, 130, 130])
    boxes[0, 0, 0, 0] = torch.tensor([10.0, 10, 50, 45])
    boxes[0, 1, 0, 0] = torch.tensor([10.0, 10, 50, 50])
    own = tuple(torch.tensor([v]) for v in (0, 1, 0, 0))
    near, labels = near_truths(boxes, truths, own)
    assert near.nonzero().tolist() == [[0, 0, 0, 0], [1, 3, 2, 1]]
    assert labels.tolist() == [4, 2]


def test_generalised_iou_equals_hand_computed_values() -> None:
    torch = pytest.importorskip("torch", reason="training needs PyTorch: pip install -e '.[train]'")
    one, other = torch.tensor([[0.0, 0, 2, 2], [0, 0, 1, 1]]), torch.tensor([[0.0, 0, 2, 2], [2, 2, 3, 3]])
    assert generalised_iou(one, other).tolist() == pytest.approx([1, -7 / 9])


def test_object_is_assigned_to_the_head_with_the_nearest_anchor() -> None:
    torch = pytest.importorskip("torch", reason="training needs PyTorch: pip install -e '.[train]'")
    coarse = grid_of(Yolo(((60.0, 60.0),), 3, False), Shape(8, 4, 6), Shape(3, 128, 192))
    fine = grid_of(Yolo(((16.0, 24.0),), 3, False), Shape(8, 8, 12), Shape(3, 128, 192))
    large, small = [0, 100, 20, 164, 90], [2, 10, 10, 26, 38]
    outputs = [torch.zeros(2, 8, *size, requires_grad=True) for size in ((4, 6), (8, 12))]
    optimiser = torch.optim.Adam(outputs, 0.2)
    truths = [np.array([large, small], np.float32), np.empty((0, 5), np.float32)]
    for _ in range(300):
        optimiser.zero_grad()
        loss = sum(head_losses(outputs, truths, (coarse, fine)))
        loss.backward()
        optimiser.step()
    for output, grid, (label, *box) in zip(outputs, (coarse, fine), (large, small), strict=True):
        head = Head("yolo", tuple((w * grid.cell[0], h * grid.cell[1]) for w, h in grid.anchors), 3)
        seen = decode_yolo(output[0].detach().numpy(), head, 128, 192, 0.5)
        assert seen.boxes * [192, 128, 192, 128] == pytest.approx(np.array([box]), abs=1)
        assert np.argmax(seen.probabilities) == label
        assert seen.probabilities.max() > 0.8
        nothing = decode_yolo(output[1].detach().numpy(), head, 128, 192, 0.5)
        assert len(nothing.boxes) == 0
