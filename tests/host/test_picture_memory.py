"""Reading a picture takes no more memory than is promised, whatever the file says of itself."""

from __future__ import annotations

import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from boards.errors import PictureError
from host.vision.memory import memory_of
from host.vision.picture import LARGEST_MEMORY, load_picture
from tests.host.test_picture import huge_png

SCRIPT = Path(__file__).with_name("picture_memory.py")
SMALLER = 48_000_000
"""A bound with which pictures at it are soon written."""
NOISE = 6 << 20
"""Bytes of the interpreter's own that come and go."""

KINDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "grey": ("PNG", "L", {}),
    "colours": ("PNG", "RGB", {}),
    "transparent": ("PNG", "RGBA", {}),
    "transparent grey": ("PNG", "LA", {}),
    "palette": ("PNG", "P", {"transparency": 3}),
    "deep grey": ("PNG", "I;16", {}),
    "black and white": ("TIFF", "1", {}),
    "deep grey TIFF": ("TIFF", "I;16", {}),
    "float TIFF": ("TIFF", "F", {}),
    "packed float TIFF": ("TIFF", "F", {"compression": "tiff_deflate", "tiffinfo": {278: 1 << 20}}),
    "packed CMYK TIFF": ("TIFF", "CMYK", {"compression": "tiff_lzw"}),
    "JPEG": ("JPEG", "RGB", {}),
    "progressive JPEG": ("JPEG", "RGB", {"progressive": True, "subsampling": 0}),
    "CMYK JPEG": ("JPEG", "CMYK", {"progressive": True}),
    "WebP": ("WEBP", "RGB", {"method": 0}),
    "transparent WebP": ("WEBP", "RGBA", {"lossless": True, "method": 0}),
    "GIF": ("GIF", "P", {}),
    "BMP": ("BMP", "RGB", {}),
    "PPM": ("PPM", "RGB", {}),
    "turned JPEG": ("JPEG", "RGB", {"exif": 6}),
    "turned TIFF": ("TIFF", "RGB", {"tiffinfo": {274: 8}}),
}


def written(path: Path, kind: str, width: int, height: int) -> Path:
    """A picture of half noise, half one colour."""
    form, mode, options = KINDS[kind]
    options = dict(options)
    if "exif" in options:
        exif = Image.Exif()
        exif[0x0112] = options["exif"]
        options["exif"] = exif
    noise = np.random.default_rng(1).integers(0, 256, (min(height, 64), width), np.uint8)
    grey = Image.fromarray(np.resize(np.concatenate([noise, np.full_like(noise, 7)]), (height, width)))
    image = Image.fromarray(np.asarray(grey, np.uint16)) if mode == "I;16" else grey.convert(mode)
    image.save(path, form, **options)
    return path


def peak(path: Path, bound: int, like: Path | None = None) -> tuple[int, str]:
    """Bytes that reading it took at most, and what came of it."""
    command = [sys.executable, str(SCRIPT), str(path), str(bound), *([str(like)] if like else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    taken, outcome = done.stdout.splitlines()
    return int(taken), outcome


def promised(path: Path) -> int:
    with path.open("rb") as file, Image.open(file) as image:
        return memory_of(file, image)


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_at_the_bound_stays_below_it(kind: str, tmp_path: Path) -> None:
    small = written(tmp_path / "small", kind, 1500, 64)
    per_row = (promised(written(tmp_path / "picture", kind, 1500, 192)) - promised(small)) / 128
    rows = int(0.96 * (SMALLER - promised(small)) / per_row) + 64
    picture = written(tmp_path / "picture", kind, 1500, rows)
    assert 0.85 * SMALLER < promised(picture) <= SMALLER
    taken, outcome = peak(picture, SMALLER, small)
    assert outcome in (f"({rows}, 1500, 3)", f"(1500, {rows}, 3)")
    assert taken <= SMALLER + NOISE


@pytest.mark.parametrize("kind", ["deep grey TIFF", "float TIFF", "transparent WebP", "progressive JPEG", "colours"])
def test_a_picture_beyond_the_bound_takes_nothing(kind: str, tmp_path: Path) -> None:
    picture = written(tmp_path / "picture", kind, 1500, 6500)
    taken, outcome = peak(picture, SMALLER)
    assert taken < 4 * NOISE
    assert f"{picture}: reading a picture takes at most 48 MB, and this one (" in outcome
    assert outcome.endswith(" MB; make it smaller first")


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (huge_png(1, 64_000_000), "(1 × 64000000 RGB) would take 968 MB"),
        (huge_png(64_000_000, 1), "(64000000 × 1 RGB) would take 456 MB"),
        (
            # of a canvas of 16,383 pixels a side, in its extended and its lossless form
            b"RIFF\x1a\0\0\0WEBPVP8X\n\0\0\0\x10\0\0\0" + (16382).to_bytes(3, "little") * 2,
            "(268402689 pixels, WEBP) would take 5099 MB",
        ),
        (
            b"RIFF\x1a\0\0\0WEBPVP8L\n\0\0\0\x2f" + (16382 | 16382 << 14).to_bytes(4, "little") + bytes(9),
            "(268402689 pixels, WEBP) would take 5099 MB",
        ),
    ],
)
def test_a_few_bytes_that_claim_much_are_refused_at_once(data: bytes, sentence: str, tmp_path: Path) -> None:
    picture = tmp_path / "picture"
    picture.write_bytes(data)
    taken, outcome = peak(picture, LARGEST_MEMORY)
    assert f"reading a picture takes at most 192 MB, and this one {sentence}; make it smaller first" in outcome
    assert taken < 4 * NOISE


