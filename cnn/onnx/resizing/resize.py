"""Resize and Upsample: pixels are repeated or interpolated, or some of them taken."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from boards.errors import ChoiceError
from cnn.maps import Shape
from cnn.onnx.graph import Operation, require
from cnn.onnx.layers import Layers, Map
from cnn.onnx.resizing.interpolated import grows_wholly, interpolated
from cnn.onnx.resizing.ratios import between, respaced
from cnn.onnx.resizing.scaled import PLACE_MODES, Side, nearest_mode, place_mode, sides_of
from cnn.onnx.resizing.shrunk import shrinks_wholly, shrunk
from cnn.onnx.windows.picked import Picks, picked
from cnn.ops import Upsample


def resize(layers: Layers, operation: Operation) -> Layers:
    """Resize and Upsample: to whole multiples every pixel is repeated, or interpolated between its neighbours; to whole
    parts one of several is taken, or the mean of two; by other ratios what is taken of repeats. Of a single pixel any
    mode repeats it."""
    source, shape = layers.picture(operation)
    rows, columns = sides_of(layers, operation, source)
    layers.check_room(Shape(shape.channels, rows.outputs, columns.outputs))
    _check_same(layers, operation, (rows, columns))
    mode = operation.text("mode", "nearest")
    if mode == "nearest" or shape.height == shape.width == 1:
        return _nearest(layers, operation, source, (rows, columns))
    require(mode in ("linear", "bilinear"), ChoiceError("mode", mode, ("nearest", "linear")))
    sides, place = (rows, columns), place_mode(layers, operation)
    if any(side.outputs < side.length for side in sides):
        require(not operation.integer("antialias", 0), "a map is not made smaller with antialias")
    require(rows.places(place) is not None, ChoiceError("coordinate_transformation_mode", place, PLACE_MODES))
    if all(grows_wholly(side, place) for side in sides):
        return interpolated(layers, operation, source, sides)
    if all(shrinks_wholly(side, place) for side in sides):
        return shrunk(layers, operation, source, sides)
    return between(layers, operation, source.node, sides, place)


def _check_same(layers: Layers, operation: Operation, sides: tuple[Side, Side]) -> None:
    """Raise RefusedError for a map that keeps its sides at another scale than 1.

    onnxruntime leaves it as it is, and the operator's page does not.
    """
    keeps = all(side.outputs == side.length for side in sides)
    plain = all(side.scale == 1 or side.length == 1 for side in sides)
    require(
        not keeps or plain or place_mode(layers, operation) == "align_corners",
        f"onnx and onnxruntime differ for scales of {sides[0].scale:g} and {sides[1].scale:g} that keep the number of "
        "pixels; write 1",
    )


def _nearest(layers: Layers, operation: Operation, source: Map, sides: tuple[Side, Side]) -> Layers:
    """Of a side every pixel as often, or every so manieth; else what is taken of its repeats."""
    how, (rows, columns) = nearest_mode(layers, operation), sides
    up, across = _times(rows, how), _times(columns, how)
    every = (Picks(rows.length, 0, 1, rows.length), Picks(columns.length, 0, 1, columns.length))
    picks = every[0] if up else _taken(rows, how), every[1] if across else _taken(columns, how)
    if picks[0] is None or picks[1] is None:
        return respaced(layers, operation, source.node, (rows.nearest(*how), columns.nearest(*how)))
    index, bare = source.node, replace(operation, inputs=operation.inputs[:1])
    if picks != every:
        layers = picked(layers, bare, index, picks[0], picks[1])
        index = len(layers.nodes) - 1
        if max(up, across) <= 1:
            return layers
    return _repeated(layers, bare, index, (max(up, 1), max(across, 1)))


def _repeated(layers: Layers, operation: Operation, index: int, times: tuple[int, int]) -> Layers:
    """Each pixel in so many rows and columns."""
    shape, (up, across) = layers.nodes[index].shape, times
    larger = Shape(shape.channels, shape.height * up, shape.width * across)
    return layers.grown(operation, "upsample", Upsample(up, across=0 if up == across else across), larger, index)


def _times(side: Side, how: tuple[str, str]) -> int:
    """How often each pixel of a side is repeated; 0 where they are not all repeated alike."""
    times, rest = divmod(side.outputs, side.length)
    if side.length > 1 and (rest or not (side.nearest(*how) == np.arange(side.outputs) // times).all()):
        return 0
    return times


def _taken(side: Side, how: tuple[str, str]) -> Picks | None:
    """The pixels of a side that are left, where they lie one step apart."""
    return Picks.from_places(side.nearest(*how), side.length) if side.outputs < side.length else None
