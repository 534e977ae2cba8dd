"""From Pillow's picture of any mode to red, green and blue, upright, with no second copy of the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

Pixels = npt.NDArray[np.uint8]

_ORIENTATION = 0x0112  # tag of EXIF
_TILE_WIDTH, _TILE_PIXELS = 4096, 1 << 17

_AS_STORED: dict[int, Callable[[Pixels], Pixels]] = {
    2: lambda upright: upright[:, ::-1],
    3: lambda upright: upright[::-1, ::-1],
    4: lambda upright: upright[::-1],
    5: lambda upright: upright.transpose(1, 0, 2),
    6: lambda upright: upright.transpose(1, 0, 2)[::-1],
    7: lambda upright: upright.transpose(1, 0, 2)[::-1, ::-1],
    8: lambda upright: upright.transpose(1, 0, 2)[:, ::-1],
}
"""The upright picture in the order of the camera's rows, by EXIF's number of its orientation."""


def upright_pixels(image: Any) -> Pixels:
    """A decoded ``PIL.Image`` → uint8 [height, width, 3], turned as EXIF says, what is transparent laid over white."""
    orientation = image.getexif().get(_ORIENTATION, 1)
    width, height = image.size
    across = orientation in (5, 6, 7, 8)
    upright = np.empty((width, height, 3) if across else (height, width, 3), np.uint8)
    stored = _AS_STORED[orientation](upright) if orientation in _AS_STORED else upright
    for left, top, right, bottom in _tiles(width, height):
        stored[top:bottom, left:right] = _rgb(image.crop((left, top, right, bottom)))
    return upright


def _tiles(width: int, height: int) -> Iterator[tuple[int, int, int, int]]:
    columns = min(width, _TILE_WIDTH)
    rows = _TILE_PIXELS // columns
    for top in range(0, height, rows):
        for left in range(0, width, columns):
            yield left, top, min(left + columns, width), min(top + rows, height)


def _rgb(image: Image.Image) -> Pixels:
    if image.mode.startswith("I") or image.mode == "F":
        return _from_deep_grey(np.asarray(image))
    if "A" in image.getbands() or "transparency" in image.info:
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image.convert("RGBA"))
    return np.asarray(image.convert("RGB"))


def _from_deep_grey(values: npt.NDArray[np.generic]) -> Pixels:
    """16-bit grey → 8 bits by its high byte; Pillow's own conversion would clip all above 255 to white."""
    if values.dtype.kind == "f":
        grey = np.clip(np.nan_to_num(values.astype(np.float64)), 0, 255).astype(np.uint8)
    else:
        grey = (np.clip(values.astype(np.int64), 0, 65535) >> 8).astype(np.uint8)
    return np.repeat(grey[:, :, None], 3, axis=2)
