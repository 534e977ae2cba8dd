"""The promised memory of reading a picture, computed by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PIL import Image

from host.vision.headers import memory_of, webp_memory

TILE = 8 << 20


def promised(path: Path, image: Image.Image, **options: Any) -> tuple[int, int]:
    """Return the promised memory of a picture file, and the file's size. The file's position must not change."""
    image.save(path, **options)
    with path.open("rb") as file, Image.open(file) as opened:
        place = file.tell()
        size = memory_of(file, opened)
        assert file.tell() == place
    return size, path.stat().st_size


def test_memory_of_a_plain_picture_is_rows_pointers_result_and_a_tile(tmp_path: Path) -> None:
    """Use 9 × 5 pixels."""
    for mode, suffix, row in (
        ("1", ".png", 12),  # 9 bytes, in words of four
        ("L", ".png", 12),
        ("P", ".png", 12),
        ("I;16", ".png", 20),
        ("LA", ".png", 36),
        ("RGB", ".png", 36),
        ("RGBA", ".png", 36),
        ("L", ".bmp", 12),
        ("RGB", ".bmp", 36),
    ):
        size, _ = promised(tmp_path / f"a{suffix}", Image.new(mode, (9, 5)))
        assert size == 5 * (row + 8) + 3 * 9 * 5 + TILE, (mode, suffix)


def test_memory_of_a_jpeg_of_one_scan_is_its_rows_and_the_result(tmp_path: Path) -> None:
    size, _ = promised(tmp_path / "a.jpg", Image.new("RGB", (40, 30)))
    assert size == 30 * (4 * 40 + 8) + 3 * 40 * 30 + TILE


def test_memory_of_a_progressive_jpeg_includes_its_coefficients(tmp_path: Path) -> None:
    """Check two bytes per sample, for colours at full, half and a quarter of the resolution."""
    image = Image.new("RGB", (40, 30))
    for subsampling, samples in ((0, 3), (1, 2), (2, 1.5)):
        size, _ = promised(tmp_path / "a.jpg", image, progressive=True, subsampling=subsampling)
        assert size == 30 * (4 * 40 + 8) + 3 * 40 * 30 + TILE + 2 * samples * 40 * 30
    grey, _ = promised(tmp_path / "b.jpg", image.convert("L"), progressive=True)
    assert grey == 30 * (40 + 8) + 3 * 40 * 30 + TILE + 2 * 40 * 30


def test_memory_of_a_webp_includes_canvases_and_file(tmp_path: Path) -> None:
    """Check 19 bytes per pixel for the canvases of libwebp and Pillow and the result, and twice the file's size."""
    size, file_bytes = promised(tmp_path / "a.webp", Image.new("RGB", (40, 30), "red"))
    assert size == 19 * 40 * 30 + 2 * file_bytes + TILE
    assert webp_memory(1200, 77) == 19 * 1200 + 2 * 77


def test_memory_of_a_packed_tiff_includes_a_strip_and_the_file(tmp_path: Path) -> None:
    """Use 40 × 30 pixels in strips of eight rows.

    A raw file takes neither a strip nor the file. A turned picture takes a second picture.
    """
    rows = (("L", 40, 40), ("RGB", 160, 120), ("CMYK", 160, 160), ("1", 40, 5), ("I;16", 80, 80), ("F", 160, 160))
    for mode, row, strip in rows:
        check_tiff(mode, row, strip, tmp_path)


def check_tiff(mode: str, row: int, strip: int, tmp_path: Path) -> None:
    image, path = Image.new(mode, (40, 30)), tmp_path / "a.tif"
    stored = 30 * (row + 8)
    rest = stored + 3 * 40 * 30 + TILE
    size, file_bytes = promised(path, image, compression="tiff_lzw", tiffinfo={278: 8})
    assert size == rest + 8 * strip + file_bytes
    size, file_bytes = promised(path, image, compression="tiff_lzw", tiffinfo={278: 8, 274: 3})
    assert size == rest + 8 * strip + file_bytes + stored
    assert promised(path, image)[0] == rest
    assert promised(path, image, tiffinfo={274: 1})[0] == rest
    assert promised(path, image, tiffinfo={274: 2})[0] == rest + stored


def test_memory_of_a_ppm_decoded_in_python_includes_its_values(tmp_path: Path) -> None:
    """Check the forms that Pillow decodes in Python: values in digits, and values with a maximum below 255."""
    for mode, row, bytes_ in (("L", 40, 1), ("RGB", 160, 4)):
        check_ppm(mode, row, bytes_, tmp_path)


def check_ppm(mode: str, row: int, bytes_: int, tmp_path: Path) -> None:
    kind, samples = {"L": (b"P2", 1), "RGB": (b"P3", 3)}[mode]
    path = tmp_path / "a.ppm"
    for head, values in (
        (kind, b"1 " * 40 * 30 * samples),
        ({b"P2": b"P5", b"P3": b"P6"}[kind], bytes(1200 * samples)),
    ):
        path.write_bytes(head + b" 40 30 100\n" + values)
        with path.open("rb") as file, Image.open(file) as opened:
            assert memory_of(file, opened) == 30 * (row + 8) + 3 * 1200 + TILE + 2 * 1200 * bytes_


def test_memory_of_deep_grey_is_two_bytes_per_pixel(tmp_path: Path) -> None:
    for mode in ("I;16", "I;16B"):
        image = Image.frombytes(mode, (40, 30), bytes(2400))
        assert promised(tmp_path / "a.tif", image)[0] == 30 * (2 * 40 + 8) + 3 * 1200 + TILE, mode


def test_memory_of_a_tiff_in_tiles_includes_one_tile(tmp_path: Path) -> None:
    """Give a picture in strips the tags of a file in tiles, because Pillow writes no tiles."""
    path = tmp_path / "a.tif"
    Image.new("L", (40, 30)).save(path, compression="tiff_lzw", tiffinfo={278: 8})
    with path.open("rb") as opened, Image.open(opened) as image:
        before = memory_of(opened, image)
        tags = getattr(image, "tag_v2")  # noqa: B009 (only a TIFF has it)
        tags[322], tags[323] = 32, 64
        assert memory_of(opened, image) == before - 8 * 40 + 32 * 64
        del tags[278], tags[322]
        assert memory_of(opened, image) == before - 8 * 40 + 30 * 40  # no rows in a strip: all of them
        tags[278] = 1 << 30
        assert memory_of(opened, image) == before - 8 * 40 + 30 * 40
