"""The network ``shapes`` in PyTorch: tiny-YOLOv2 with fewer filters, and the layout of its output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cnn.training.grid import HeadGrid
from tools.demo.objects import LABELS

if TYPE_CHECKING:
    import torch  # type: ignore[import-not-found, unused-ignore]

SIZE = 160
"""Height and width of the network's input in pixels."""
CELL_PIXELS = 32
CELLS = SIZE // CELL_PIXELS
"""Rows and columns of the output grid."""
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
GRID = HeadGrid(ANCHORS, CLASSES, CELLS, CELLS, (CELL_PIXELS, CELL_PIXELS), True)
"""The layout of the network's output, for the loss."""
TORCH_EPSILON = 1e-5


def build_network() -> torch.nn.Sequential:
    """Return the network:

    6 × (convolution, batch norm, leaky ReLU, max pool), 2 × without a pool, a linear 1×1 head.
    """
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
        if i == 5:  # darknet's pool of size 2 and stride 1 pads right and bottom with a value that is never the maximum
            layers += [nn.ConstantPad2d((0, 1, 0, 1), float("-inf")), nn.MaxPool2d(2, 1)]
        channels = width
    layers.append(nn.Conv2d(channels, len(ANCHORS) * (5 + CLASSES), 1))
    return nn.Sequential(*layers)
