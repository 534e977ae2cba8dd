"""Convolutions of several channels a group, as convolutions on all channels."""

from __future__ import annotations

import numpy as np

from cnn.quantized import IntArray


def on_all_channels(weights: IntArray, groups: int) -> IntArray:
    """Weights [filters, channels of a group, …] of ``groups`` as [filters, channels, …], 0 between groups."""
    filters, channels = weights.shape[:2]
    spread = np.zeros((filters, groups * channels, *weights.shape[2:]), weights.dtype)
    for group, part in enumerate(np.split(np.arange(filters), groups)):
        spread[part, group * channels : (group + 1) * channels] = weights[part]
    return spread
