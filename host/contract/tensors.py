"""Conversion of the integers of a network's input and outputs, independent of how they reach the accelerator."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from boards.errors import ShapeError, shown
from host.contract.parts import TensorMap

Pixels = npt.NDArray[np.uint8]
Integers: TypeAlias = "npt.NDArray[np.signedinteger[Any]]"
"""A string, because numpy 1.21 has the type parameter for type checkers only."""


def check_input(picture: Pixels, region: TensorMap) -> None:
    """Raise ShapeError if the picture is not uint8 with the shape of the network's input, (channels, height, width)."""
    is_array = isinstance(picture, np.ndarray)
    if not is_array or picture.shape != region.shape or picture.dtype != np.uint8:
        got = f"type {picture.dtype} and shape {picture.shape}" if is_array else shown(picture)
        raise ShapeError("the input", got, f"type uint8 and shape {region.shape}")


def fill_pixels(picture: Pixels, rows: Pixels, pixel_bytes: int) -> None:
    """Write a network input to ``rows``, the buffer that the accelerator reads, as pixels of ``pixel_bytes`` bytes.

    If the picture has more channels than a pixel, each row consists of planes of equal size, one after the other. Bytes
    of a pixel beyond the channels, and bytes of a plane beyond the pixels, are not written.

    Args:
        picture: uint8 ``(channels, height, width)``.
        rows: uint8 ``(height, bytes of a row)``, written in place.
        pixel_bytes: Channels stored per pixel, one byte each.
    """
    pixels = planes_of(rows, picture.shape, pixel_bytes)
    for channel, values in enumerate(picture):
        pixels[:, channel // pixel_bytes, :, channel % pixel_bytes] = values


def planes_of(rows: Pixels, shape: tuple[int, ...], pixel_bytes: int) -> Pixels:
    """Return a view of the input buffer ``rows`` as ``(height, planes, width, pixel_bytes)``. ``shape`` is (channels,
    height, width)."""
    channels, height, width = shape
    planes = -(-channels // pixel_bytes)
    pixels = rows.reshape(height, planes, -1)[:, :, : width * pixel_bytes]
    return pixels.reshape(height, planes, width, pixel_bytes)


def to_floats(region: TensorMap, integers: Integers) -> npt.NDArray[np.float32]:
    """Return a feature map's real values as float32: (integer − zero point) × scale, rounded once."""
    return np.asarray((integers.astype(np.float64) - region.zero_point) * region.scale, np.float32)
