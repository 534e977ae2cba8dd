"""What a Resize asks of height and width, and where each output lies in the input, by the formulas of its page.

These are computed in float32, as onnxruntime does: a place near a half is rounded as it is there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from boards.errors import ChoiceError, InvalidValueError, RangeError, ShapeError
from cnn.limits import MAX_RATIO
from cnn.onnx.graph import Operation, require, whole_numbers
from cnn.onnx.layers import Layers, Map

Floats = npt.NDArray[np.float32]

FIRST_PLACES = 11
"""The opset from which on a Resize says where its outputs lie; before, as Upsample."""

WHOLE = "finite, above 0, 1 for batch and channels, and such that height and width are 1 or more"

PLACE_MODES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "asymmetric", "align_corners")
"""The values of coordinate_transformation_mode that are known."""

NEAR = 1e-4
"""Of places whose rounding depends on the order in which they are computed."""

_ROUNDED: dict[str, Callable[[Floats], Floats]] = {
    "round_prefer_floor": lambda x: np.floor(x) + (x - np.floor(x) > np.float32(0.5)),
    "round_prefer_ceil": lambda x: np.floor(x) + (x - np.floor(x) >= np.float32(0.5)),
    "floor": np.floor,
    "ceil": np.ceil,
}


@dataclass(frozen=True)
class Side:
    """Height or width. length: of the input. outputs: of the output. scale: how much larger it becomes, a float32."""

    length: int
    outputs: int
    scale: float

    def nearest(self, mode: str, rounded: str) -> npt.NDArray[np.int64]:
        """Which input pixel each output is."""
        out, scale = np.arange(self.outputs, dtype=np.float32), np.float32(self.scale)
        half, centres = np.float32(0.5), (out + np.float32(0.5)) / scale
        if mode == "asymmetric":
            places = out / scale
        elif mode == "align_corners":
            self._check_whole()
            places = out * np.float32(self.length - 1) / np.float32(max(1, self.outputs - 1))
        elif mode == "half_pixel_symmetric":
            beside = 1 - np.float32(self.outputs) / (scale * np.float32(self.length))
            places = np.float32(self.length) / 2 * beside + centres - half
        else:
            places = centres - half if mode == "half_pixel" or self.outputs > 1 else out * 0
        pixels, *neighbours = (
            np.clip(_ROUNDED[rounded](places + np.float32(beside)), 0, self.length - 1) for beside in (0, -NEAR, NEAR)
        )
        require(
            self._is_exact(mode, rounded)
            or bool((neighbours[0] == neighbours[1]).all())
            or self._agrees(mode, rounded, pixels),
            f"in mode {mode} one of {self.outputs} outputs is too near to halfway between two of {self.length} pixels",
        )
        return pixels.astype(np.int64)

    def _agrees(self, mode: str, rounded: str, pixels: Floats) -> bool:
        """Whether a place's exact number, and a product in place of a quotient, give the same pixels."""
        first, step = self.places(mode) or (Fraction(0), Fraction(0))
        exact = np.array([float(first + y * step) for y in range(self.outputs)])
        out, half, inverse = np.arange(self.outputs, dtype=np.float32), np.float32(0.5), 1 / np.float32(self.scale)
        product = out * inverse if mode == "asymmetric" else (out + half) * inverse - half
        orders = (np.clip(_ROUNDED[rounded](places), 0, self.length - 1) for places in (exact, product))
        return mode != "half_pixel_symmetric" and all(np.array_equal(order, pixels) for order in orders)

    def _check_whole(self) -> None:
        """Raise RefusedError if the last corner is not that of a whole pixel."""
        is_whole = abs(self.length * self.scale - self.outputs) < NEAR * self.outputs
        require(is_whole, "onnx and onnxruntime align corners differently if a factor leaves part of a pixel")

    def _is_exact(self, mode: str, rounded: str) -> bool:
        """Whether every order of computing a place gives the same pixel."""
        halves = math.frexp(self.scale)[0] == 0.5  # a power of two
        if mode == "half_pixel_symmetric":
            return halves and self.outputs == self.length * self.scale
        return halves or mode == "align_corners" or not rounded.startswith("round")

    def places(self, mode: str) -> tuple[Fraction, Fraction] | None:
        """Where the first output lies, and how far the next: exactly, of a scale that is a ratio of small numbers. None
        for a mode that is not known."""
        scale, half = Fraction(self.scale).limit_denominator(MAX_RATIO), Fraction(1, 2)
        require(scale > 0, RangeError("a scale", self.scale, low=1 / MAX_RATIO))
        step = 1 / scale
        first = {
            "half_pixel": half * step - half,
            "half_pixel_symmetric": (self.length - self.outputs * step) * half + half * step - half,
            "pytorch_half_pixel": half * step - half if self.outputs > 1 else Fraction(0),
            "asymmetric": Fraction(0),
            "align_corners": Fraction(0),
        }
        if mode == "align_corners":
            self._check_whole()
            step = Fraction(self.length - 1, max(1, self.outputs - 1))
        return (first[mode], step) if mode in first else None


