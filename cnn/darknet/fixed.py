"""Read the sections with implied weights, which no weights file stores: [batchnorm], and [reorg] with ``extra``."""

from __future__ import annotations

import numpy as np

from boards.errors import RangeError
from cnn.darknet.cfg import Section
from cnn.darknet.graph import DARKNET_EPSILON, DarknetLayers
from cnn.maps import Padding, Shape
from cnn.ops import BatchNorm, Convolution, Dense, Stored

ITSELF = Stored(is_implied=True)
MAX_REORG_VALUES = 1 << 12
"""Limit for the values of a [reorg] with ``extra``, whose layer has a weight per pair of an input and an output."""


def batch_norm(layers: DarknetLayers, section: Section) -> DarknetLayers:
    """Read the cfg section [batchnorm]: append a depthwise 1×1 convolution with weights of 1 and a batch norm."""
    channels = layers.shape.channels
    zeros = np.broadcast_to(np.float32(0), (channels,))
    norm = BatchNorm(zeros, zeros, zeros, DARKNET_EPSILON)
    weights = np.ones((channels, 1, 1, 1), np.float32)
    op = Convolution(weights, zeros, norm, 1, Padding(), channels, "linear", ITSELF)
    return layers.with_node(section, "norm", op, layers.shape)


def lengthened(layers: DarknetLayers, section: Section) -> DarknetLayers:
    """Read the cfg section [reorg] with ``extra``: append a layer that flattens its input and appends ``extra`` zeros.

    RangeError is raised if the row would be too long.
    """
    values, extra = layers.shape.values, section.integer("extra", None, 1, MAX_REORG_VALUES)
    outputs = values + extra
    if outputs > MAX_REORG_VALUES:
        what = f"the number of values that extra={extra} of [reorg] puts in a row"
        raise RangeError(what, outputs, high=MAX_REORG_VALUES, where=section.source_of("extra"))
    op = Dense(np.eye(outputs, values, dtype=np.float32), np.zeros(outputs, np.float32), None, "linear", ITSELF)
    return layers.with_node(section, "flat", op, Shape(outputs, 1, 1))
