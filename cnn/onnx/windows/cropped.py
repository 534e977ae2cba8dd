"""Slice: channels one after the other, and of rows and columns every so manieth from one on.

A window takes rows and columns in the same steps. So a Slice of rows alone waits for the Slice of columns behind it, as
exporters write x[:, :, ::2, ::2] (the Focus of YOLOv5 and YOLOX).
"""

from __future__ import annotations

from dataclasses import replace

from cnn.onnx import shapes
from cnn.onnx.graph import Operation, RefusedError, require
from cnn.onnx.layers import Layers, Map
from cnn.onnx.windows.picked import Picks, picked

Side = tuple[int, int, int]
"""Of the rows or columns of a node's map: the first that is taken, the step to the next, how many."""


def slices(layers: Layers, operation: Operation) -> Layers:
    """Slice."""
    source = layers.map(operation)
    shape = layers.nodes[source.node].shape
    if source.crop is None:
        layers.shape_of(source)
    sides = [(0, 1, shape.channels), *(source.crop or ((0, 1, shape.height), (0, 1, shape.width)))]
    rank = len(source.shape)
    for start, end, axis, step in _cuts(layers, operation):
        position = shapes.position_of(axis, rank)
        low, high, _ = slice(start, end).indices(source.shape[position])
        if (low, high, step) == (0, source.shape[position], 1):
            continue
        require(position > 0, "a batch of 1 is not cut")
        require(step >= 1, f"steps are 1 or more, not {step}")
        place = 0 if position == 1 else position + 3 - rank
        sides[place] = _within(sides[place], range(low, high, step))
    (first, step, count), *crop = sides
    require(step == 1 or count == 1, "channels are cut out one after the other, in steps of 1")
    layers = shapes.part(layers, operation, replace(source, crop=None), shape, first, first + count)
    whole = [(0, 1, shape.height), (0, 1, shape.width)]
    return layers if crop == whole else _cropped(layers, operation, rank, (crop[0], crop[1]))


def _cuts(layers: Layers, operation: Operation) -> list[tuple[int, int, int, int]]:
    """Start, end, axis and step of each side."""
    starts, ends = (_asked(layers, operation, key, i) for key, i in (("starts", 1), ("ends", 2)))
    axes = shapes.integers(layers, operation, "axes", 3) or tuple(range(len(starts)))
    steps = (shapes.integers(layers, operation, "steps", 4) or ()) or (1,) * len(starts)
    require(len(starts) == len(ends) == len(axes) == len(steps), "starts, ends, axes and steps must be as many")
    return list(zip(starts, ends, axes, steps, strict=True))


def _asked(layers: Layers, operation: Operation, key: str, position: int) -> tuple[int, ...]:
    values = shapes.integers(layers, operation, key, position)
    if values is None:
        raise RefusedError(f"{key} are missing")
    return values


def _within(side: Side, places: range) -> Side:
    """These of the places that are taken already."""
    require(len(places) >= 1, f"places {places.start}…{places.stop - 1} are none")
    return side[0] + side[1] * places.start, side[1] * places.step, len(places)


def _cropped(layers: Layers, operation: Operation, rank: int, crop: tuple[Side, Side]) -> Layers:
    """Taken now, where rows and columns have one step, else left to the next operation."""
    (name,), ((_, down, rows), (_, across, columns)) = operation.outputs, crop
    value = layers.value(name)
    assert isinstance(value, Map)
    channels = layers.nodes[value.node].shape.channels
    sides = (1, channels, rows, columns) if rank == 4 else (1, channels, columns)
    layers = layers.with_values(operation, replace(value, shape=sides, crop=crop))
    return settled(layers, name) if down == across or 1 in (rows, columns) else layers


def settled(layers: Layers, name: str) -> Layers:
    """The tensor with its rows and columns taken."""
    value = layers.value(name)
    if not isinstance(value, Map) or value.crop is None:
        return layers
    shape, operation = layers.nodes[value.node].shape, Operation("", "Slice", (name,), (name,), {})
    sides = zip((shape.height, shape.width), value.crop, strict=True)
    rows, columns = (Picks(length, first, step, count) for length, (first, step, count) in sides)
    layers = picked(layers, operation, value.node, rows, columns)
    return layers.with_values(operation, replace(value, node=len(layers.nodes) - 1, crop=None))
