"""The training loss of detection heads.

Heads with anchors have YOLOv2's loss, with generalised IoU as a further term for the boxes. The loss of a head that
finds one object averages the anchors of a cell, as the host does (UltraNet).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cnn.training.grid import HeadGrid, as_grid, decode_boxes, tensor

if TYPE_CHECKING:
    from torch import Tensor  # type: ignore[import-not-found, unused-ignore]

NEAR_IOU = 0.6
"""The IoU from which on a box that is not assigned to the object may report the object without a loss."""


class Targets(NamedTuple):
    """The training targets of n labelled objects: the cell and anchor, box, class and weight of each.

    Attributes:
        cells: int64 [4, n]: picture, anchor, row and column of the box that is assigned to the object.
        goal: [n, 4]: x and y within the cell, and the logarithms of width / anchor width and height / anchor height.
        labels: int64 [n], the classes.
        weight: [n]: 2 minus the object's share of the picture, so that small boxes weigh more.
    """

    cells: Tensor
    goal: Tensor
    labels: Tensor
    weight: Tensor


def head_losses(
    outputs: Sequence[Tensor], truths: list[npt.NDArray[np.float32]], grids: Sequence[HeadGrid]
) -> list[Tensor]:
    """Return the training loss of a batch per head. An object counts for the head with the anchor most similar to it.

    Args:
        outputs: Per head, [n, anchors · (5 + classes), rows, columns].
        truths: Per picture, [objects, 5]: class, x0, y0, x1 and y1 in pixels of the network's input.
        grids: Per head, its grid.
    """
    if len(grids) == 1:
        return [region_loss(outputs[0], truths, grids[0])]
    shares = [[_likeness(rows, grid).max(1) for grid in grids] for rows in truths]
    owners = [np.argmax(np.stack(each), axis=0) for each in shares]
    return [
        region_loss(output, [rows[owner == index] for rows, owner in zip(truths, owners, strict=True)], grid)
        for index, (output, grid) in enumerate(zip(outputs, grids, strict=True))
    ]


def region_loss(output: Tensor, truths: list[npt.NDArray[np.float32]], grid: HeadGrid) -> Tensor:
    """Return the YOLOv2 training loss of a batch for one detection head: box position and size, objectness and class.

    Source: Redmon and Farhadi, "YOLO9000", 2016, section 2.

    Args:
        output: [n, anchors · (5 + classes), rows, columns].
        truths: Per picture, [objects, 5].
        grid: The head's grid.
    """
    from torch.nn import functional  # type: ignore[import-not-found, unused-ignore]

    values = as_grid(output, grid)
    boxes = decode_boxes(values, grid)
    cells, goal, labels, weight = (part.to(output.device) for part in targets(truths, grid))
    cells = tuple(cells)
    answers, true_boxes = values[cells], tensor(np.concatenate([t[:, 1:] for t in truths])).to(output.device)
    position = functional.binary_cross_entropy_with_logits(answers[:, :2], goal[:, :2], reduction="none").sum(1)
    extent = ((answers[:, 2:4] - goal[:, 2:]) ** 2).sum(1)
    apart = 1 - generalised_iou(boxes[cells], true_boxes)
    objects = functional.softplus(-answers[:, 4])
    empty = functional.softplus(values[..., 4])
    is_near, near_labels = near_truths(boxes.detach(), truths, cells)
    kinds = _class_loss(answers[:, 5:], labels, grid)
    alike = _class_loss(values[is_near][:, 5:], near_labels, grid).sum()
    empty = empty * ~is_near
    empty[cells] = 0.0
    counted = (weight * (position + 2.0 * extent + 4.0 * apart) + 2.0 * objects + kinds).sum()
    loss: Tensor = (counted + alike + empty.sum()) / len(truths)
    return loss


def _class_loss(answers: Tensor, labels: Tensor, grid: HeadGrid) -> Tensor:
    """Return the classification loss per box: cross-entropy of a softmax, or summed over one sigmoid per class."""
    from torch.nn import functional  # type: ignore[import-not-found, unused-ignore]

    if grid.is_single_class:
        loss: Tensor = functional.cross_entropy(answers, labels, reduction="none")
        return loss
    certain = functional.one_hot(labels, grid.classes).float()
    return functional.binary_cross_entropy_with_logits(answers, certain, reduction="none").sum(1)


def generalised_iou(a: Tensor, b: Tensor) -> Tensor:
    """Return the generalised IoU of pairs of boxes [..., 4], −1…1: IoU minus the share of their hull outside both.

    With squared errors of position and size only, boxes reach IoU 0.5 but fit loosely.
    Source: Rezatofighi et al., "Generalized Intersection over Union", CVPR 2019.
    """
    import torch

    common, union = common_and_union(a, b)
    hull = (torch.maximum(a[..., 2:], b[..., 2:]) - torch.minimum(a[..., :2], b[..., :2])).prod(-1)
    return common / union - (hull - union) / hull


def common_and_union(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Return the areas of intersection and union of pairs of boxes [..., 4], given as x0, y0, x1, y1."""
    import torch

    sides = torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])
    common = sides.clamp(min=0).prod(-1)
    areas = (a[..., 2:] - a[..., :2]).prod(-1) + (b[..., 2:] - b[..., :2]).prod(-1)
    return common, areas - common


