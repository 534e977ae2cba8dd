"""How much memory a picture takes while it is read, by its header alone."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, BinaryIO

from host.vision.headers import JPEGS, jpeg_is_one_scan

RESULT = 3
"""Bytes a pixel of what is given: red, green, blue."""

_POINTER = 8  # of each row
_BYTES_OF_MODE = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16B": 2, "I;16L": 2, "I;16N": 2}  # and 4 of every other
_WEBP = 12  # two canvases of libwebp and what it gives, beside Pillow's own
_IN_PYTHON = {"ppm", "ppm_plain", "bmp_rle"}  # decoders of Pillow that collect all values first
_STRIP_ROWS, _TILE_SIDES, _BITS, _ORIENTATION = 278, (322, 323), 258, 274  # tags of a TIFF
_TILE = 8 << 20  # conversions go tile by tile


def memory_of(file: BinaryIO, image: Any) -> int:
    """Bytes at once from a picture's opening to its pixels uint8 [height, width, 3].

    image: opened from ``file``, not decoded. OSError where the file is cut off within its header.
    """
    width, height = int(image.width), int(image.height)
    row = -(-width * _BYTES_OF_MODE.get(image.mode, 4) // 4) * 4
    stored = int(height * (row + _POINTER))
    with _undisturbed(file):
        return stored + width * height * RESULT + _TILE + _decoder(file, image, stored)


@contextlib.contextmanager
def _undisturbed(file: BinaryIO) -> Iterator[None]:
    """Pillow goes on reading where it was."""
    place = file.tell()
    yield
    file.seek(place)


def webp_memory(pixels: int, file_bytes: int) -> int:
    """As ``memory_of``; libwebp takes its canvases when the file is opened."""
    return pixels * (_WEBP + 4 + RESULT) + 2 * file_bytes


def _decoder(file: BinaryIO, image: Any, stored: int) -> int:
    """Beside Pillow's own picture of ``stored`` bytes."""
    pixels: int = image.width * image.height
    codec = image.tile[0][0] if image.tile else ""
    if image.format in JPEGS:
        return _coefficients(file, image, pixels)
    if image.format == "WEBP":
        return webp_memory(pixels, os.fstat(file.fileno()).st_size) - stored - pixels * RESULT
    if image.format == "TIFF":
        turned: int = stored if image.tag_v2.get(_ORIENTATION, 1) != 1 else 0
        return turned + (_strip(image) + os.fstat(file.fileno()).st_size if codec == "libtiff" else 0)
    if codec in _IN_PYTHON:
        return 2 * pixels * _BYTES_OF_MODE.get(image.mode, 4)
    return 0


def _coefficients(file: BinaryIO, image: Any, pixels: int) -> int:
    """All of them, two bytes each, unless one scan brings them in order."""
    if jpeg_is_one_scan(file):
        return 0
    samples = [(across, down) for _, across, down, *_ in image.layer]
    most = max(1, *(across for across, _ in samples)) * max(1, *(down for _, down in samples))
    return int(2 * pixels * sum(across * down for across, down in samples) / most)


def _strip(image: Any) -> int:
    """What libtiff decompresses at once: a strip or a tile, of all samples."""
    tags = image.tag_v2
    bits = tags.get(_BITS, (1,))
    rows = min(tags.get(_STRIP_ROWS, image.height), image.height)
    tile = [tags.get(tag, 0) for tag in _TILE_SIDES]
    return int(max(rows * image.width, tile[0] * tile[1]) * sum(bits) / 8)
