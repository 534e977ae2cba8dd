"""Keras' layers that move values, or do the same to all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from boards.errors import ChoiceError, ShapeError
from cnn.keras.graph import Graph
from cnn.keras.layers import MODES, flattened, numbers, rank_of, shape_of
from cnn.onnx.graph import require


def reshaped(graph: Graph, layer: Any, inputs: Sequence[str]) -> str:
    """Reshape: a map's values in a row, its positions in a row, or a row of values as a map, its channels last."""
    sides, target = [side or 1 for side in shape_of(layer)[1:]], [*layer.target_shape]
    size = int(np.prod(sides))
    if -1 in target:
        target[target.index(-1)] = size // -int(np.prod(target))
    if len(target) == 1:
        return flattened(graph, layer, inputs)
    ordered = inputs[0] not in graph.flattened
    keeps = target[-1] == sides[-1] and ordered
    fits = len(target) <= 3 and (keeps or (len(sides) == 1 and ordered))
    required = f"the channels of {tuple(sides)} as last side, or one row, or be a map of one row"
    require(fits, ShapeError("its output", tuple(target), required))
    if keeps:
        return graph.put("Reshape", [inputs[0], graph.constant([1, target[-1], *target[:-1]], np.int64)], layer.name)
    last = graph.put("Reshape", [inputs[0], graph.constant([1, *target], np.int64)], layer.name)
    return graph.put("Transpose", [last], layer.name, perm=[0, len(target), *range(1, len(target))])


def cropped(graph: Graph, layer: Any, inputs: Sequence[str]) -> str:
    """Cropping1D, Cropping2D."""
    pairs = [side for side in layer.cropping if isinstance(side, (list, tuple))] or [layer.cropping]
    sides = shape_of(layer)[1:-1]
    ends = [(side or 0) - back for side, (_, back) in zip(sides, pairs, strict=True)]
    values = ([front for front, _ in pairs], ends, range(2, 2 + len(pairs)))
    return graph.put("Slice", [inputs[0], *(graph.constant([*each], np.int64) for each in values)], layer.name)


def repeated(graph: Graph, layer: Any, inputs: Sequence[str]) -> str:
    """UpSampling1D."""
    modes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return graph.put("Resize", [inputs[0], "", graph.constant([1, 1, layer.size])], layer.name, **modes)


def averaged(graph: Graph, layer: Any, inputs: Sequence[str]) -> str:
    """Average: the sum of maps, divided by how many they are."""
    total = graph.put("Sum", inputs, layer.name)
    return graph.put("Mul", [total, graph.constant(1 / len(inputs))], layer.name)


def normalised(graph: Graph, layer: Any, inputs: Sequence[str]) -> str:
    """Normalization by a mean and a variance, of all values or of each channel."""
    require(not layer.invert, "it is inverted; only invert=False, which subtracts the mean and divides, is")
    rank = rank_of(layer)
    mean, deviation = numbers(layer.mean), np.maximum(np.sqrt(numbers(layer.variance)), 1e-7)
    for what, values in (("its mean", mean), ("its variance", deviation)):
        fits = values.size in (1, values.shape[-1])
        require(fits, ShapeError(what, values.shape, "one number, or one for each channel, the last axis"))
    columns = [values.reshape(-1, *(1,) * (rank - 2)) for values in (mean, deviation)]
    less = graph.put("Sub", [inputs[0], graph.constant(columns[0])], layer.name)
    return graph.put("Div", [less, graph.constant(columns[1])], layer.name)


def resized(graph: Graph, layer: Any, inputs: Sequence[str]) -> str:
    """Resizing to height and width."""
    require(layer.interpolation in MODES, ChoiceError("interpolation", layer.interpolation, tuple(MODES)))
    for option in ("crop_to_aspect_ratio", "pad_to_aspect_ratio", "antialias"):
        require(not getattr(layer, option, False), f"its option {option} is set")
    sides = [1, shape_of(layer)[-1], layer.height, layer.width]
    modes = MODES[layer.interpolation] | {"coordinate_transformation_mode": "half_pixel"}
    if layer.interpolation == "nearest":
        modes["nearest_mode"] = "round_prefer_ceil"
    return graph.put("Resize", [inputs[0], "", "", graph.constant(sides, np.int64)], layer.name, **modes)
