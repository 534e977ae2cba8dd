"""Integers of a network's input and outputs on the host, whatever carries them to the accelerator."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from boards.errors import ShapeError, shown
from host.contract.parts import TensorMap

Pixels = npt.NDArray[np.uint8]
Integers: TypeAlias = "npt.NDArray[np.signedinteger[Any]]"
"""Written as a text: numpy 1.21 has the parameter for type checkers only."""


def check_input(picture: Pixels, region: TensorMap) -> None:
    """Raise ShapeError if the picture is not uint8 of the shape of the network's input."""
    is_array = isinstance(picture, np.ndarray)
    if not is_array or picture.shape != region.shape or picture.dtype != np.uint8:
        got = f"type {picture.dtype} and shape {picture.shape}" if is_array else shown(picture)
        raise ShapeError("the input", got, f"type uint8 and shape {region.shape}")


def fill_pixels(picture: Pixels, rows: Pixels, pixel_bytes: int) -> None:
    """uint8 [channels, height, width] → ``rows`` uint8 [height, bytes of a row]: pixels of ``pixel_bytes``; of more
    channels one equal part of the row, a plane, behind the other.

    What a pixel holds beyond its channels, and a plane beyond its pixels, is left as it is.
    """
    pixels = planes_of(rows, picture.shape, pixel_bytes)
    for channel, values in enumerate(picture):
        pixels[:, channel // pixel_bytes, :, channel % pixel_bytes] = values


def planes_of(rows: Pixels, shape: tuple[int, ...], pixel_bytes: int) -> Pixels:
    """[height, planes, width, pixel_bytes] of ``rows``, without a copy; shape: [channels, height, width]."""
    channels, height, width = shape
    planes = -(-channels // pixel_bytes)
    pixels = rows.reshape(height, planes, -1)[:, :, : width * pixel_bytes]
    return pixels.reshape(height, planes, width, pixel_bytes)


def to_floats(region: TensorMap, integers: Integers) -> npt.NDArray[np.float32]:
    """(integer − zero point) × scale, rounded once to float32."""
    return np.asarray((integers.astype(np.float64) - region.zero_point) * region.scale, np.float32)
