"""An incomplete picture is refused, wherever it is cut and however it then ends."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from boards.errors import ChoiceError, DamagedFileError, SystolicError
from host.vision.picture import TIFF_COMPRESSIONS, load_picture
from tests.support.errors import raises

WIDTH, HEIGHT = 33, 40
LAST_BLOCK = (slice(31, None), slice(31, None))  # with its neighbours, whose colours are mixed with the block's
NOISE = np.random.default_rng(1).integers(1, 256, (HEIGHT, WIDTH, 3)).astype(np.uint8)
KINDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "JPEG": ("JPEG", "RGB", {}),
    "JPEG of fine colours": ("JPEG", "RGB", {"subsampling": 0}),
    "grey JPEG": ("JPEG", "L", {}),
    "CMYK JPEG": ("JPEG", "CMYK", {}),
    "progressive JPEG": ("JPEG", "RGB", {"progressive": True}),
    "JPEG with restarts": ("JPEG", "RGB", {"restart_marker_blocks": 1}),
    "PNG": ("PNG", "RGB", {}),
    "GIF": ("GIF", "P", {"interlace": 0}),
    "interlaced GIF": ("GIF", "P", {"interlace": 1}),
    "BMP": ("BMP", "RGB", {}),
    "palette BMP": ("BMP", "P", {}),
    "black and white BMP": ("BMP", "1", {}),
    "PPM": ("PPM", "RGB", {}),
    "PGM": ("PPM", "L", {}),
    "PBM": ("PPM", "1", {}),
    "WebP": ("WEBP", "RGB", {}),
    "lossless WebP": ("WEBP", "RGBA", {"lossless": True}),
    **{f"TIFF {name}": ("TIFF", "RGB", {"compression": name}) for name in TIFF_COMPRESSIONS},
    **{
        f"TIFF {name} in strips": ("TIFF", "RGB", {"compression": name, "tiffinfo": {278: 8}})
        for name in ("raw", "lzma")
    },
}


def saved(kind: str) -> bytes:
    data = io.BytesIO()
    form, mode, options = KINDS[kind]
    Image.fromarray(NOISE).convert(mode).save(data, form, **options)
    return data.getvalue()


def shorter(kind: str, data: bytes, end: int) -> Iterator[bytes]:
    """Yield the first ``end`` bytes of a picture: unchanged, and with additions that make them look complete."""
    part = data[:end]
    yield part
    if "JPEG" in kind:
        yield part + b"\xff\xd9"
    if "GIF" in kind:
        yield part + b"\0;"
    if "PNG" in kind:
        yield part + b"\0\0\0\0IEND\xaeB`\x82"
    if "WebP" in kind and end > 20:
        yield part[:4] + struct.pack("<I", end - 8) + part[8:16] + struct.pack("<I", end - 20) + part[20:]
    if "TIFF" in kind:
        yield with_counts(data, end * 8192 // len(data))


def with_counts(data: bytes, count: int) -> bytes:
    """Return a TIFF in which no strip claims more than ``count`` bytes."""
    changed, directory = bytearray(data), struct.unpack_from("<I", data, 4)[0]
    for entry in range(struct.unpack_from("<H", data, directory)[0]):
        place = directory + 2 + 12 * entry
        tag, kind, values, value = struct.unpack_from("<HHII", data, place)
        if tag == 279:
            form, size = {3: ("<H", 2), 4: ("<I", 4)}[kind]
            start = value if values * size > 4 else place + 8
            for strip in range(values):
                before = struct.unpack_from(form, data, start + strip * size)[0]
                struct.pack_into(form, changed, start + strip * size, min(before, count))
    return bytes(changed)


@pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow warns of a TIFF's directory
def test_load_picture_of_a_part_of_a_file_is_complete_or_refused(tmp_path: Path) -> None:
    """Check that every picture that is read is complete.

    The last block of a JPEG, at most 16 × 16 pixels, may differ.
    """
    for kind in KINDS:
        check_parts(kind, tmp_path)


def check_parts(kind: str, tmp_path: Path) -> None:
    data, path = saved(kind), tmp_path / "picture"
    path.write_bytes(data)
    whole = load_picture(path)
    refused = 0
    for end in range(1, len(data), max(1, len(data) // 60)):
        for part in shorter(kind, data, end):
            path.write_bytes(part)
            try:
                pixels = load_picture(path)
            except SystolicError:
                refused += 1
                continue
            if "JPEG" in kind:
                pixels[LAST_BLOCK] = whole[LAST_BLOCK]
            np.testing.assert_array_equal(pixels, whole, err_msg=f"{kind}: {end} bytes")
    assert refused > 50, kind


def cut_off(path: Path) -> None:
    """Check that the picture is refused because it is cut off."""
    with raises(DamagedFileError, path=str(path), reason="is cut off: its last rows are missing"):
        load_picture(path)


def test_jpeg_that_ends_early_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    data = saved("JPEG")
    path.write_bytes(data[: len(data) * 3 // 4] + b"\xff\xd9")
    cut_off(path)


def test_grey_jpeg_with_trailing_bytes_is_read(tmp_path: Path) -> None:
    """Check grey pictures, whose pixels equal the ones a decoder fills in. Bytes after the end are ignored."""
    path = tmp_path / "a.jpg"
    for mode, progressive, restarts, subsampling in product(("RGB", "L", "CMYK"), (False, True), (0, 1), range(3)):
        grey = Image.new("RGB", (50, 30), (128, 128, 128)).convert(mode)
        grey.save(path, progressive=progressive, restart_marker_blocks=restarts, subsampling=subsampling)
        whole = load_picture(path)
        path.write_bytes(path.read_bytes() + saved("JPEG"))
        np.testing.assert_array_equal(load_picture(path), whole)


def test_progressive_jpeg_without_its_last_scans_is_refused(tmp_path: Path) -> None:
    """Cut off the last scans: every row is present, but its details are missing."""
    path, data = tmp_path / "a.jpg", saved("progressive JPEG")
    starts = [place for place in range(len(data)) if data[place : place + 2] == b"\xff\xc4"][2:]
    assert len(starts) > 5
    for start in starts:
        path.write_bytes(data[:start] + b"\xff\xd9")
        cut_off(path)


def test_mpo_file_is_read_as_its_first_picture(tmp_path: Path) -> None:
    """Use Pillow's format MPO."""
    path = tmp_path / "a.jpg"
    first, second = Image.fromarray(NOISE), Image.fromarray(NOISE[::-1])
    first.save(path, "MPO", save_all=True, append_images=[second], progressive=True)
    pixels = load_picture(path)
    single = io.BytesIO()
    first.save(single, "JPEG", progressive=True)
    np.testing.assert_array_equal(pixels, np.asarray(Image.open(single)))
    data = path.read_bytes()
    path.write_bytes(data[:900] + b"\xff\xd9" + data[900:])
    cut_off(path)


