"""Resize in mode linear to fewer pixels: a window of each channel by itself, as the outputs lie whole pixels apart."""

from __future__ import annotations

from cnn.onnx.graph import Operation, require
from cnn.onnx.layers import Layers, Map
from cnn.onnx.windows.picked import Picks, picked
from cnn.onnx.windows.scaled import Side, place_mode


def shrunk(layers: Layers, operation: Operation, source: Map, sides: tuple[Side, Side]) -> Layers:
    """The map, height and width no larger than they were."""
    require(not operation.integer("antialias", 0), "of a map that shrinks no antialias is computed")
    mode = place_mode(layers, operation)
    rows, columns = (_between(side, mode) for side in sides)
    return picked(layers, operation, source.node, rows, columns)


def _between(side: Side, mode: str) -> Picks:
    """Of each output the pixel that it lies on, or the shares of the two that it lies between."""
    places = side.places(mode)
    require(places is not None, f"coordinate_transformation_mode {mode!r} is not interpolated")
    assert places is not None
    first, step = places
    require(
        side.outputs == 1 or (step.denominator == 1 and side.outputs <= side.length),
        "a map shrinks in mode linear where its outputs lie whole pixels apart, by 1/2, 1/3 …, and height and width do "
        f"so, not from {side.length} to {side.outputs}",
    )
    low = first.numerator // first.denominator
    beyond, stride = first - low, int(step)
    shares = (1 - beyond, beyond) if beyond else (beyond + 1,)
    last = low + (side.outputs - 1) * stride + len(shares) - 1
    require(low >= 0 and last < side.length, f"its outputs lie outside of {side.length} pixels")
    return Picks(side.length, low, stride, side.outputs, shares)