# ---------------------------------------------------------------- cut off


def png(width: int, height: int, rows: bytes, *, depth: int = 8, colours: int = 2, interlaced: bool = False) -> bytes:
    """With these rows of it."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, depth, colours, 0, 0, int(interlaced))
    packed = zlib.compress(rows)
    parts = (packed[: len(packed) // 2], packed[len(packed) // 2 :])
    data = b"".join(chunk(b"IDAT", part) for part in parts)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + data + chunk(b"IEND", b"")


@pytest.mark.parametrize(("rows", "whole"), [(0, False), (10, False), (99, False), (100, True)])
def test_a_png_has_all_its_rows(rows: int, whole: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(png(20, 100, bytes(61) * rows))
    if whole:
        assert load_picture(path).shape == (100, 20, 3)
        return
    with pytest.raises(PictureError, match="cut off"):
        load_picture(path)


@pytest.mark.parametrize(("depth", "colours"), [(1, 0), (2, 0), (8, 2), (16, 2), (8, 4), (16, 6)])
@pytest.mark.parametrize(("width", "height"), [(1, 1), (2, 5), (5, 2), (9, 13), (64, 64)])
def test_rows_are_counted_of_every_kind(depth: int, colours: int, width: int, height: int, tmp_path: Path) -> None:
    """Interlaced or not: with a byte less it is refused."""
    path = tmp_path / "a.png"
    for interlaced in (False, True):
        size = len_of(width, height, depth * {0: 1, 2: 3, 4: 2, 6: 4}[colours], interlaced)
        path.write_bytes(png(width, height, bytes(size), depth=depth, colours=colours, interlaced=interlaced))
        assert load_picture(path).shape == (height, width, 3)
        path.write_bytes(png(width, height, bytes(size - 1), depth=depth, colours=colours, interlaced=interlaced))
        with pytest.raises(PictureError, match="cut off"):
            load_picture(path)


def len_of(width: int, height: int, bits: int, interlaced: bool) -> int:
    """Pixel by pixel, by the pattern of the PNG specification, section 8.2."""
    pattern = ["16462646", "77777777", "56565656", "77777777", "36463646", "77777777", "56565656", "77777777"]
    total = 0
    for number in "1234567" if interlaced else "0":
        for y in range(height):
            count = sum(not interlaced or pattern[y % 8][x % 8] == number for x in range(width))
            total += (1 + -(-count * bits // 8)) if count else 0
    return total


@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_orientation_is_turned_upright(orientation: int, tmp_path: Path) -> None:
    noise = Image.fromarray(np.random.default_rng(2).integers(0, 256, (300, 700, 3), np.uint8))
    exif = Image.Exif()
    exif[0x0112] = orientation
    noise.save(tmp_path / "a.png", exif=exif)
    with Image.open(tmp_path / "a.png") as image:
        np.testing.assert_array_equal(load_picture(tmp_path / "a.png"), np.array(ImageOps.exif_transpose(image)))