def place_mode(layers: Layers, operation: Operation) -> str:
    """Its coordinate_transformation_mode, or what older operators have."""
    if operation.kind == "Upsample" or layers.opset < FIRST_PLACES:
        return "asymmetric"
    return operation.text("coordinate_transformation_mode", "half_pixel")


def nearest_mode(layers: Layers, operation: Operation) -> tuple[str, str]:
    """Return its place_mode and its nearest_mode; ChoiceError if one is not known."""
    mode, first = place_mode(layers, operation), layers.opset < FIRST_PLACES or operation.kind == "Upsample"
    rounded = "floor" if first else operation.text("nearest_mode", "round_prefer_floor")
    require(mode in PLACE_MODES, ChoiceError("coordinate_transformation_mode", mode, PLACE_MODES))
    require(rounded in _ROUNDED, ChoiceError("nearest_mode", rounded, tuple(_ROUNDED)))
    return mode, rounded


def sides_of(layers: Layers, operation: Operation, source: Map) -> tuple[Side, Side]:
    """Return height and width as they are asked; InvalidValueError if batch or channels change too."""
    rank = len(source.shape)
    places = _axes(operation, rank)
    lengths = [source.shape[place] for place in places]
    sized = operation.kind == "Resize" and layers.optional(operation, 3) is not None
    scaled = (_sized if sized else _multiplied)(layers, operation, lengths)
    sides = [Side(length, length, 1.0) for length in source.shape]
    for place, side in zip(places, scaled, strict=True):
        sides[place] = side
    fits = sides[0].scale == sides[1].scale == 1 and min(side.outputs for side in sides) >= 1
    require(fits, InvalidValueError("scales", [side.scale for side in sides], WHOLE))
    return sides[2] if rank == 4 else Side(1, 1, 1.0), sides[-1]


def _axes(operation: Operation, rank: int) -> list[int]:
    """Sides that are told of, counted from the front."""
    axes = operation.integers("axes", range(rank))
    places = [axis + rank if axis < 0 else axis for axis in axes]
    fits = len(set(places)) == len(places) and all(0 <= place < rank for place in places)
    require(rank > 2 and fits, InvalidValueError("axes", tuple(axes), f"different axes of a map of {rank} sides"))
    return places


def _multiplied(layers: Layers, operation: Operation, lengths: list[int]) -> list[Side]:
    """Sides of so many times their length."""
    factors = _factors(layers, operation, len(lengths))
    return [_scaled(length, factor) for length, factor in zip(lengths, factors, strict=True)]


def _factors(layers: Layers, operation: Operation, count: int) -> list[float]:
    """One for each of so many sides."""
    if "scales" in operation.attributes:
        factors = list(operation.numbers("scales"))
    else:
        position = 2 if len(operation.inputs) > 2 else 1
        values = layers.constant(operation, position).ravel()
        factors = [float(value) for value in values] if values.size <= count else []
    require(len(factors) == count, ShapeError("scales", f"{len(factors)} numbers", f"{count} numbers"))
    require(all(0 < factor < np.inf for factor in factors), InvalidValueError("scales", factors, WHOLE))
    return factors


def _scaled(length: int, factor: float) -> Side:
    """A side of so many times the length."""
    outputs = np.float32(length) * np.float32(factor)
    require(bool(outputs < np.inf), InvalidValueError("scales", factor, WHOLE))
    return Side(length, int(outputs), float(np.float32(factor)))


def _sized(layers: Layers, operation: Operation, lengths: list[int]) -> list[Side]:
    """Sides of a size each; where their ratio is kept, as large as fits in it, or as holds it."""
    sizes = whole_numbers(layers.constant(operation, 3))
    if "axes" not in operation.attributes and sizes[:1] == (layers.batch,):
        sizes = (1, *sizes[1:])
    fits = len(sizes) == len(lengths) and min(sizes) >= 1
    require(fits, InvalidValueError("sizes", sizes, f"{len(lengths)} numbers of 1 or more, one for each side"))
    policy = operation.text("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        ratios = [np.float32(size) / np.float32(length) for size, length in zip(sizes, lengths, strict=True)]
        return [Side(length, size, float(ratio)) for length, size, ratio in zip(lengths, sizes, ratios, strict=True)]
    policies = ("stretch", "not_larger", "not_smaller")
    require(policy in policies, ChoiceError("keep_aspect_ratio_policy", policy, policies))
    pick = min if policy == "not_larger" else max
    ratio = pick(np.float32(size) / np.float32(length) for size, length in zip(sizes, lengths, strict=True))
    return [Side(length, int(ratio * np.float32(length) + np.float32(0.5)), float(ratio)) for length in lengths]