def tiff(strips: list[bytes], planes: int = 1, bits: int = 8) -> bytes:
    """Return an uncompressed TIFF of 33 × 40 pixels in strips of 8 rows."""
    offsets = [8 + sum(map(len, strips[:place])) for place in range(len(strips))]
    body = b"".join(strips)
    after = 8 + len(body)
    words = struct.pack(f"<{len(strips)}I", *offsets) + struct.pack(f"<{len(strips)}I", *map(len, strips))
    tags = [(256, WIDTH), (257, HEIGHT), (258, bits), (259, 1), (262, 1 if planes == 1 else 2), (273, after),
            (277, planes), (278, 8), (279, after + 4 * len(strips)), (284, 1 if planes == 1 else 2)]  # fmt: skip
    if planes > 1:
        words += struct.pack(f"<{planes}H", *[bits] * planes)
    entries = b""
    for tag, value in tags:
        many = tag in (273, 279)
        count = len(strips) if many else planes if tag == 258 else 1
        if tag == 258 and planes > 1:
            value = after + 8 * len(strips)
        entries += struct.pack("<HHII", tag, 4 if many else 3, count, value)
    directory = after + len(words)
    return b"II*\0" + struct.pack("<I", directory) + body + words + struct.pack("<H", len(tags)) + entries + bytes(4)


LAID: dict[str, tuple[int, int, Callable[[int, int], bytes]]] = {
    "grey": (1, 8, lambda _, row: NOISE[row, :, 0].tobytes()),
    "black and white": (1, 1, lambda _, row: np.packbits(NOISE[row, :, 0] & 1).tobytes()),
    "in planes": (3, 8, lambda plane, row: NOISE[row, :, plane].tobytes()),
}


def test_tiff_with_a_short_strip_is_refused(tmp_path: Path) -> None:
    """Check that a short strip is refused, even if another strip follows. A strip may be too long."""
    for name in LAID:
        check_strips(name, tmp_path)


def check_strips(name: str, tmp_path: Path) -> None:
    planes, bits, row_of = LAID[name]
    path = tmp_path / "a.tif"
    strips = [
        b"".join(row_of(plane, row) for row in range(first, first + 8))
        for plane in range(planes)
        for first in range(0, HEIGHT, 8)
    ]
    path.write_bytes(tiff(strips, planes, bits))
    whole = load_picture(path)
    assert whole.shape == (HEIGHT, WIDTH, 3)
    path.write_bytes(tiff([*strips[:-1], strips[-1] + bytes(9)], planes, bits))
    np.testing.assert_array_equal(load_picture(path), whole)
    missing = [strips[:-1], [strips[0][:-1], *strips[1:]], [*strips[:2], strips[2][:3], *strips[3:]]]
    for part in missing:
        path.write_bytes(tiff(part, planes, bits))
        cut_off(path)


def test_tiff_with_an_unsupported_compression_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    for mode, compression in (("RGB", "jpeg"), ("1", "group3"), ("1", "group4"), ("1", "tiff_ccitt")):
        Image.fromarray(NOISE).convert(mode).save(path, compression=compression)
        with raises(ChoiceError, where=str(path), got=compression, choices=TIFF_COMPRESSIONS):
            load_picture(path)
