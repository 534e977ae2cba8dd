"""Headers of pictures, number by number: rows of a PNG, canvases of WebP, strips of TIFF, scans of JPEG."""

from __future__ import annotations

import io
import itertools
import struct
from typing import Any

import numpy as np
import pytest
from PIL import Image

from host.vision.headers import (
    JpegEnd,
    _Longer,
    is_whole,
    jpeg_end,
    jpeg_has_all_scans,
    jpeg_is_one_scan,
    png_is_whole,
    tiff_is_whole,
    webp_pixels,
)
from tests.support.host.pictures import len_of, png

# ---------------------------------------------------------------- PNG

PNG_KINDS = [
    *((depth, 0, 1) for depth in (1, 2, 4, 8, 16)),
    *((depth, 3, 1) for depth in (1, 2, 4, 8)),
    *((depth, 2, 3) for depth in (8, 16)),
    *((depth, 4, 2) for depth in (8, 16)),
    *((depth, 6, 4) for depth in (8, 16)),
]
"""Depth, colour type and samples per pixel: table 11.1 of the PNG specification."""


@pytest.mark.parametrize(("depth", "colours", "samples"), PNG_KINDS)
def test_png_is_whole_requires_all_bytes_of_every_kind(depth: int, colours: int, samples: int) -> None:
    for width, height, interlaced in itertools.product((1, 3, 9), (1, 2, 6), (False, True)):
        size = len_of(width, height, depth * samples, interlaced)
        for missing in (0, 1):
            data = png(width, height, bytes(size - missing), depth=depth, colours=colours, interlaced=interlaced)
            assert png_is_whole(io.BytesIO(data)) == (not missing)


def test_png_is_whole_of_interlaced_pictures_requires_all_passes() -> None:
    for width, height in itertools.product(range(1, 18), repeat=2):
        size = len_of(width, height, 8, True)
        for missing in (0, 1):
            data = png(width, height, bytes(size - missing), colours=0, interlaced=True)
            assert png_is_whole(io.BytesIO(data)) == (not missing), (width, height)


