"""Heads of SSD (arXiv:1512.02325): boxes beside prior boxes, and classes without an objectness."""

from __future__ import annotations

import numpy as np

from host.vision.heads.head import THRESHOLD, Candidates, FloatArray, Head, checked, sigmoid, softmax

CENTRE, SIZE = 0.1, 0.2
"""The variances: what offsets of centre and size are multiplied by."""

_LARGEST_LOG = 16.0


def decode_ssd(
    output: FloatArray, head: Head, input_height: int, input_width: int, threshold: float = THRESHOLD
) -> Candidates:
    """Boxes of which a class exceeds ``threshold``; anchors are prior boxes in the middle of each cell, in pixels.

    Channels: x, y, width and height of each anchor, then the classes of each. x = prior x + 0.1 · t_x · prior width,
    w = prior width · e^(0.2 · t_w), likewise y and h. With ``softmax`` the first class of an anchor is that of no
    object, and left out.
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
    centres = cells + CENTRE * picked[:, :2] * priors
    half = priors * np.exp(np.minimum(SIZE * picked[:, 2:], _LARGEST_LOG)) / 2
    return Candidates(np.concatenate([centres - half, centres + half], 1), classes[anchor, :, row, column])
