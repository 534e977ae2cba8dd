"""Reading of picture files, and resizing to the network's input."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

from boards.errors import (
    ChoiceError,
    DamagedFileError,
    FileAccessError,
    RangeError,
    ShapeError,
    SystolicError,
    cut,
    listed,
)
from host import arguments
from host.arguments import PICTURE, kind
from host.vision.headers import JpegEnd, is_whole, memory_of, webp_memory, webp_pixels
from host.vision.placement import Placement

Pixels = npt.NDArray[np.uint8]

# Pillow knows more formats, but hands some to other programs (EPS) or reads them with little-used code.
FORMATS = ("JPEG", "PNG", "BMP", "GIF", "PPM", "TIFF", "WEBP")
TIFF_COMPRESSIONS = ("raw", "tiff_lzw", "tiff_deflate", "tiff_adobe_deflate", "packbits", "lzma", "zstd")
MAX_PICTURE_PIXELS = 64_000_000  # pixels
MAX_PICTURE_BYTES = 192_000_000  # bytes including decoding, so that a board with 512 MB can process two at a time
_BILINEAR = 2  # the number, because Pillow before 9.1 has another name for it
MAX_INPUT_SIDE, MAX_INPUT_PIXELS = 1 << 16, 1 << 26  # pixels per side of the network's input, and in total
GREY = 128  # bars of a letterbox: darknet's 0.5, rounded to a pixel value


def load_picture(path: Path | str) -> Pixels:
    """Read a picture file as uint8 ``(height, width, 3)``: red, green, blue, upright.

    The EXIF rotation is applied. Grey, palette, CMYK and 16-bit pictures are converted. Transparent pictures are
    composed over white. The first frame of an animation is used.

    Raises:
        FileAccessError: The file cannot be read.
        DamagedFileError: It is not a picture, or is cut off.
        ChoiceError: It is a TIFF whose compression is not read.
        RangeError: It has more than ``MAX_PICTURE_PIXELS`` pixels, or would take more than ``MAX_PICTURE_BYTES`` bytes,
            which is found out before they are decoded.
    """
    path = arguments.path("a picture's file", path)
    try:
        check_file(path)
        with path.open("rb") as file:
            _check_webp(path, file)
            pixels, end = _decoded(path, file)
            if end.is_early():
                raise _cut_off(path)
            return pixels
    except SystolicError:  # raised above; the handlers below must not catch it
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise RangeError(_PIXELS, str(error), 1, MAX_PICTURE_PIXELS, where=str(path), remedy=_SMALLER) from error
    except UnidentifiedImageError as error:
        raise DamagedFileError(str(path), f"is not a picture of a known format ({listed(FORMATS)})") from error
    except FileNotFoundError as error:
        raise FileAccessError(str(path), "does not exist", _ROLE) from error
    except IsADirectoryError as error:
        raise FileAccessError(str(path), "is a folder", _ROLE, remedy="name a file in it") from error
    except PermissionError as error:
        raise FileAccessError(str(path), f"cannot be read: {error.strerror}", _ROLE) from error
    except Exception as error:  # decoders of damaged files raise nearly anything
        reason = f"cannot be read as a picture: {cut(error, 200)}"
        raise DamagedFileError(str(path), reason, remedy="copy the file again if it is cut off") from error


def check_file(path: Path) -> None:
    """Raise FileAccessError if ``path`` is a pipe, which would be waited for, or a device, which may have no end."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise FileAccessError(str(path), "is a pipe or a device", _ROLE, remedy="name a file")


