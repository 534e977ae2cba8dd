"""Heads of so many boxes a cell, each with its objectness: YOLOv2 to v5, and UltraNet's."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from host.vision.heads.head import THRESHOLD, Candidates, DoubleArray, FloatArray, Head, checked, sigmoid, softmax

_LARGEST_LOG = 16.0  # e^16 grid cells is beyond any picture, and keeps exp() finite


def decode_region(output: FloatArray, head: Head, threshold: float = THRESHOLD) -> Candidates:
    """Boxes of a YOLOv2 head whose objectness exceeds ``threshold``.

    x = (column + σ(t_x)) / columns, w = anchor · e^(t_w) / columns, likewise y and h; classes by softmax, or
    by σ where the head has none (YOLO9000, arXiv:1612.08242, section 2; darknet's ``get_region_detections``).
    """
    values, columns, rows, anchors = _likely_cells(output, head, threshold)
    height, width = output.shape[1:]
    classes = softmax(values[:, 5:]) if head.softmax else sigmoid(values[:, 5:])
    centres = _centres(values, columns, rows, head) / (width, height)
    return _candidates(values, centres, anchors / (width, height) * _exponential(values), classes)


def decode_yolo(
    output: FloatArray, head: Head, input_height: int, input_width: int, threshold: float = THRESHOLD
) -> Candidates:
    """Boxes of a YOLOv3, v4 or v5 head whose objectness exceeds ``threshold``; anchors are pixels of the input.

    As ``decode_region``, but classes are independent (arXiv:1804.02767, darknet's ``get_yolo_detections``), and
    scale_xy stretches the cell in which a centre may lie: s · σ(t_x) − (s − 1) / 2 (arXiv:2004.10934, section 3.4). A
    scaled-yolo head has sizes of anchor · (2σ(t_w))² (arXiv:2011.08036, darknet's ``new_coords``). Behind each
    coordinate of a gaussian-yolo head stands its variance; a probability is times 1 − the mean σ of these
    (arXiv:1904.04620, section 3; darknet's ``get_gaussian_yolo_detections``).
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
    """The one box of the cell whose objectness is greatest, averaged over the anchors (UltraNet, DAC-SDC 2020).

    x = (column + mean σ(t_x)) / columns, w = mean anchor · e^(t_w) / input width, likewise y and h. The probability
    is the mean σ(t_o), times the mean σ of the class where there is more than one. The cell is chosen by the mean t_o.
    """
    values = _by_anchor(output, head).astype(np.float64)
    height, width = values.shape[2:]
    row, column = divmod(int(np.argmax(values[:, 4].mean(axis=0))), width)
    cell = values[:, :, row, column]
    x, y = sigmoid(cell[:, :2]).mean(axis=0)
    centre = np.array([(column + x) / width, (row + y) / height])
    sizes = np.array(head.anchors) * np.exp(np.minimum(cell[:, 2:4], _LARGEST_LOG))
    half = sizes.mean(axis=0) / (input_width, input_height) / 2
    classes = sigmoid(cell[:, 5:]).mean(axis=0) if head.classes > 1 else np.ones(1)
    probability = sigmoid(cell[:, 4]).mean() * classes
    return Candidates(np.concatenate([centre - half, centre + half])[None], np.asarray(probability)[None])


def _likely_cells(
    output: FloatArray, head: Head, threshold: float
) -> tuple[DoubleArray, DoubleArray, DoubleArray, DoubleArray]:
    """Values [n, 5 + classes, or 9 + classes with variances], column [n], row [n] and anchor [n, 2] of the boxes with
    enough objectness.

    A class probability is at most 1, so the objectness alone rules out nearly every cell before anything
    is exponentiated.
    """
    values = _by_anchor(output, head)
    objectness = values[:, 8 if head.kind == "gaussian-yolo" else 4]
    anchor, row, column = np.nonzero(sigmoid(objectness) > threshold)
    picked = values[anchor, :, row, column].astype(np.float64)
    anchors = np.array(head.anchors, np.float64)[anchor]
    return picked, column.astype(np.float64), row.astype(np.float64), anchors


def _by_anchor(output: FloatArray, head: Head) -> npt.NDArray[np.floating[Any]]:
    """[anchors, 5 + classes, height, width]; 9 + classes with variances."""
    return checked(output, head).reshape(len(head.anchors), head.channels // len(head.anchors), *output.shape[1:])


def _centres(values: DoubleArray, columns: DoubleArray, rows: DoubleArray, head: Head) -> DoubleArray:
    """[n, 2] in cells."""
    within = head.scale_xy * sigmoid(values[:, :2]) - (head.scale_xy - 1) / 2
    return np.asarray(np.stack([columns, rows], 1) + within)


def _exponential(values: DoubleArray) -> DoubleArray:
    """e^(t_w), e^(t_h): [n, 2]."""
    return np.asarray(np.exp(np.minimum(values[:, 2:4], _LARGEST_LOG)))


def _candidates(values: DoubleArray, centres: DoubleArray, sizes: DoubleArray, classes: DoubleArray) -> Candidates:
    """centres, sizes [n, 2]: as fractions of the input."""
    half = sizes / 2
    return Candidates(np.concatenate([centres - half, centres + half], 1), sigmoid(values[:, 4:5]) * classes)
