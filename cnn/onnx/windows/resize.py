"""Resize and Upsample."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cnn.network import Shape, Upsample
from cnn.onnx.graph import Array, Operation, RefusedError, require, whole_numbers
from cnn.onnx.layers import Layers, Map
from cnn.onnx.windows.interpolated import interpolated


def resize(layers: Layers, operation: Operation) -> Layers:
    """Resize and Upsample to whole multiples, where every pixel is repeated, or interpolated between its neighbours; of
    a single pixel any mode repeats it."""
    source, shape = layers.picture(operation)
    scales, mode = _scales(layers, operation, source), operation.text("mode", "nearest")
    repeated = mode == "nearest" or shape.height == shape.width == 1
    if mode in ("linear", "bilinear") and not repeated:
        return interpolated(layers, operation, source, scales)
    require(repeated, f"pixels are repeated or interpolated (mode nearest, linear), not {mode!r}")
    require(
        min(scales) >= 1 and all(float(scale).is_integer() for scale in scales),
        f"height and width grow by whole factors, not by {scales}",
    )
    rows, columns = (int(scale) for scale in scales)
    larger = Shape(shape.channels, shape.height * rows, shape.width * columns)
    layers.check_room(larger)
    for side, factor in ((shape.height, rows), (shape.width, columns)):
        pixels = _nearest(operation, side, factor) if side > 1 else np.zeros(factor)
        require(
            bool((pixels == np.arange(side * factor) // factor).all()),
            "coordinate_transformation_mode and nearest_mode do not give each pixel the same number of times",
        )
    return layers.grown(
        operation, "upsample", Upsample(rows, across=0 if rows == columns else columns), larger, source.node
    )


def _scales(layers: Layers, operation: Operation, source: Map) -> tuple[float, float]:
    """How much larger height and width become."""
    if operation.kind == "Resize" and layers.optional(operation, 3) is not None:
        sizes = whole_numbers(layers.constant(operation, 3))
        factors = [size / side for size, side in zip(sizes, source.shape, strict=False)]
    elif "scales" in operation.attributes:
        factors = list(operation.numbers("scales"))
    else:
        position = 2 if len(operation.inputs) > 2 else 1
        factors = [float(scale) for scale in layers.constant(operation, position).ravel()]
    require(len(factors) == 4 and "axes" not in operation.attributes, "there must be a factor for each of four sides")
    fits = factors[:2] == [1, 1] and all(0 < factor < np.inf for factor in factors[2:])
    require(fits, f"height and width grow by whole factors, batch and channels by 1, not by {factors}")
    return factors[2], factors[3]


def _nearest(operation: Operation, side: int, factor: int) -> Array:
    """Which input pixel each output pixel is, by the formulas of the operator's page (Resize, Upsample: floor)."""
    if operation.kind == "Upsample":
        return np.arange(side * factor) // factor
    out = np.arange(side * factor)
    mode = operation.text("coordinate_transformation_mode", "half_pixel")
    places = {
        "half_pixel": (out + 0.5) / factor - 0.5,
        "half_pixel_symmetric": (out + 0.5) / factor - 0.5,
        "pytorch_half_pixel": (out + 0.5) / factor - 0.5 if side * factor > 1 else out * 0.0,
        "asymmetric": out / factor,
        "align_corners": out * (side - 1) / max(1, side * factor - 1),
    }
    rounded: dict[str, Callable[[Array], Array]] = {
        "round_prefer_floor": lambda x: np.ceil(x - 0.5),
        "round_prefer_ceil": lambda x: np.floor(x + 0.5),
        "floor": np.floor,
        "ceil": np.ceil,
    }
    nearest = operation.text("nearest_mode", "round_prefer_floor")
    if mode not in places or nearest not in rounded:
        raise RefusedError(f"coordinate_transformation_mode {mode!r} with nearest_mode {nearest!r} is not known")
    return np.clip(rounded[nearest](places[mode]), 0, side - 1)
