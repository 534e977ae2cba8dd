"""host/vision/picture.py: all kinds of picture files, the network's input, and refused files."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from boards.errors import DamagedFileError, FileAccessError, RangeError, ShapeError, SystolicError
from host.vision.channels import load_frame
from host.vision.picture import FITS, GREY, letterbox, load_picture, resize, smooth
from host.vision.placement import Placement
from tests.support.errors import raises
from tests.support.host.pictures import huge_png

RED, BLUE = (255, 0, 0), (0, 0, 255)


def saved(image: Image.Image, path: Path, **options: Any) -> Path:
    image.save(path, **options)
    return path


def two_pixels() -> Image.Image:
    """Return a red pixel on the left and a blue pixel on the right."""
    image = Image.new("RGB", (2, 1), RED)
    image.putpixel((1, 0), BLUE)
    return image


def test_load_picture_of_rgb_is_unchanged(tmp_path: Path) -> None:
    pixels = load_picture(saved(two_pixels(), tmp_path / "a.png"))
    assert pixels.dtype == np.uint8
    assert pixels.tolist() == [[list(RED), list(BLUE)]]


def test_load_picture_applies_the_rotation_of_the_camera(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # the picture has to be turned clockwise to be upright
    pixels = load_picture(saved(two_pixels(), tmp_path / "a.png", exif=exif))
    assert pixels.tolist() == [[list(RED)], [list(BLUE)]]


def test_load_picture_converts_every_mode_to_rgb(tmp_path: Path) -> None:
    for mode in ("L", "P", "1", "CMYK", "LA", "RGBA"):
        image = Image.new("RGB", (3, 2), (255, 255, 255)).convert(mode)
        path = saved(image, tmp_path / ("a.tif" if mode == "CMYK" else "a.png"))
        assert load_picture(path).tolist() == np.full((2, 3, 3), 255).tolist(), mode


def test_load_picture_mixes_transparent_pixels_with_white(tmp_path: Path) -> None:
    pixels = load_picture(saved(Image.new("RGBA", (1, 1), (255, 0, 0, 0)), tmp_path / "a.png"))
    assert pixels.tolist() == [[[255, 255, 255]]]
    half = load_picture(saved(Image.new("RGBA", (1, 1), (255, 0, 0, 128)), tmp_path / "b.png"))
    assert half[0, 0].tolist() == [255, 127, 127]


def test_load_picture_of_a_transparent_palette_is_white(tmp_path: Path) -> None:
    image = Image.new("P", (1, 1), 0)
    image.putpalette([10, 20, 30])
    path = saved(image, tmp_path / "a.png", transparency=0)
    assert load_picture(path).tolist() == [[[255, 255, 255]]]


def test_load_picture_of_16_bits_keeps_the_high_byte(tmp_path: Path) -> None:
    values = np.array([[0, 0x1234, 0xFFFF]], np.uint16)
    path = saved(Image.fromarray(values), tmp_path / "a.png")
    assert load_picture(path)[0, :, 0].tolist() == [0, 0x12, 0xFF]


def test_load_picture_clips_float_values(tmp_path: Path) -> None:
    values = np.array([[-5, 100.9, 999]], np.float32)
    path = saved(Image.fromarray(values), tmp_path / "a.tif")
    assert load_picture(path)[0, :, 2].tolist() == [0, 100, 255]


def test_load_picture_of_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.jpg"
    path.write_text("no picture")
    reason = "is not a picture of a known format (JPEG, PNG, BMP, GIF, PPM, TIFF, WEBP)"
    with raises(DamagedFileError, path=str(path), reason=reason):
        load_picture(path)
    path.write_bytes(b"")
    with raises(DamagedFileError, path=str(path), reason=reason):
        load_picture(path)


def test_postscript_is_not_handed_to_another_program(tmp_path: Path) -> None:
    path = saved(two_pixels(), tmp_path / "a.eps")
    with raises(DamagedFileError, path=str(path)):
        load_picture(path)


def test_load_picture_of_a_missing_file_or_a_folder_is_refused(tmp_path: Path) -> None:
    with raises(FileAccessError, path=str(tmp_path / "none.png"), reason="does not exist", what="picture"):
        load_picture(tmp_path / "none.png")
    with raises(FileAccessError, path=str(tmp_path), reason="is a folder", what="picture"):
        load_picture(tmp_path)


def test_load_picture_of_a_truncated_file_is_refused(tmp_path: Path) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (64, 64, 3), np.uint8)
    for kind in ("png", "jpg", "gif", "bmp", "tif", "ppm"):
        path = saved(Image.fromarray(noise), tmp_path / f"a.{kind}")
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        with raises(DamagedFileError, path=str(path), remedy="copy the file again if it is cut off"):
            load_picture(path)


@pytest.mark.filterwarnings("error")
def test_load_picture_over_the_size_limit_is_refused_before_decoding(tmp_path: Path) -> None:
    """Check three sizes, of which Pillow itself refuses the last two."""
    path = tmp_path / "a.png"
    for width, height in ((8001, 8000), (12_000, 9_000), (40_000, 40_000)):
        path.write_bytes(huge_png(width, height))
        with raises(RangeError, where=str(path), low=1, high=64_000_000) as caught:
            load_picture(path)
        assert caught.value.what.startswith("the number of pixels")
        assert str(width * height) in str(caught.value.got)


@pytest.mark.filterwarnings("ignore::UserWarning:PIL")  # Pillow warns of a TIFF's tags before it fails
def test_load_picture_of_damaged_files_raises_only_picture_errors(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    path = tmp_path / "a"
    for kind in ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP"):
        buffer = io.BytesIO()
        Image.fromarray(rng.integers(0, 256, (16, 16, 3), np.uint8)).save(buffer, kind)
        whole = np.frombuffer(buffer.getvalue(), np.uint8)
        for _ in range(40):
            damaged = whole.copy()
            damaged[rng.integers(0, min(damaged.size, 200), 4)] = rng.integers(0, 256, 4)
            path.write_bytes(damaged.tobytes())
            with contextlib.suppress(SystolicError):
                assert load_picture(path).ndim == 3


def test_resize_equals_the_input_of_the_float_reference(shared: Path) -> None:
    layers = np.load(shared / "data/expected/yolo-lite-voc-trial3-noBatch_dog_224_layers.npz")
    pixels, _ = resize(load_picture(shared / "data/pictures/dog.jpg"), 224, 224)
    # Rounding costs half a grey level per pixel; the reference kept floats.
    assert np.abs(pixels / 255 - layers["input"][0]).max() < 0.51 / 255


def test_resize_keeps_corners_and_interpolates_between() -> None:
    picture = np.zeros((2, 2, 3), np.uint8)
    picture[0, 1], picture[1, 0], picture[1, 1] = 100, 50, 150
    pixels, placement = resize(picture, 3, 5)
    assert pixels.shape == (3, 3, 5)
    assert pixels[0].tolist() == [[0, 25, 50, 75, 100], [25, 50, 75, 100, 125], [50, 75, 100, 125, 150]]
    assert placement == Placement(2, 2, 5, 3, 0, 0, 5, 3)


def test_resize_to_the_same_size_changes_nothing() -> None:
    picture = np.random.default_rng(3).integers(0, 256, (7, 9, 3), np.uint8)
    assert (resize(picture, 7, 9)[0] == picture.transpose(2, 0, 1)).all()


def test_resize_from_or_to_one_pixel_keeps_its_value() -> None:
    for height, width in ((1, 1), (1, 5), (4, 1)):
        picture = np.full((height, width, 3), 77, np.uint8)
        assert (resize(picture, 3, 3)[0] == 77).all()
        assert (resize(np.full((3, 3, 3), 77, np.uint8), height, width)[0] == 77).all()


def test_letterbox_puts_grey_bars_above_and_below() -> None:
    pixels, placement = letterbox(np.full((50, 100, 3), 9, np.uint8), 64, 64)
    assert placement == Placement(100, 50, 64, 64, 0, 16, 64, 32)
    assert (pixels[:, :16] == GREY).all()
    assert (pixels[:, 16:48] == 9).all()
    assert (pixels[:, 48:] == GREY).all()


def test_letterbox_puts_grey_bars_left_and_right() -> None:
    pixels, placement = letterbox(np.full((100, 50, 3), 9, np.uint8), 64, 128)
    assert placement == Placement(50, 100, 128, 64, 48, 0, 32, 64)
    assert (pixels[:, :, :48] == GREY).all()
    assert (pixels[:, :, 48:80] == 9).all()


sides = st.integers(1, 40)


@settings(max_examples=60)
@given(tall=sides, wide=sides, height=sides, width=sides)
def test_placement_to_picture_returns_the_corners_of_the_picture(tall: int, wide: int, height: int, width: int) -> None:
    picture = np.full((tall, wide, 3), 5, np.uint8)
    for pixels, placement in (resize(picture, height, width), letterbox(picture, height, width)):
        assert pixels.shape == (3, height, width)
        rows, columns = np.nonzero(pixels[0] == 5)
        corners = np.array([[columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]], np.float64)
        boxes = placement.to_picture(corners / [width, height, width, height])
        assert boxes[0] == pytest.approx([0, 0, wide, tall], abs=1e-9)


def test_fit_of_a_picture_of_another_shape_is_refused() -> None:
    pictures: tuple[Any, ...] = (np.zeros((4, 4), np.uint8), np.zeros((4, 4, 3)), np.zeros((0, 4, 3), np.uint8))
    for bad in pictures:
        for fit in FITS.values():
            with raises(ShapeError, what="the picture", got=f"{bad.dtype} {list(bad.shape)}"):
                fit(bad, 8, 8)


def test_fit_to_an_input_size_out_of_range_is_refused() -> None:
    for side in (0, -1, 65537):
        with raises(RangeError, what="the width of the network's input", got=side, low=1, high=65536):
            letterbox(np.zeros((4, 4, 3), np.uint8), 8, side)
        with raises(RangeError, what="the height of the network's input", got=side):
            resize(np.zeros((4, 4, 3), np.uint8), side, 8)
    with raises(RangeError, what="pixels of the network's input", got=8193 * 8192, high=1 << 26):
        resize(np.zeros((4, 4, 3), np.uint8), 8193, 8192)


# ---------------------------------------------------------------- smooth


def test_smooth_weights_pixels_by_a_triangle_filter() -> None:
    """Halve a row with a triangle filter, whose weights are 1/8, 3/8, 3/8 and 1/8."""
    row = np.zeros((1, 8, 3), np.uint8)
    row[0, 3] = 200
    pixels, placement = smooth(row, 1, 4)
    assert pixels[0, 0].tolist() == [0, 75, 25, 0]
    assert (placement.width, placement.picture_width) == (4, 8)


def test_smooth_of_the_contest_picture_equals_the_network_input(shared: Path) -> None:
    with np.load(shared / "data/ultranet/boat6_0_int_golden.npz") as arrays:
        expected = arrays["input"][..., ::-1].transpose(2, 0, 1)
    pixels, _ = FITS["smooth"](load_picture(shared / "data/ultranet/boat6_0.jpg"), 160, 320)
    np.testing.assert_array_equal(pixels, expected)


def test_resize_equals_bilinear_interpolation() -> None:
    """Compare with bilinear interpolation, pixel by pixel. The corners of the picture keep their values."""
    for height, width in ((5, 9), (3, 4), (11, 2), (1, 7)):
        check_resize(height, width)


def check_resize(height: int, width: int) -> None:
    picture = np.random.default_rng(4).integers(0, 256, (6, 5, 3)).astype(np.uint8)
    pixels, _ = resize(picture, height, width)
    for y, x, channel in np.ndindex(height, width, 3):
        row, column = (5 * y / (height - 1) if height > 1 else 0.0), (4 * x / (width - 1) if width > 1 else 0.0)
        top, left = min(int(row), 5), min(int(column), 4)
        bottom, right = min(top + 1, 5), min(left + 1, 4)
        upper = picture[top, left, channel] * (1 - column + left) + picture[top, right, channel] * (column - left)
        lower = picture[bottom, left, channel] * (1 - column + left) + picture[bottom, right, channel] * (column - left)
        assert abs(int(pixels[channel, y, x]) - (upper * (1 - row + top) + lower * (row - top))) <= 0.502


def test_letterbox_of_a_line_is_one_pixel_high_or_wide() -> None:
    """Fit 1000×1 pixels into 100×100: 100×1 pixels remain, with 49 grey rows above. The same holds upright."""
    for shape, rectangle in (((1, 1000, 3), (0, 49, 100, 1)), ((1000, 1, 3), (49, 0, 1, 100))):
        _, place = letterbox(np.full(shape, 9, np.uint8), 100, 100)
        assert (place.left, place.top, place.width, place.height) == rectangle


def test_resize_and_smooth_fill_the_input() -> None:
    for fit in (resize, smooth):
        _, place = fit(np.full((4, 6, 3), 9, np.uint8), 8, 10)
        assert place == Placement(6, 4, 10, 8, 0, 0, 10, 8)


def test_load_frame_of_a_pipe_or_device_is_refused(tmp_path: Path) -> None:
    for name in ("a.png", "a.npy"):
        os.mkfifo(tmp_path / name)
        with raises(FileAccessError, path=str(tmp_path / name), reason="is a pipe or a device"):
            load_frame(tmp_path / name)
        (tmp_path / name).unlink()
        (tmp_path / name).symlink_to("/dev/zero")
        with raises(FileAccessError, path=str(tmp_path / name), reason="is a pipe or a device"):
            load_frame(tmp_path / name)
