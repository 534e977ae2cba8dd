"""Decoding of each family of detection heads into boxes, with the class probabilities of each box.

- Heads with anchors and an objectness: YOLOv2 to v5, and the one-object head of UltraNet.
- The fully connected head of YOLOv1, which lists the values of all cells kind by kind.
- Heads of SSD (arXiv:1512.02325): offsets from prior boxes, and classes without an objectness.
- Heads without anchors (YOLOv8, YOLOv11): distances from the centre of a cell to each side of the box.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import ShapeError
from host.vision.heads.head import THRESHOLD, Candidates, DoubleArray, FloatArray, Head, checked, sigmoid, softmax

_MAX_LOG = 16.0  # e^16 grid cells is beyond any picture, and keeps exp() finite


def decode_region(output: FloatArray, head: Head, threshold: float = THRESHOLD) -> Candidates:
    """Return the boxes of a YOLOv2 head whose objectness exceeds ``threshold``, with their class probabilities.

    x = (column + σ(t_x)) / columns, w = anchor · e^(t_w) / columns, and equally for y and h. Class probabilities are a
    softmax, or σ if the head has no softmax (YOLO9000, arXiv:1612.08242, section 2; darknet's
    ``get_region_detections``).
    """
    values, columns, rows, anchors = _likely_cells(output, head, threshold)
    height, width = output.shape[1:]
    classes = softmax(values[:, 5:]) if head.softmax else sigmoid(values[:, 5:])
    centres = _centres(values, columns, rows, head) / (width, height)
    return _candidates(values, centres, anchors / (width, height) * _exponential(values), classes)


def decode_yolo(
    output: FloatArray, head: Head, input_height: int, input_width: int, threshold: float = THRESHOLD
) -> Candidates:
    """Return the boxes of a YOLOv3, v4 or v5 head whose objectness exceeds ``threshold``. Anchors are in input pixels.

    The formulas are those in ``decode_region`` with these differences:

    - Classes are independent (arXiv:1804.02767, darknet's ``get_yolo_detections``).
    - scale_xy extends the range of a centre beyond its cell: s · σ(t_x) − (s − 1) / 2 (arXiv:2004.10934, section 3.4).
    - The size of a scaled-yolo box is anchor · (2σ(t_w))² (arXiv:2011.08036, darknet's ``new_coords``).
    - In a gaussian-yolo head each coordinate is followed by its variance. The probability is multiplied by 1 − the mean
        σ of the variances (arXiv:1904.04620, section 3; darknet's ``get_gaussian_yolo_detections``).
    """
    values, columns, rows, anchors = _likely_cells(output, head, threshold)
    certainty: DoubleArray | float = 1.0
    if head.kind == "gaussian-yolo":
        certainty = 1 - sigmoid(values[:, 1:8:2]).mean(axis=1, keepdims=True)
        values = np.delete(values, (1, 3, 5, 7), axis=1)
    height, width = output.shape[1:]
    factor = (2 * sigmoid(values[:, 2:4])) ** 2 if head.kind == "scaled-yolo" else _exponential(values)
    sizes = anchors / (input_width, input_height) * factor
    centres = _centres(values, columns, rows, head) / (width, height)
    return _candidates(values, centres, sizes, sigmoid(values[:, 5:]) * certainty)


def decode_one_object(output: FloatArray, head: Head, input_height: int, input_width: int) -> Candidates:
    """Return the one box of a picture: at the cell with the greatest objectness, averaged over the anchors (UltraNet,
    DAC-SDC 2020).

    x = (column + mean σ(t_x)) / columns, w = mean anchor · e^(t_w) / input width, and equally for y and h. The cell is
    chosen by the mean t_o. The probability is the mean σ(t_o), multiplied by the mean σ of the class if there are
    several.
    """
    values = _by_anchor(output, head).astype(np.float64)
    height, width = values.shape[2:]
    row, column = divmod(int(np.argmax(values[:, 4].mean(axis=0))), width)
    cell = values[:, :, row, column]
    x, y = sigmoid(cell[:, :2]).mean(axis=0)
    centre = np.array([(column + x) / width, (row + y) / height])
    sizes = np.array(head.anchors) * np.exp(np.minimum(cell[:, 2:4], _MAX_LOG))
    half = sizes.mean(axis=0) / (input_width, input_height) / 2
    classes = sigmoid(cell[:, 5:]).mean(axis=0) if head.classes > 1 else np.ones(1)
    probability = sigmoid(cell[:, 4]).mean() * classes
    return Candidates(np.concatenate([centre - half, centre + half])[None], np.asarray(probability)[None])


def _likely_cells(
    output: FloatArray, head: Head, threshold: float
) -> tuple[DoubleArray, DoubleArray, DoubleArray, DoubleArray]:
    """Return the values, grid column, grid row and anchor of each box whose objectness exceeds ``threshold``.

    A class probability is at most 1, so the objectness alone excludes most cells before exponentials are computed.

    Returns:
        Values ``(n, 5 + classes)``, or ``(n, 9 + classes)`` with variances; column ``(n,)``, row ``(n,)``, and anchor
        ``(n, 2)``.
    """
    values = _by_anchor(output, head)
    objectness = values[:, 8 if head.kind == "gaussian-yolo" else 4]
    anchor, row, column = np.nonzero(sigmoid(objectness) > threshold)
    picked = values[anchor, :, row, column].astype(np.float64)
    anchors = np.array(head.anchors, np.float64)[anchor]
    return picked, column.astype(np.float64), row.astype(np.float64), anchors


def _by_anchor(output: FloatArray, head: Head) -> npt.NDArray[np.floating[Any]]:
    """Return a YOLO head's output reshaped to ``(anchors, 5 + classes, height, width)``, with variances 9 + classes."""
    return checked(output, head).reshape(len(head.anchors), head.channels // len(head.anchors), *output.shape[1:])


def _centres(values: DoubleArray, columns: DoubleArray, rows: DoubleArray, head: Head) -> DoubleArray:
    """Return the boxes' centres ``(n, 2)``, x and y in grid cells."""
    within = head.scale_xy * sigmoid(values[:, :2]) - (head.scale_xy - 1) / 2
    return np.asarray(np.stack([columns, rows], 1) + within)


def _exponential(values: DoubleArray) -> DoubleArray:
    """Return the factors e^(t_w) and e^(t_h) of the boxes' width and height, ``(n, 2)``."""
    return np.asarray(np.exp(np.minimum(values[:, 2:4], _MAX_LOG)))


def _candidates(values: DoubleArray, centres: DoubleArray, sizes: DoubleArray, classes: DoubleArray) -> Candidates:
    """Return boxes with class probabilities, from ``centres`` and ``sizes`` ``(n, 2)``, which are fractions of the
    input."""
    half = sizes / 2
    return Candidates(np.concatenate([centres - half, centres + half], 1), sigmoid(values[:, 4:5]) * classes)


def decode_cells(output: FloatArray, head: Head, threshold: float = THRESHOLD) -> Candidates:
    """Return the boxes with a class probability above ``threshold`` of a YOLOv1 output, float32 ``(channels, 1, 1)``.

    The channels are the classes of each cell, the objectness of each box of each cell, then x, y and the square roots
    of width and height of each box. No function is applied: x = (column + t_x) / columns, w = t_w² (arXiv:1506.02640,
    section 2; darknet's ``get_detection_detections`` with ``sqrt=1``). Probabilities are clipped to 0 … 1.

    ShapeError if the output has more than one row or column.
    """
    values = checked(output, head).astype(np.float64)
    if values.shape[1:] != (1, 1):
        raise ShapeError("the output for a cells head", output.shape, (head.channels, 1, 1))
    cells, boxes = head.bins**2, len(head.anchors)
    classes, objectness, places = np.split(values.ravel(), np.cumsum((cells * head.classes, cells * boxes)))
    joint = objectness.reshape(cells, boxes, 1) * classes.reshape(cells, 1, head.classes)
    cell, box = np.nonzero(joint.max(axis=2) > threshold)
    x, y, width, height = places.reshape(cells, boxes, 4)[cell, box].T
    centres = np.stack([cell % head.bins + x, cell // head.bins + y], 1) / head.bins
    half = np.array(head.anchors, np.float64)[box] * np.stack([width, height], 1) ** 2 / 2
    corners = np.concatenate([centres - half, centres + half], 1)
    return Candidates(corners, np.clip(joint[cell, box], 0, 1))


CENTRE_VARIANCE, SIZE_VARIANCE = 0.1, 0.2
"""Factors of SSD's offsets of centre and size."""


def decode_ssd(
    output: FloatArray, head: Head, input_height: int, input_width: int, threshold: float = THRESHOLD
) -> Candidates:
    """Return the boxes of an SSD head with a class probability above ``threshold``.

    Anchors are prior boxes at cell centres, in pixels. The channels are x, y, width and height of each anchor, then the
    classes of each anchor. x = prior x + 0.1 · t_x · prior width, w = prior width · e^(0.2 · t_w), and equally for y
    and h. With ``softmax`` the first class of an anchor means that there is no object, and is left out.
    """
    values = checked(output, head)
    count, (height, width) = len(head.anchors), values.shape[1:]
    offsets = values[: 4 * count].reshape(count, 4, height, width)
    scores = values[4 * count :].reshape(count, -1, height, width).astype(np.float64)
    classes = softmax(scores)[:, 1:] if head.softmax else sigmoid(scores)
    anchor, row, column = np.nonzero(classes.max(axis=1) > threshold)
    picked = offsets[anchor, :, row, column].astype(np.float64)
    priors = np.array(head.anchors)[anchor] / (input_width, input_height)
    cells = np.stack([(column + 0.5) / width, (row + 0.5) / height], 1)
    centres = cells + CENTRE_VARIANCE * picked[:, :2] * priors
    half = priors * np.exp(np.minimum(SIZE_VARIANCE * picked[:, 2:], _MAX_LOG)) / 2
    return Candidates(np.concatenate([centres - half, centres + half], 1), classes[anchor, :, row, column])


def decode_anchor_free(output: FloatArray, head: Head, threshold: float = THRESHOLD) -> Candidates:
    """Return the boxes of an anchor-free head (YOLOv8, v11) whose cells have a class probability above ``threshold``.

    The channels are left, top, right and bottom with ``bins`` values each, then the classes. A distance is Σ i ·
    softmax(bins) in cells from the centre of the cell (arXiv:2006.04388, section 3.2), or the value itself without
    bins. Classes are independent, and there is no objectness.
    """
    values = checked(output, head)
    height, width = values.shape[1:]
    classes = sigmoid(values[head.coords * head.bins :])
    row, column = np.nonzero(classes.max(axis=0) > threshold)
    sides = values[: head.coords * head.bins, row, column].astype(np.float64).reshape(head.coords, head.bins, -1)
    if head.bins > 1:
        sides = (softmax(sides) * np.arange(head.bins)[None, :, None]).sum(axis=1, keepdims=True)
    x, y, distances = column + 0.5, row + 0.5, sides[:, 0]
    corners = (x - distances[0], y - distances[1], x + distances[2], y + distances[3])
    boxes = np.stack(corners, 1) / (width, height, width, height)
    return Candidates(boxes, classes[:, row, column].T)
