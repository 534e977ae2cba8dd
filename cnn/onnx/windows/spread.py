"""A row of values that is looked at as a map, as decoders and generators begin: depth to space, its channels brought
into that order before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cnn.onnx.graph import Operation
from cnn.onnx.layers import Layers, Map, map_shape
from cnn.onnx.shapes import reordered
from cnn.ops import DepthToSpace


def spread(layers: Layers, name: str) -> Layers:
    """The tensor with its values at their places; as it is where its node has more than one position, or its view has
    no more."""
    value = layers.value(name)
    if not isinstance(value, Map) or value.last or not 3 <= len(value.shape) <= 4:
        return layers
    node, shape = layers.nodes[value.node].shape, map_shape(value.shape)
    if node.values != node.channels or shape.channels == node.channels:
        return layers
    operation = Operation("", "Reshape", (name,), (name,), {})
    order = np.arange(node.channels).reshape(shape.channels, -1).T.ravel()
    layers, index = reordered(layers, operation, value.node, order)
    places = DepthToSpace(shape.height, shape.width)
    layers = layers.grown(operation, "depth_to_space", places, shape, index)
    return layers.with_values(operation, replace(value, node=len(layers.nodes) - 1))
