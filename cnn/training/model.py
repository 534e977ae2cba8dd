"""The network that is trained, in PyTorch: tiny-YOLOv2 at reduced width, and what its output means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cnn.training.grid import Grid, as_grid, decode_boxes, tensor
from cnn.training.objects import LABELS
from cnn.training.precision import Precision, iou, mean_average_precision, wholly_right
from cnn.training.scenes import Scene

if TYPE_CHECKING:
    import torch  # type: ignore[import-not-found, unused-ignore]
    from torch import Tensor

SIZE = 160
"""Height and width of the network's input in pixels."""
CELL_PIXELS = 32
CELLS = SIZE // CELL_PIXELS
"""Rows and columns of the grid that the network's output is."""
WIDTHS = (8, 16, 32, 48, 64, 96, 128, 128)
"""Filters of each 3×3 convolution."""
ANCHORS = (
    (0.8, 0.85),
    (1.05, 1.25),
    (1.5, 0.9),
    (1.4, 1.6),
    (1.95, 1.95),
)
"""Width and height of each anchor in cells."""
CLASSES = len(LABELS)
GRID = Grid(ANCHORS, CLASSES, CELLS, CELLS, (CELL_PIXELS, CELL_PIXELS), True)
"""What the output of the network stands for."""
TORCH_EPSILON = 1e-5
LARGEST_OVERLAP = 0.45
"""Two boxes of one class that overlap more are one object: the IoU of the non-maximum suppression."""


def build_network() -> torch.nn.Sequential:
    """6 × (convolution, batch norm, leaky ReLU, max pool), 2 × the same without a pool, a linear 1×1 head."""
    from torch import nn

    layers: list[nn.Module] = []
    channels = 3
    for i, width in enumerate(WIDTHS):
        layers += [
            nn.Conv2d(channels, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width, eps=TORCH_EPSILON),
            nn.LeakyReLU(0.1),
        ]
        if i < 5:
            layers.append(nn.MaxPool2d(2, 2))
        if i == 5:  # darknet's pool of size 2 and stride 1 pads right and bottom, and padding is never the maximum
            layers += [nn.ConstantPad2d((0, 1, 0, 1), float("-inf")), nn.MaxPool2d(2, 1)]
        channels = width
    layers.append(nn.Conv2d(channels, len(ANCHORS) * (5 + CLASSES), 1))
    return nn.Sequential(*layers)


def detect(output: Tensor, threshold: float = 0.01) -> list[npt.NDArray[np.float32]]:
    """Detections of each picture of a batch, float32 [n, 6]: class, probability, x0, y0, x1, y1 in pixels.

    Every class above the probability ``threshold`` counts, after non-maximum suppression within each class.
    """
    import torch

    grid = as_grid(output, GRID)
    boxes = decode_boxes(grid, GRID).reshape(len(output), -1, 4).numpy()
    probability = (
        (grid[..., 4:5].sigmoid() * torch.softmax(grid[..., 5:], -1)).reshape(len(output), -1, CLASSES).numpy()
    )
    return [_picture_detections(b, p, threshold) for b, p in zip(boxes, probability, strict=True)]


def _picture_detections(
    boxes: npt.NDArray[Any], probability: npt.NDArray[Any], threshold: float
) -> npt.NDArray[np.float32]:
    rows = [
        np.r_[label, probability[i, label], boxes[i]]
        for label in range(CLASSES)
        for i in suppress(boxes, probability[:, label], threshold)
    ]
    return np.array(rows, np.float32).reshape(-1, 6)


def suppress(boxes: npt.NDArray[Any], probability: npt.NDArray[Any], threshold: float) -> list[int]:
    """Indices of the boxes that non-maximum suppression leaves, most probable first.

    boxes [n, 4] as x0, y0, x1, y1; probability [n]; those at or below ``threshold`` are left out.
    """
    survivors: list[int] = []
    for i in np.argsort(-probability, kind="stable"):
        is_new = not survivors or iou(boxes[i], boxes[survivors]).max() <= LARGEST_OVERLAP
        if probability[i] > threshold and is_new:
            survivors.append(int(i))
    return survivors


def precision_of(network: torch.nn.Sequential, scenes: list[Scene]) -> tuple[Precision, float]:
    """mAP of the float network on letterboxed scenes, and the share of them that is wholly right."""
    import torch

    network.eval()
    detections: list[npt.NDArray[np.float32]] = []
    with torch.no_grad():
        for start in range(0, len(scenes), 50):
            pictures = np.stack([s.picture for s in scenes[start : start + 50]]).astype(np.float32) / 255
            detections += detect(network(tensor(pictures.transpose(0, 3, 1, 2))))
    network.train()
    truths = [scene.truths for scene in scenes]
    return mean_average_precision(detections, truths, CLASSES), wholly_right(detections, truths)
