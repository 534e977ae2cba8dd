"""Resize in mode linear to fewer pixels: a window of each channel by itself, as the outputs lie whole pixels apart."""

from __future__ import annotations

from cnn.onnx.graph import Operation
from cnn.onnx.layers import Layers, Map
from cnn.onnx.resizing.scaled import Side, place_mode
from cnn.onnx.windows.picked import Picks, picked


def shrinks_wholly(side: Side, mode: str) -> bool:
    """Whether its outputs lie whole pixels apart, and inside of the map."""
    places = side.places(mode)
    if places is None or (side.outputs > 1 and (places[1].denominator > 1 or side.outputs > side.length)):
        return False
    picks = _between(side, mode)
    return picks.first >= 0 and picks.first + (side.outputs - 1) * picks.step + len(picks.shares) <= side.length


def shrunk(layers: Layers, operation: Operation, source: Map, sides: tuple[Side, Side]) -> Layers:
    """The map, both of whose sides shrink so."""
    mode = place_mode(layers, operation)
    rows, columns = (_between(side, mode) for side in sides)
    return picked(layers, operation, source.node, rows, columns)


def _between(side: Side, mode: str) -> Picks:
    """Of each output the pixel that it lies on, or the shares of the two that it lies between."""
    places = side.places(mode)
    assert places is not None
    first, step = places
    low = first.numerator // first.denominator
    beyond = first - low
    shares = (1 - beyond, beyond) if beyond else (beyond + 1,)
    return Picks(side.length, low, max(1, int(step)), side.outputs, shares)
