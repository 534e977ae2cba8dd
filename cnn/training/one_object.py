"""The loss of a head that sees one object: all anchors of a cell are averaged, as the host averages them (UltraNet)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from cnn.training.grid import Grid, as_grid, tensor
from cnn.training.loss import generalised_iou

if TYPE_CHECKING:
    from torch import Tensor  # type: ignore[import-not-found, unused-ignore]


def one_object_loss(output: Tensor, truths: list[npt.NDArray[np.float32]], grid: Grid) -> Tensor:
    """The loss of a batch, a scalar: which cell, and its averaged box; of pictures without an object that no cell is.

    output [n, anchors · (5 + classes), rows, columns]; truths: by picture [objects, 5], of which the largest counts.
    """
    import torch
    from torch.nn import functional  # type: ignore[import-not-found, unused-ignore]

    values = as_grid(output, grid)
    likely = values[..., 4].mean(1)  # the host takes the cell where this is greatest
    shown = [index for index, rows in enumerate(truths) if len(rows)]
    targets = torch.zeros_like(likely)
    if not shown:
        empty: Tensor = functional.binary_cross_entropy_with_logits(likely, targets, reduction="sum") / len(truths)
        return empty
    rows = np.stack([_largest(truths[index]) for index in shown])
    column, row = _cells(rows, grid)
    targets[shown, row, column] = 1.0
    objectness = functional.binary_cross_entropy_with_logits(likely, targets, reduction="sum")
    index = torch.as_tensor(row * grid.columns + column, device=output.device)
    choice = functional.cross_entropy(likely[shown].flatten(1), index, reduction="sum")
    answers = values[shown, :, row, column]
    boxes, true_boxes = averaged_boxes(answers, row, column, grid), tensor(rows[:, 1:]).to(output.device)
    apart = (1 - generalised_iou(boxes, true_boxes)).sum()
    loss = objectness + choice + 4.0 * apart + _extent(boxes, true_boxes).sum()
    if grid.classes > 1:
        labels = torch.as_tensor(rows[:, 0].astype(np.int64), device=output.device)
        kinds = functional.one_hot(labels, grid.classes).float()
        loss = loss + functional.binary_cross_entropy_with_logits(answers[..., 5:].mean(1), kinds, reduction="sum")
    total: Tensor = loss / len(truths)
    return total


def averaged_boxes(answers: Tensor, row: npt.NDArray[np.int64], column: npt.NDArray[np.int64], grid: Grid) -> Tensor:
    """Boxes in pixels [n, 4] of cells' values [n, anchors, 5 + classes]: the means of σ and of anchor · e^t."""
    import torch

    device = answers.device
    cell = torch.tensor(grid.cell, device=device)
    centre = (answers[..., :2].sigmoid().mean(1) + tensor(np.stack([column, row], 1)).to(device)) * cell
    sizes = answers[..., 2:4].clamp(max=4).exp() * tensor(grid.sizes).to(device)
    half = sizes.mean(1) / 2
    return torch.cat([centre - half, centre + half], 1)


def _extent(boxes: Tensor, true_boxes: Tensor) -> Tensor:
    """How far apart width and height are, by box: squares of the logarithms of their ratios."""
    sides, targets = ((each[:, 2:] - each[:, :2]).clamp(min=1e-3) for each in (boxes, true_boxes))
    return ((sides / targets).log() ** 2).sum(1)


def _largest(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return np.asarray(rows[np.argmax(np.prod(rows[:, 3:] - rows[:, 1:3], axis=1))])


def _cells(rows: npt.NDArray[np.float32], grid: Grid) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Column and row of the cell that each box's centre lies in."""
    centre = (rows[:, 1:3] + rows[:, 3:]) / 2 / np.array(grid.cell)
    cell = np.clip(np.floor(centre), 0, (grid.columns - 1, grid.rows - 1)).astype(np.int64)
    return cell[:, 0], cell[:, 1]
