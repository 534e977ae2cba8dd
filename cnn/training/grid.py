"""Decodes the maps of a head with anchors, in PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from boards.errors import UnsupportedError
from cnn.maps import Shape
from cnn.ops import Detection, OneObject, Region, Yolo

if TYPE_CHECKING:
    from torch import Tensor  # type: ignore[import-not-found, unused-ignore]


UNTRAINED = "quantise this network as it is"
"""The remedy for a network that cannot be trained."""


@dataclass(frozen=True)
class HeadGrid:
    """The grid of cells of an anchor-based detection head: its size, cell size, anchors and classes.

    Attributes:
        anchors: (width, height) in cells.
        classes: The number of classes.
        rows: The rows of cells.
        columns: The columns of cells.
        cell: The (width, height) of a cell in pixels of the network's input.
        is_single_class: Whether an object has exactly one class (softmax), and not any number of classes (sigmoids).
    """

    anchors: tuple[tuple[float, float], ...]
    classes: int
    rows: int
    columns: int
    cell: tuple[float, float]
    is_single_class: bool

    @property
    def sizes(self) -> npt.NDArray[np.float64]:
        """The anchors' widths and heights in pixels of the input image, [anchors, 2]."""
        return np.array(self.anchors) * self.cell


def grid_of(head: Detection, shape: Shape, picture: Shape) -> HeadGrid:
    """Return the grid of a detection head, for its input map's ``shape`` and the input image's shape.

    Raises:
        UnsupportedError: There is no loss for this kind of head.
    """
    cell = picture.width / shape.width, picture.height / shape.height
    if isinstance(head, Region):
        return HeadGrid(head.anchors, head.classes, shape.height, shape.width, cell, True)
    if isinstance(head, OneObject) or (isinstance(head, Yolo) and head.scale_xy == 1.0):
        anchors = tuple((width / cell[0], height / cell[1]) for width, height in head.anchors)
        return HeadGrid(anchors, head.classes, shape.height, shape.width, cell, False)
    scaled = f" with scale_xy {head.scale_xy:g}" if isinstance(head, Yolo) else ""
    subject, reason = f"training of a {head.kind} head{scaled}", "region, yolo and one-object heads have a loss"
    raise UnsupportedError(subject, reason, remedy=UNTRAINED)


def tensor(values: npt.NDArray[Any]) -> Tensor:
    """Return a numpy array as a float32 PyTorch tensor of the same shape."""
    import torch

    return torch.from_numpy(values.astype(np.float32))


def as_grid(output: Tensor, grid: HeadGrid) -> Tensor:
    """Return [n, anchors, rows, columns, 5 + classes] from a head's output [n, anchors · (5 + classes), rows,
    columns]."""
    parts = output.view(len(output), len(grid.anchors), 5 + grid.classes, grid.rows, grid.columns)
    return parts.permute(0, 1, 3, 4, 2)


def decode_boxes(values: Tensor, grid: HeadGrid) -> Tensor:
    """Return a head's boxes, x0, y0, x1, y1 in pixels, [n, anchors, rows, columns, 4], decoded as by darknet."""
    import torch

    device = values.device
    column = torch.arange(grid.columns, device=device).view(1, 1, 1, -1)
    row = torch.arange(grid.rows, device=device).view(1, 1, -1, 1)
    anchors = torch.tensor(grid.anchors, device=device).view(1, -1, 1, 1, 2)
    centre = torch.stack([column + values[..., 0].sigmoid(), row + values[..., 1].sigmoid()], -1)
    half = values[..., 2:4].clamp(max=4).exp() * anchors / 2
    return torch.cat([centre - half, centre + half], -1) * torch.tensor(grid.cell * 2, device=device)
