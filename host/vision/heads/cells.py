"""The head of YOLOv1: a fully connected layer gives the values of all cells, one kind after the other."""

from __future__ import annotations

import numpy as np

from boards.errors import ShapeError
from host.vision.heads.head import THRESHOLD, Candidates, FloatArray, Head, checked


def decode_cells(output: FloatArray, head: Head, threshold: float = THRESHOLD) -> Candidates:
    """Boxes of which a class exceeds ``threshold``; output: float32 [channels, 1, 1]. ShapeError if it has rows.

    First the classes of each cell, then the objectness of each of its boxes, then x, y and the roots of width and
    height of each, all without a function: x = (column + t_x) / columns, w = t_w² (arXiv:1506.02640, section 2;
    darknet's ``get_detection_detections`` with ``sqrt=1``). Probabilities are cut off to 0…1.
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
