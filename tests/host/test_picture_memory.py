"""Reading a picture takes no more memory than promised, for any size that the file claims."""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from boards.errors import DamagedFileError, RangeError
from host.vision.headers import memory_of
from host.vision.picture import MAX_PICTURE_BYTES, load_picture
from tests.support.errors import raises
from tests.support.host import picture_memory
from tests.support.host.pictures import huge_png, len_of, png

SCRIPT = picture_memory.__file__
SMALLER = 48_000_000
"""A memory bound that is low enough to write pictures at the bound quickly."""
NOISE = 6 << 20
"""Bytes by which the interpreter's own memory varies."""

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
    """Write a picture, half noise and half one colour, and return its path."""
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
    """Return the peak memory of reading the picture, in bytes, and the outcome."""
    command = [sys.executable, SCRIPT, str(path), str(bound), *([str(like)] if like else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    taken, outcome = done.stdout.splitlines()
    return int(taken), outcome


def promised(path: Path) -> int:
    with path.open("rb") as file, Image.open(file) as image:
        return memory_of(file, image)


ALWAYS = ("progressive JPEG", "transparent WebP", "palette")
"""A kind for each way of counting memory: coefficients, the decoder's canvases, and the picture itself."""


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[pytest.mark.engine][kind in ALWAYS :]) for kind in KINDS])
def test_load_picture_at_the_memory_bound_stays_within_it(kind: str, tmp_path: Path) -> None:
    small = written(tmp_path / "small", kind, 1500, 64)
    per_row = (promised(written(tmp_path / "picture", kind, 1500, 192)) - promised(small)) / 128
    rows = int(0.96 * (SMALLER - promised(small)) / per_row) + 64
    picture = written(tmp_path / "picture", kind, 1500, rows)
    assert 0.85 * SMALLER < promised(picture) <= SMALLER
    taken, outcome = peak(picture, SMALLER, small)
    assert outcome in (f"({rows}, 1500, 3)", f"(1500, {rows}, 3)")
    assert taken <= SMALLER + NOISE


def test_load_picture_beyond_the_memory_bound_is_refused_without_memory(tmp_path: Path) -> None:
    for kind in ("float TIFF", "transparent WebP"):
        picture = written(tmp_path / "picture", kind, 1500, 6500)
        taken, outcome = peak(picture, SMALLER)
        assert taken < 4 * NOISE, kind
        assert outcome.startswith("RangeError: ")
        assert outcome.endswith(f" of {SMALLER}")


def test_load_picture_of_few_bytes_that_claim_much_is_refused_at_once(tmp_path: Path) -> None:
    picture = tmp_path / "picture"
    extended = b"RIFF\x1a\0\0\0WEBPVP8X\n\0\0\0\x10\0\0\0" + (16382).to_bytes(3, "little") * 2
    lossless = b"RIFF\x1a\0\0\0WEBPVP8L\n\0\0\0\x2f" + (16382 | 16382 << 14).to_bytes(4, "little") + bytes(9)
    for data, megabytes in (
        (huge_png(1, 64_000_000), 968),
        (huge_png(64_000_000, 1), 456),
        (extended, 5099),  # both have a canvas of 16,383 × 16,383 pixels
        (lossless, 5099),
    ):
        picture.write_bytes(data)
        with raises(RangeError, where=str(picture), high=MAX_PICTURE_BYTES) as caught:
            load_picture(picture)
        assert int(str(caught.value.got)) // 1_000_000 == megabytes
        if data is lossless:
            taken, outcome = peak(picture, MAX_PICTURE_BYTES)
            assert outcome.startswith("RangeError: ")
            assert taken < 4 * NOISE


# ---------------------------------------------------------------- cut off


def cut_off(path: Path) -> None:
    """Check that the picture is refused, whether its decoder says that it is cut off or not."""
    with raises(DamagedFileError, path=str(path)):
        load_picture(path)


def test_load_picture_of_a_png_without_all_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(png(20, 100, bytes(61) * 100))
    assert load_picture(path).shape == (100, 20, 3)
    for rows in (0, 10, 99):
        path.write_bytes(png(20, 100, bytes(61) * rows))
        cut_off(path)


def test_load_picture_of_a_png_without_its_last_byte_is_refused(tmp_path: Path) -> None:
    """Check plain and interlaced files. A file with one byte less is refused."""
    path = tmp_path / "a.png"
    kinds, sides = ((1, 0), (2, 0), (8, 2), (16, 2), (8, 4), (16, 6)), ((1, 1), (2, 5), (5, 2), (9, 13), (64, 64))
    for (depth, colours), (width, height), interlaced in product(kinds, sides, (False, True)):
        size = len_of(width, height, depth * {0: 1, 2: 3, 4: 2, 6: 4}[colours], interlaced)
        path.write_bytes(png(width, height, bytes(size), depth=depth, colours=colours, interlaced=interlaced))
        assert load_picture(path).shape == (height, width, 3)
        path.write_bytes(png(width, height, bytes(size - 1), depth=depth, colours=colours, interlaced=interlaced))
        cut_off(path)


def test_load_picture_of_every_orientation_is_upright(tmp_path: Path) -> None:
    noise = Image.fromarray(np.random.default_rng(2).integers(0, 256, (300, 700, 3), np.uint8))
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        noise.save(tmp_path / "a.png", exif=exif)
        with Image.open(tmp_path / "a.png") as image:
            upright = np.array(ImageOps.exif_transpose(image))
        np.testing.assert_array_equal(load_picture(tmp_path / "a.png"), upright, err_msg=f"{orientation}")
