"""Heads without anchors: each cell says how far the sides of its box are (YOLOv8, YOLOv11)."""

from __future__ import annotations

import numpy as np

from host.vision.heads.head import THRESHOLD, Candidates, FloatArray, Head, checked, sigmoid, softmax


def decode_anchor_free(output: FloatArray, head: Head, threshold: float = THRESHOLD) -> Candidates:
    """Boxes of the cells of which a class exceeds ``threshold``.

    Channels: left, top, right and bottom, ``bins`` each, then the classes. A distance is Σ i · softmax(bins) in cells
    from the cell's middle, the mean of a distribution (arXiv:2006.04388, section 3.2); of one bin it is the value.
    Classes are independent, and there is no objectness.
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