def targets(truths: list[npt.NDArray[np.float32]], grid: HeadGrid) -> Targets:
    """Return the training targets of all labelled objects of a batch, each with the anchor of the most similar
    shape."""
    import torch

    rows = np.concatenate([np.c_[np.full(len(t), i), t] for i, t in enumerate(truths)])
    boxes = rows[:, 2:] / np.array(grid.cell * 2)
    centre, size = (boxes[:, :2] + boxes[:, 2:]) / 2, np.maximum(boxes[:, 2:] - boxes[:, :2], 0.05)
    cell = np.clip(np.floor(centre), 0, (grid.columns - 1, grid.rows - 1))
    anchor = np.argmax(_likeness(rows[:, 1:], grid), axis=1)
    goal = np.c_[np.clip(centre - cell, 0, 1), np.log(size / np.array(grid.anchors)[anchor])]
    cells = torch.from_numpy(np.stack([rows[:, 0], anchor, cell[:, 1], cell[:, 0]]).astype(np.int64))
    weight = 2 - np.prod(size, axis=1) / (grid.rows * grid.columns)
    return Targets(cells, tensor(goal), torch.from_numpy(rows[:, 1].astype(np.int64)), tensor(weight))


def _likeness(rows: npt.NDArray[Any], grid: HeadGrid) -> npt.NDArray[np.float64]:
    """Return the IoU [objects, anchors] of objects' boxes and anchors, as if they had the same centre.

    rows: class, x0, y0, x1, y1 in pixels.
    """
    size, anchors = rows[:, None, 3:5] - rows[:, None, 1:3], grid.sizes[None]
    common = np.minimum(size, anchors).prod(2)
    return np.asarray(common / (size.prod(2) + anchors.prod(2) - common))


def near_truths(boxes: Tensor, truths: list[npt.NDArray[np.float32]], cells: Any) -> tuple[Tensor, Tensor]:
    """Return a mask of boxes that reach NEAR_IOU with an object that they are not assigned to, and its class for each.

    Darknet only exempts these boxes from the loss of objectness. Their class is then never learnt, so that a second box
    of another class can appear on an object, and suppression within a class cannot remove it. So their class is
    trained here.

    Args:
        boxes: [n, anchors, rows, columns, 4].
        truths: Per picture, [objects, 5].
        cells: The ``Targets.cells``, as a tuple of rows.

    Returns:
        bool [n, anchors, rows, columns], and for each true value the class of the nearest truth, int64.
    """
    import torch

    padded = np.zeros((len(truths), 1, 1, 1, max(1, *(len(t) for t in truths)), 5), np.float32)
    for i, t in enumerate(truths):
        padded[i, 0, 0, 0, : len(t)] = t
    all_truths = tensor(padded).to(boxes.device)
    common, union = common_and_union(boxes[..., None, :], all_truths[..., 1:])
    iou, nearest = (common / union).max(-1)
    is_near = iou >= NEAR_IOU
    is_near[cells] = False
    labels = all_truths[..., 0].expand(*nearest.shape, -1).gather(-1, nearest[..., None])[..., 0]
    return is_near, labels[is_near].to(torch.int64)


def one_object_loss(output: Tensor, truths: list[npt.NDArray[np.float32]], grid: HeadGrid) -> Tensor:
    """Return the UltraNet training loss of a batch: the choice of the cell, and its box averaged over anchors.

    In a picture without an object, no cell must be chosen.

    Args:
        output: [n, anchors · (5 + classes), rows, columns].
        truths: Per picture, [objects, 5]; only the largest object counts.
        grid: The head's grid.
    """
    import torch
    from torch.nn import functional  # type: ignore[import-not-found, unused-ignore]

    values = as_grid(output, grid)
    likely = values[..., 4].mean(1)  # the host chooses the cell with the greatest mean
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


def averaged_boxes(
    answers: Tensor, row: npt.NDArray[np.int64], column: npt.NDArray[np.int64], grid: HeadGrid
) -> Tensor:
    """Return one box in pixels per cell, [n, 4], averaged over its anchors, from [n, anchors, 5 + classes]."""
    import torch

    device = answers.device
    cell = torch.tensor(grid.cell, device=device)
    centre = (answers[..., :2].sigmoid().mean(1) + tensor(np.stack([column, row], 1)).to(device)) * cell
    sizes = answers[..., 2:4].clamp(max=4).exp() * tensor(grid.sizes).to(device)
    half = sizes.mean(1) / 2
    return torch.cat([centre - half, centre + half], 1)


def _extent(boxes: Tensor, true_boxes: Tensor) -> Tensor:
    """Return the size error per box: the sum of the squared logarithms of its width ratio and height ratio."""
    sides, targets = ((each[:, 2:] - each[:, :2]).clamp(min=1e-3) for each in (boxes, true_boxes))
    return ((sides / targets).log() ** 2).sum(1)


def _largest(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return np.asarray(rows[np.argmax(np.prod(rows[:, 3:] - rows[:, 1:3], axis=1))])


def _cells(rows: npt.NDArray[np.float32], grid: HeadGrid) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the grid column and row of the cell that contains each box's centre."""
    centre = (rows[:, 1:3] + rows[:, 3:]) / 2 / np.array(grid.cell)
    cell = np.clip(np.floor(centre), 0, (grid.columns - 1, grid.rows - 1)).astype(np.int64)
    return cell[:, 0], cell[:, 1]
