"""Every pixel of a rotated picture is moved to its upright place, for all tile sizes and modes."""

from __future__ import annotations

import io
import itertools

import numpy as np
import pytest
from PIL import Image, ImageOps

from host.vision.picture import _tiles, upright_pixels

ORIENTATION = 0x0112


def turned(image: Image.Image, orientation: int) -> Image.Image:
    """Return the image, opened from a file with this orientation."""
    file, exif = io.BytesIO(), Image.Exif()
    exif[ORIENTATION] = orientation
    image.save(file, "PNG", exif=exif)
    return Image.open(file)


@pytest.mark.parametrize(
    ("width", "height"), [(1, 1), (4096, 33), (4097, 32), (4095, 65), (9000, 3), (3, 9000), (700, 400)]
)
def test_tiles_cover_every_pixel_once_and_stay_small(width: int, height: int) -> None:
    covered = np.zeros((height, width), np.uint8)
    for left, top, right, bottom in _tiles(width, height):
        assert 0 < (right - left) * (bottom - top) <= 1 << 17
        assert 0 < right - left <= 4096
        covered[top:bottom, left:right] += 1
    assert (covered == 1).all()


def test_tiles_have_up_to_131072_pixels() -> None:
    """Check tiles of 2¹⁷ pixels: 32 rows of 4,096 pixels."""
    assert list(_tiles(4097, 33)) == [(0, 0, 4096, 32), (4096, 0, 4097, 32), (0, 32, 4096, 33), (4096, 32, 4097, 33)]
    assert list(_tiles(1, 1 << 17)) == [(0, 0, 1, 1 << 17)]


@pytest.mark.parametrize("orientation", range(1, 10))
def test_turned_picture_equals_exif_transpose_of_pillow(orientation: int) -> None:
    """Use 3 × 2 and 2 × 3 pixels, so that exchanged sides are found. The value 9 is not an orientation."""
    for width, height in ((3, 2), (2, 3)):
        values = np.arange(3 * width * height, dtype=np.uint8).reshape(height, width, 3)
        image = turned(Image.fromarray(values), orientation)
        expected = np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
        np.testing.assert_array_equal(upright_pixels(image), expected)


@pytest.mark.parametrize(
    ("mode", "value", "grey"),
    list(
        itertools.chain(
            [("I;16", value, value >> 8) for value in (0, 255, 256, 0x7FFF, 0x8000, 0xFFFF)],
            [("I", value, max(0, min(value, 65535)) >> 8) for value in (-1, 0, 511, 65535, 65536, 2**31 - 1, -(2**31))],
            [
                ("F", value, grey)
                for value, grey in ((-0.5, 0), (0.99, 0), (1, 1), (254.99, 254), (255, 255), (256, 255))
            ],
            [("F", float("nan"), 0), ("F", float("inf"), 255), ("F", float("-inf"), 0)],
        )
    ),
)
def test_upright_pixels_keep_the_high_byte_of_deep_grey_and_clip_floats(mode: str, value: float, grey: int) -> None:
    image = Image.fromarray(np.full((2, 3), value, {"I;16": np.uint16, "I": np.int32, "F": np.float32}[mode]))
    assert image.mode == mode
    assert upright_pixels(image).tolist() == [[[grey] * 3] * 3] * 2


@pytest.mark.parametrize("alpha", [0, 1, 127, 128, 254, 255])
def test_upright_pixels_mix_transparent_colours_with_white(alpha: int) -> None:
    colour = (200, 100, 0)
    pixels = upright_pixels(Image.new("RGBA", (1, 1), (*colour, alpha)))
    for value, mixed in zip(colour, pixels[0, 0].tolist(), strict=True):
        assert abs(mixed - (255 + (value - 255) * alpha / 255)) <= 1
    grey = upright_pixels(Image.new("LA", (1, 1), (100, alpha)))
    assert abs(int(grey[0, 0, 0]) - (255 - 155 * alpha / 255)) <= 1