def resize(picture: Pixels, height: int, width: int) -> tuple[Pixels, Placement]:
    """Stretch a picture to the input's size by bilinear interpolation; return the input and the picture's position in
    it.

    Corner pixels stay in the corners, as in darknet's ``resize_image``, and values are rounded to the nearest integer.
    darknet networks were trained and checked with this method.

    Args:
        picture: uint8 ``(picture height, picture width, channels)``.
        height: Height of the input.
        width: Width of the input.

    Returns:
        The input, uint8 ``(channels, height, width)``, and the position of the picture in it.
    """
    _check_input(picture, height, width)
    pixels = np.ascontiguousarray(_bilinear(picture, height, width).transpose(2, 0, 1))
    return pixels, Placement(picture.shape[1], picture.shape[0], width, height, 0, 0, width, height)


def letterbox(picture: Pixels, height: int, width: int) -> tuple[Pixels, Placement]:
    """Resize a picture with its aspect ratio kept, fill the rest of the input with grey bars, and return the input and
    the picture's position.

    Sizes and offsets are rounded down as in darknet's ``letterbox_image``. Arguments and result are as in ``resize``.
    """
    _check_input(picture, height, width)
    picture_height, picture_width = picture.shape[:2]
    if width * picture_height < height * picture_width:
        inner_width, inner_height = width, max(picture_height * width // picture_width, 1)
    else:
        inner_width, inner_height = max(picture_width * height // picture_height, 1), height
    left, top = (width - inner_width) // 2, (height - inner_height) // 2
    pixels = np.full((picture.shape[2], height, width), GREY, np.uint8)
    scaled = _bilinear(picture, inner_height, inner_width).transpose(2, 0, 1)
    pixels[:, top : top + inner_height, left : left + inner_width] = scaled
    return pixels, Placement(picture_width, picture_height, width, height, left, top, inner_width, inner_height)


def smooth(picture: Pixels, height: int, width: int) -> tuple[Pixels, Placement]:
    """Stretch a picture to the input's size so that every pixel counts; return the input and the picture's position in
    it.

    The filter is a triangle as wide as the reduction factor, as Pillow's ``BILINEAR``. It averages where ``resize``
    skips pixels. Arguments and result are as in ``resize``.
    """
    _check_input(picture, height, width)
    planes = [Image.fromarray(np.ascontiguousarray(plane)) for plane in picture.transpose(2, 0, 1)]
    scaled = [np.asarray(plane.resize((width, height), _BILINEAR)) for plane in planes]
    placement = Placement(picture.shape[1], picture.shape[0], width, height, 0, 0, width, height)
    return np.stack(scaled), placement


FITS: dict[str, Callable[[Pixels, int, int], tuple[Pixels, Placement]]] = {
    "plain": resize,
    "letterbox": letterbox,
    "smooth": smooth,
}
"""The ways to resize a picture to the network's input."""

_PIXELS, _SMALLER, _ROLE = "the number of pixels", "make the picture smaller first", "picture"


def _cut_off(path: Path) -> DamagedFileError:
    return DamagedFileError(str(path), "is cut off: its last rows are missing", remedy="copy the file again")


def _decoded(path: Path, file: BinaryIO) -> tuple[Pixels, JpegEnd]:
    """Return a picture file's pixels, and the check whether a JPEG ends early, which runs once Pillow's own picture is
    freed."""
    with Image.open(file, formats=FORMATS) as image:
        _check_size(path, image)
        _check_compression(path, image)
        _check_memory(path, memory_of(file, image), f"{image.width} × {image.height} {image.mode}")
        image.load()
        if not is_whole(file, image):
            raise _cut_off(path)
        return upright_pixels(image), JpegEnd(file, image)


def _check_compression(path: Path, image: Image.Image) -> None:
    compression = image.info.get("compression", "raw") if image.format == "TIFF" else "raw"
    # Only the decoders of these compressions report missing rows.
    if compression not in TIFF_COMPRESSIONS:
        what, remedy = "the compression of a TIFF", "save the picture as PNG"
        raise ChoiceError(what, compression, TIFF_COMPRESSIONS, where=str(path), remedy=remedy)


def _check_size(path: Path | str, image: Image.Image) -> None:
    pixels = image.width * image.height
    if not 1 <= pixels <= MAX_PICTURE_PIXELS:
        what = f"{_PIXELS} ({image.width} × {image.height})"
        raise RangeError(what, pixels, 1, MAX_PICTURE_PIXELS, where=str(path), remedy=_SMALLER if pixels else "")


def _check_webp(path: Path | str, file: BinaryIO) -> None:
    """Raise RangeError if reading a WebP file takes too much memory, before libwebp opens it and allocates that
    memory."""
    pixels = webp_pixels(file.read(30))
    if pixels:
        _check_memory(path, webp_memory(pixels, os.fstat(file.fileno()).st_size), f"{pixels} pixels, WEBP")
    file.seek(0)


def _check_memory(path: Path | str, size: int, named: str) -> None:
    if size > MAX_PICTURE_BYTES:
        what = f"the number of bytes that reading the picture takes ({named})"
        raise RangeError(what, size, high=MAX_PICTURE_BYTES, where=str(path), remedy=_SMALLER)


def _check_input(picture: Pixels, height: int, width: int) -> None:
    if not isinstance(picture, np.ndarray) or picture.dtype != np.uint8 or picture.ndim != 3 or not picture.size:
        raise ShapeError("the picture", kind(picture), PICTURE)
    for side, pixels in (("height", height), ("width", width)):
        if not 1 <= pixels <= MAX_INPUT_SIDE:
            raise RangeError(f"the {side} of the network's input", pixels, 1, MAX_INPUT_SIDE)
    if height * width > MAX_INPUT_PIXELS:
        raise RangeError("pixels of the network's input", height * width, high=MAX_INPUT_PIXELS)


def _bilinear(picture: Pixels, height: int, width: int) -> Pixels:
    """Resize an array ``(h, w, c)`` to ``(height, width, c)`` by bilinear interpolation. Rows are first, so that unused
    rows are never read."""
    above, below, weight = _taps(picture.shape[0], height)
    upper = np.take(picture, above, axis=0).astype(np.float32)
    rows = _blend(upper, np.take(picture, below, axis=0), weight[:, None, None])
    left, right, weight = _taps(picture.shape[1], width)
    pixels = _blend(np.take(rows, left, axis=1), np.take(rows, right, axis=1), weight[:, None])
    pixels += 0.5
    return pixels.astype(np.uint8)


def _taps(size: int, count: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], npt.NDArray[np.float32]]:
    """Return, for each of ``count`` output samples of an axis, the indices of its two neighbours among ``size`` inputs
    and the second's weight."""
    step = (size - 1) / (count - 1) if count > 1 else 0.0
    position = np.arange(count) * step
    first = np.minimum(position.astype(np.intp), size - 1)
    second = np.minimum(first + 1, size - 1)
    return first, second, (position - first).astype(np.float32)


def _blend(
    first: npt.NDArray[np.float32],
    second: npt.NDArray[np.float32] | Pixels,
    weight: npt.NDArray[np.float32],
) -> npt.NDArray[np.float32]:
    """Return the linear interpolation first + (second − first) · weight, computed in place, because memory traffic
    dominates here."""
    step = np.subtract(second, first, dtype=np.float32)
    step *= weight
    first += step
    return first


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
"""Maps an EXIF orientation to a function that views an upright picture in the camera's row order."""


def upright_pixels(image: Any) -> Pixels:
    """Return a decoded ``PIL.Image`` as uint8 ``(height, width, 3)``, rotated by EXIF and composed over white."""
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
    """Convert 16-bit grey pixels to 8-bit RGB by their high byte. Pillow's own conversion would clip values above 255
    to white."""
    if values.dtype.kind == "f":
        grey = np.clip(np.nan_to_num(values.astype(np.float64)), 0, 255).astype(np.uint8)
    else:
        grey = (np.clip(values.astype(np.int64), 0, 65535) >> 8).astype(np.uint8)
    return np.repeat(grey[:, :, None], 3, axis=2)