def test_png_is_whole_reads_chunks_of_many_pieces() -> None:
    """Use noise, which does not compress. Chunks are read and decompressed in pieces of 65,536 bytes."""
    rows = np.random.default_rng(1).integers(0, 256, (300, 1 + 3 * 250), np.uint8)
    rows[:, 0] = 0
    data = png(250, 300, rows.tobytes())
    assert len(data) > 3 * 65536
    assert png_is_whole(io.BytesIO(data))
    assert not png_is_whole(io.BytesIO(png(250, 300, rows[:-1].tobytes())))
    assert not png_is_whole(io.BytesIO(data[: len(data) // 2]))
    assert png_is_whole(io.BytesIO(png(1000, 900, bytes(900 * 3001))))  # the zeros compress to few bytes


# ---------------------------------------------------------------- WebP


EXIF = Image.Exif()
EXIF[0x0112] = 6


@pytest.mark.parametrize("options", [{}, {"lossless": True}, {"exif": EXIF}])
@pytest.mark.parametrize(("width", "height"), [(1, 1), (300, 7), (7, 300), (1030, 2), (2, 1030)])
def test_webp_pixels_of_every_form_are_read(options: dict[str, object], width: int, height: int) -> None:
    """Check the lossy form, the lossless form, and the extended form with metadata."""
    file = io.BytesIO()
    Image.new("RGB", (width, height), "red").save(file, "WEBP", **options)
    head = file.getvalue()[:30]
    assert head[12:16] == {"lossless": b"VP8L", "exif": b"VP8X"}.get(next(iter(options), ""), b"VP8 ")
    assert webp_pixels(head) == width * height
    assert webp_pixels(head[:-1]) == 0
    assert webp_pixels(b"RIFX" + head[4:]) == 0
    assert webp_pixels(head[:8] + b"WEBQ" + head[12:]) == 0


def test_webp_pixels_of_the_extended_form_have_24_bit_sides() -> None:
    head = b"RIFF\0\0\0\0WEBPVP8X" + bytes(8)
    for width, height in ((0xFFFFFF, 1), (1, 0xFFFFFF), (0x10000, 0x100)):
        sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
        assert webp_pixels(head + sides) == width * height


def test_webp_pixels_of_the_plain_forms_have_14_bit_sides() -> None:
    """Check that higher bits are ignored: they are the scale in the lossy form, and alpha in the lossless form."""
    lossy = b"RIFF\0\0\0\0WEBPVP8 " + bytes(10) + struct.pack("<HH", 0xFFFF, 0x8005)
    assert webp_pixels(lossy) == 16383 * 5
    lossless = b"RIFF\0\0\0\0WEBPVP8L" + bytes(4) + b"\x2f" + struct.pack("<I", 0xF << 28 | 4 << 14 | 0x3FFF) + bytes(5)
    assert webp_pixels(lossless) == 16384 * 5


# ---------------------------------------------------------------- TIFF


def tiff(width: int, height: int, tags: dict[int, list[int]]) -> Any:
    """Return a TIFF with these tags, opened and not decoded."""
    tags = {256: [width], 257: [height], 262: [1], **tags}
    entries, values, after = b"", b"", 8 + 2 + 12 * len(tags) + 4
    for tag, numbers in sorted(tags.items()):
        packed = struct.pack(f"<{len(numbers)}I", *numbers)
        if len(numbers) > 1:
            packed, values = struct.pack("<I", after + len(values)), values + packed
        entries += struct.pack("<HHI", tag, 4, len(numbers)) + packed
    head = b"II*\0" + struct.pack("<IH", 8, len(tags))
    return Image.open(io.BytesIO(head + entries + bytes(4) + values), formats=("TIFF",))


GREY = {258: [8], 277: [1], 273: [0]}
RGB = {258: [8, 8, 8], 277: [3], 262: [2], 273: [0]}
PLANES = {258: [8, 8, 8], 277: [3], 262: [2], 284: [2], 273: [0, 0, 0]}


@pytest.mark.parametrize(
    ("tags", "size"),
    [
        (GREY, 5 * 7),
        ({**GREY, 258: [1]}, 1 * 7),  # every row starts at a whole byte
        ({**GREY, 258: [16]}, 10 * 7),
        (RGB, 15 * 7),
        ({**RGB, 258: [8]}, 15 * 7),  # one number for all samples
        (PLANES, 15 * 7),
        ({**PLANES, 284: [1]}, 15 * 7),
        ({**RGB, 258: [16, 16, 16]}, 30 * 7),
    ],
)
def test_tiff_is_whole_requires_all_bytes_of_strips_or_tiles(tags: dict[int, list[int]], size: int) -> None:
    """Use 5 × 7 pixels, in strips or in tiles."""
    for tag in (279, 325):
        for counts in ([size], [size - 3, 3], [size + 1]):
            assert tiff_is_whole(tiff(5, 7, {**tags, tag: counts}))
        for counts in ([size - 1], [size - 4, 3]):
            assert not tiff_is_whole(tiff(5, 7, {**tags, tag: counts}))
            assert tiff_is_whole(tiff(5, 7, {**tags, tag: counts, 259: [5]}))  # the decoder of LZW reports missing data
            image = tiff(5, 7, {**tags, tag: counts, 259: [1]})
            assert not is_whole(io.BytesIO(), image)
            image.format = "BMP"
            assert is_whole(io.BytesIO(), image)


def test_tiff_rows_of_each_plane_are_padded_to_bytes() -> None:
    """Check rows of five pixels with three 1-bit samples: 3 bytes in three planes, 2 bytes if stored together."""
    bits = {258: [1, 1, 1], 277: [3], 262: [2], 273: [0]}
    image = tiff(5, 7, {**RGB, 279: [3 * 7 - 1]})
    for planar, size in ((1, 2 * 7), (2, 3 * 7)):
        for missing in (0, 1):
            for tag, numbers in {**bits, 284: [planar], 279: [size - missing]}.items():
                image.tag_v2[tag] = tuple(numbers) if len(numbers) > 1 or tag == 279 else numbers[0]
            assert tiff_is_whole(image) == (not missing)


def test_tiff_samples_without_the_planar_tag_are_interleaved() -> None:
    image = tiff(5, 7, {**RGB, 279: [2 * 7]})
    image.tag_v2[258] = (1, 1, 1)
    assert 284 not in image.tag_v2
    assert tiff_is_whole(image)
    image.tag_v2[279] = (2 * 7 - 1,)
    assert not tiff_is_whole(image)


def test_tiff_is_whole_without_byte_counts_is_true() -> None:
    assert tiff_is_whole(tiff(5, 7, GREY))


# ---------------------------------------------------------------- JPEG

START, END = b"\xff\xd8", b"\xff\xd9"
CODED = b"\x12\xff\x00\x34\xff\xd0\x56\xff\xd7\xff\xff\x00"
"""Coded data that contain an escaped FF and restart markers, which do not end the scan."""
FRAMES = [code for code in range(0xC0, 0xD0) if code not in (0xC4, 0xC8, 0xCC)]
PROGRESSIVE = (0xC2, 0xC6, 0xCA, 0xCE)


def segment(code: int, data: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, code, 2 + len(data)) + data


def frame(code: int, components: bytes) -> bytes:
    """Return a frame header: 8 bits, 16 × 16 pixels, these components with one sample per pixel."""
    each = b"".join(bytes([component, 0x11, 0]) for component in components)
    return segment(code, struct.pack(">BHHB", 8, 16, 16, len(components)) + each)


def scan(components: bytes, first: int = 0, last: int = 63, high: int = 0, low: int = 0) -> bytes:
    """Return a scan of these coefficients, from bit ``high`` down to ``low``, with coded data."""
    named = b"".join(bytes([component, 0]) for component in components)
    return segment(0xDA, bytes([len(components)]) + named + bytes([first, last, high << 4 | low])) + CODED


QUANTISERS, CODES, COMMENT = segment(0xDB, bytes(65)), segment(0xC4, bytes(17)), segment(0xFE, END + START + END)


@pytest.mark.parametrize("code", FRAMES)
@pytest.mark.parametrize("components", [b"\1", b"\1\2\3", b"\1\2\3\4"])
def test_jpeg_scans_of_all_components_are_recognised(code: int, components: bytes) -> None:
    conditioning = segment(0xCC, b"\0\x10") if code >= 0xC9 else b""  # only arithmetic codes have it
    head = START + QUANTISERS + COMMENT + frame(code, components) + CODES + conditioning
    one = head + scan(components) + END
    assert jpeg_is_one_scan(io.BytesIO(one)) == (code not in PROGRESSIVE)
    several = head + b"".join(scan(bytes([component])) for component in components) + END
    assert jpeg_is_one_scan(io.BytesIO(several)) == (len(components) == 1 and code not in PROGRESSIVE)
    for data in (one, several):
        assert jpeg_has_all_scans(io.BytesIO(data))
        assert jpeg_end(io.BytesIO(data + one)) == (len(data) - 2 if code < 0xC9 else -1)


def test_jpeg_without_scans_or_frame_is_not_one_scan() -> None:
    assert not jpeg_is_one_scan(io.BytesIO(START + scan(b"\1")))
    for data in (b"", START, START + END, START + frame(0xC0, b"\1")[:-5], START + frame(0xC0, b"\1") + END):
        assert not jpeg_is_one_scan(io.BytesIO(data))
    assert jpeg_has_all_scans(io.BytesIO(START + END))  # without a frame no scan is required
    for short in range(1, len(frame(0xC0, b"\1\2"))):
        assert jpeg_has_all_scans(io.BytesIO(START + frame(0xC0, b"\1\2")[:short])) == (short < 10)


@pytest.mark.parametrize(
    ("scans", "whole"),
    [
        ([(b"\1\2", 0, 0, 0, 0), (b"\1", 1, 63, 0, 0), (b"\2", 1, 63, 0, 0)], True),
        ([(b"\1\2", 0, 0, 0, 0), (b"\1", 1, 63, 0, 0)], False),
        ([(b"\1\2", 0, 0, 0, 0), (b"\1\2", 1, 62, 0, 0)], False),
        ([(b"\1\2", 0, 0, 0, 0), (b"\1\2", 2, 63, 0, 0)], False),
        ([(b"\1\2", 1, 63, 0, 0)], False),
        ([(b"\1\2", 0, 63, 0, 1)], False),
        ([(b"\1\2", 0, 63, 0, 8)], False),
        ([(b"\1\2", 0, 63, 0, 1), (b"\1\2", 0, 63, 1, 0)], True),
        ([(b"\1", 0, 63, 0, 0), (b"\7", 0, 63, 0, 0)], False),
        ([(b"\7", 0, 63, 0, 0), (b"\1\2", 0, 63, 0, 0)], True),
    ],
)
def test_jpeg_has_all_scans_requires_every_bit_of_every_coefficient(
    scans: list[tuple[bytes, int, int, int, int]], whole: bool
) -> None:
    data = START + frame(0xC2, b"\1\2") + b"".join(scan(*numbers) for numbers in scans)
    assert jpeg_has_all_scans(io.BytesIO(data + END)) == whole
    assert jpeg_has_all_scans(io.BytesIO(data)) == whole  # a missing end marker is not looked for here


def test_jpeg_has_all_scans_ignores_a_scan_with_an_incomplete_header() -> None:
    head = START + frame(0xC2, b"\1\2")
    last = scan(b"\1\2")[: -len(CODED)]
    for size in range(len(last) - 1):
        assert not jpeg_has_all_scans(io.BytesIO(head + last[:size]))
    assert jpeg_has_all_scans(io.BytesIO(head + last))


@pytest.mark.parametrize("size", [*range(65519, 65540), 2 * 65536, 2 * 65536 - 3])
def test_jpeg_end_is_found_at_any_place_of_the_read_pieces(size: int) -> None:
    """Use a marker that begins at the last byte of a piece. Files are read in pieces of 65,536 bytes."""
    data = START + frame(0xC0, b"\1") + scan(b"\1") + bytes(size) + END
    assert jpeg_end(io.BytesIO(data + bytes(9) + END)) == len(data) - 2
    assert jpeg_end(io.BytesIO(data[:-1])) == -1


def test_jpeg_end_after_fill_bytes_is_found() -> None:
    data = START + frame(0xC0, b"\1") + b"\xff\xff\xff" + CODES + scan(b"\1") + b"\xff\xff" + END
    assert jpeg_end(io.BytesIO(data)) == len(data) - 2


@pytest.mark.parametrize("size", [0, 1, 2])
def test_jpeg_segment_size_below_2_counts_as_2(size: int) -> None:
    data = START + b"\xff\xfe" + struct.pack(">H", size) + frame(0xC0, b"\1") + scan(b"\1")
    assert jpeg_is_one_scan(io.BytesIO(data))
    assert jpeg_end(io.BytesIO(data + END)) == len(data)


def test_jpeg_segment_size_has_two_bytes() -> None:
    inside = segment(0xE1, bytes(0x100) + START + END + bytes(0x1FF))
    data = START + inside + frame(0xC0, b"\1") + scan(b"\1") + END
    assert jpeg_end(io.BytesIO(data)) == len(data) - 2


# ---------------------------------------------------------------- whether a JPEG's data reach to its end


def jpeg(last: int, mode: str = "L", **options: object) -> bytes:
    """Return a JPEG of noise whose last block has one grey value."""
    noise = np.random.default_rng(1).integers(0, 256, (200, 24), np.uint8)
    noise[184:, 8:] = last
    file = io.BytesIO()
    Image.fromarray(noise).convert(mode).save(file, "JPEG", quality=100, **options)
    return file.getvalue()


def end_of(data: bytes) -> JpegEnd:
    file = io.BytesIO(data)
    image = Image.open(io.BytesIO(data))
    image.load()
    return JpegEnd(file, image)


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
@pytest.mark.parametrize("last", [0, 120, 125, 126, 127, 128, 129, 130, 131, 255])
def test_jpeg_with_any_last_pixel_does_not_end_early(last: int, mode: str) -> None:
    data = jpeg(last, mode)
    assert not end_of(data).is_early()
    assert not end_of(data + jpeg(7)).is_early()


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
@pytest.mark.parametrize("progressive", [False, True])
def test_jpeg_without_its_last_rows_ends_early(mode: str, progressive: bool) -> None:
    """Cut the file at several places, from the first strip that is compared to the last one."""
    data = jpeg(200, mode, progressive=progressive)
    for part in (0.3, 0.5, 0.7, 0.9):
        cut = data[: int(part * len(data))] + END
        assert end_of(cut).is_early()


def test_longer_file_is_read_and_positioned_like_a_file() -> None:
    """Check the bytes after the shortened file: eight restart markers, each after 255 bytes, and an end marker."""
    data = jpeg(128)
    longer = io.BufferedReader(_Longer(io.BytesIO(data), len(data) - 2))
    other = b"".join(bytes([*range(255), 0xFF, 0xD0 + number]) for number in range(8)) + END
    assert longer.read() == data[:-2] + other
    size = len(data) - 2 + len(other)
    for place, whence, expected in ((5, 0, 5), (7, 1, 12), (-3, 2, size - 3), (len(data) - 4, 0, len(data) - 4)):
        assert longer.seek(place, whence) == expected
        assert longer.read(0) == b""
        assert longer.tell() == expected
    assert longer.read(6) == data[-4:-2] + other[:4]
