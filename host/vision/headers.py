"""Facts from a picture file's header that Pillow does not report: size, completeness, and memory needed for reading."""

from __future__ import annotations

import contextlib
import io
import os
import re
import struct
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from PIL import Image

JPEGS = ("JPEG", "MPO")
"""Pillow's names of JPEG formats. MPO files, from some cameras, hold further pictures after the first."""

_MISSING, _NEAR = 128, 2
"""Value that libjpeg gives if the coefficients of a scan are missing, and the tolerance for its rounding."""

_OTHER = b"".join(bytes([*range(255), 0xFF, 0xD0 + number]) for number in range(8)) + b"\xff\xd9"
"""Coded data that belong to no picture, with a restart marker before each part and an end marker."""

_STRIP = 64

_PNG_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by colour type
_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
"""First column, first row, column step and row step of each pass of an interlaced PNG."""
_PIECE = 1 << 16
_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
_SCAN, _END, _ARITHMETIC, _PROGRESSIVE = 0xDA, 0xD9, range(0xC9, 0xD0), (0xC2, 0xC6, 0xCA, 0xCE)
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BITS, _COMPRESSION, _STRIP_BYTES, _SAMPLES, _PLANAR, _TILE_BYTES = 258, 259, 279, 277, 284, 325  # tags of a TIFF
_IN_PLANES = 2


def png_is_whole(file: BinaryIO) -> bool:
    """Return whether the compressed data of a PNG contain all rows. Pillow fills missing rows with black.

    zlib.error if the data cannot be decompressed.
    """
    file.seek(8)
    missing, inflate = 0, zlib.decompressobj()
    for kind, data in _png_chunks(file):
        if kind == b"IHDR":
            missing = _png_bytes(*struct.unpack_from(">IIBBBBB", data))
        if kind == b"IDAT":
            while data and missing > 0 and not inflate.eof:
                missing -= len(inflate.decompress(data, _PIECE))
                data = inflate.unconsumed_tail
        if missing <= 0 or inflate.eof:
            break
    return missing <= 0


def _png_chunks(file: BinaryIO) -> Iterator[tuple[bytes, bytes]]:
    """Yield the kind and the data of each chunk of a PNG file, in pieces, because a chunk may have any length."""
    while len(head := file.read(8)) == 8:
        size, kind = struct.unpack(">I4s", head)
        while size > 0 and (data := file.read(min(size, _PIECE))):
            size -= len(data)
            yield kind, data
        file.seek(4, 1)  # its checksum


def _png_bytes(width: int, height: int, depth: int, colours: int, *how: int) -> int:
    """Return the number of bytes of all rows of a PNG after decompression, including the filter byte of each row."""
    bits = depth * _PNG_CHANNELS.get(colours, 1)
    passes = _ADAM7 if how[-1] else ((0, 0, 1, 1),)
    total = 0
    for left, top, step_x, step_y in passes:
        columns, rows = -(-(width - left) // step_x), -(-(height - top) // step_y)
        if columns > 0 and rows > 0:
            total += rows * (1 + (columns * bits + 7) // 8)
    return total


def webp_pixels(head: bytes) -> int:
    """Return the number of pixels of a WebP canvas, from the first 30 bytes of the file. 0 if it is not WebP."""
    if head[:4] != b"RIFF" or head[8:12] != b"WEBP" or len(head) < 30:
        return 0
    kind = head[12:16]
    if kind == b"VP8X":
        return (int.from_bytes(head[24:27], "little") + 1) * (int.from_bytes(head[27:30], "little") + 1)
    if kind == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return ((bits & 0x3FFF) + 1) * ((bits >> 14 & 0x3FFF) + 1)
    width, height = struct.unpack_from("<HH", head, 26)
    return int(width & 0x3FFF) * int(height & 0x3FFF)


def tiff_is_whole(image: Any) -> bool:
    """Return whether the strips or tiles of an uncompressed TIFF contain all rows.

    Pillow reads on into the data that follow in the file. True if the file does not state their lengths.

    Args:
        image: A ``PIL.TiffImagePlugin.TiffImageFile``.
    """
    tags = image.tag_v2
    counts = tags.get(_STRIP_BYTES) or tags.get(_TILE_BYTES)
    if counts is None or tags.get(_COMPRESSION, 1) != 1:
        return True
    samples = tags.get(_SAMPLES, 1)
    bits = tags.get(_BITS, (1,))
    bits = bits if len(bits) == samples else bits[:1] * samples
    planes = [[each] for each in bits] if tags.get(_PLANAR, 1) == _IN_PLANES else [bits]
    row = sum((image.width * sum(plane) + 7) // 8 for plane in planes)
    return bool(sum(counts) >= image.height * row)


def jpeg_is_one_scan(file: BinaryIO) -> bool:
    """Return whether one scan of a JPEG holds all its components.

    Otherwise libjpeg keeps all coefficients of the picture in memory.
    """
    components = 0
    for marker, place in _jpeg_markers(file):
        file.seek(place + 4)
        if marker == _SCAN:
            return file.read(1) == bytes([components])
        if marker in _PROGRESSIVE:
            return False
        if marker in _FRAMES:
            components = (file.read(6) + bytes(6))[5]
    return False


def jpeg_has_all_scans(file: BinaryIO) -> bool:
    """Return whether the scans of a JPEG define every coefficient of every component down to the last bit."""
    missing: dict[int, set[int]] = {}
    for marker, place in _jpeg_markers(file):
        file.seek(place + 4)
        if marker in _FRAMES:
            components = (file.read(6) + bytes(6))[5]
            missing = {(file.read(3) + b"\0")[0]: set(range(64)) for _ in range(components)}
        if marker == _SCAN:
            count = (file.read(1) + b"\0")[0]
            named, (first, last, bits) = file.read(2 * count), (file.read(3) + bytes(3))[:3]
            for component in named[::2] if not bits & 15 else b"":
                missing.get(component, set()).difference_update(range(first, last + 1))
    return not any(missing.values())


def jpeg_end(file: BinaryIO) -> int:
    """Return the file position of the marker that ends a JPEG's picture, or −1 if there is none.

    It is −1 for arithmetic coding too, because a complete picture may lack the last bytes of its code.
    """
    for marker, place in _jpeg_markers(file):
        if marker in _ARITHMETIC:
            break
        if marker == _END:
            return place
    return -1


def _jpeg_markers(file: BinaryIO) -> Iterator[tuple[int, int]]:
    """Yield each marker of a JPEG outside the coded data with its file position, up to the end marker."""
    place = 2
    while (place := _next_marker(file, place)) >= 0:
        file.seek(place + 1)
        head = file.read(3)
        yield head[0], place
        if head[0] == _END:
            break
        place += 2 + max(int.from_bytes(head[1:], "big"), 2)


def _next_marker(file: BinaryIO, place: int) -> int:
    """Return the file position of the first JPEG marker from ``place`` on, except restart markers, or −1 if there is
    none."""
    file.seek(place)
    before = b""
    while data := file.read(_PIECE):
        if match := _MARKER.search(before + data):
            return place - len(before) + match.start()
        place += len(data)
        before = data[-1:]
    return -1


def is_whole(file: BinaryIO, image: Any) -> bool:
    """Return whether the file of a decoded PNG or TIFF holds the complete picture.

    True for JPEG, which ``JpegEnd`` checks, and for formats whose decoders report missing data.
    """
    if image.format == "PNG":
        return png_is_whole(file)
    return image.format != "TIFF" or tiff_is_whole(image)


class JpegEnd:
    """Detects a JPEG whose data end before the last row, by decoding it again with other data appended.

    A complete picture ignores the appended data. The second decoding is skipped if the last pixel shows completeness:
    in a JPEG of one scan missing data are at the end, and appear grey. Data missing within the last block are not
    detected then.

    Args:
        file: The picture's file.
        image: The picture decoded from it. It is not kept, so that only one picture is in memory at a time.
    """

    def __init__(self, file: BinaryIO, image: Any) -> None:
        self._file = file
        self._end = -1
        if image.format in JPEGS and not (_last_is_there(image) and jpeg_is_one_scan(file)):
            self._end = jpeg_end(file)
        self._checksum = _checksum(image) if self._end >= 0 else 0

    def is_early(self) -> bool:
        """Return whether rows of the JPEG are missing, or details that later scans would add."""
        if self._end < 0:
            return False
        if not jpeg_has_all_scans(self._file):
            return True
        with Image.open(io.BufferedReader(_Longer(self._file, self._end)), formats=("JPEG",)) as image:
            return _checksum(image) != self._checksum


def _last_is_there(image: Any) -> bool:
    if image.mode not in ("L", "RGB"):
        return False
    last = image.crop((image.width - 1, image.height - 1, image.width, image.height)).convert("L")
    return abs(int(last.getpixel((0, 0))) - _MISSING) > _NEAR


def _checksum(image: Any) -> int:
    checksum = 0
    for top in range(0, image.height, _STRIP):
        strip = image.crop((0, top, image.width, min(top + _STRIP, image.height)))
        checksum = zlib.crc32(strip.tobytes(), checksum)
    return checksum


class _Longer(io.RawIOBase):
    """A file object with the bytes of a JPEG file up to position ``end``, followed by other data."""

    def __init__(self, file: BinaryIO, end: int) -> None:
        self._file, self._end, self._place = file, end, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._end + len(_OTHER)}[whence]
        self._place = base + offset
        return self._place

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        if self._place < self._end:
            self._file.seek(self._place)
            data = self._file.read(min(len(view), self._end - self._place))
        else:
            start = self._place - self._end
            data = _OTHER[start : start + len(view)]
        view[: len(data)] = data
        self._place += len(data)
        return len(data)


RESULT_BYTES = 3
"""Bytes per pixel of the result: red, green, blue."""

_POINTER = 8  # bytes of Pillow's pointer to each row
_BYTES_OF_MODE = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16B": 2, "I;16L": 2, "I;16N": 2}  # 4 for all other modes
_WEBP = 12  # bytes per pixel: two canvases of libwebp and its output, in addition to Pillow's own picture
_IN_PYTHON = {"ppm", "ppm_plain", "bmp_rle"}  # decoders of Pillow that collect all values first
_STRIP_ROWS, _TILE_SIDES, _ORIENTATION = 278, (322, 323), 274  # tags of a TIFF
_TILE = 8 << 20  # bytes for conversions, which are done tile by tile


def memory_of(file: BinaryIO, image: Any) -> int:
    """Return the peak memory in bytes of reading a picture file, from opening it to its pixels uint8 ``(height, width,
    3)``.

    Args:
        file: The picture's file.
        image: The picture opened from it, not decoded yet.

    Raises:
        OSError: The file ends within its header.
    """
    width, height = int(image.width), int(image.height)
    row = -(-width * _BYTES_OF_MODE.get(image.mode, 4) // 4) * 4
    stored = int(height * (row + _POINTER))
    with _undisturbed(file):
        return stored + width * height * RESULT_BYTES + _TILE + _decoder(file, image, stored)


@contextlib.contextmanager
def _undisturbed(file: BinaryIO) -> Iterator[None]:
    """Return a context manager that restores the file's position at its end, so that Pillow continues reading where it
    was."""
    place = file.tell()
    yield
    file.seek(place)


def webp_memory(pixels: int, file_bytes: int) -> int:
    """Return the peak memory in bytes of reading a WebP file, as ``memory_of`` does; libwebp allocates it when the file
    is opened."""
    return pixels * (_WEBP + 4 + RESULT_BYTES) + 2 * file_bytes


def _decoder(file: BinaryIO, image: Any, stored: int) -> int:
    """Return the memory in bytes that a picture's decoder takes, in addition to Pillow's own picture of ``stored``
    bytes."""
    pixels: int = image.width * image.height
    codec = image.tile[0][0] if image.tile else ""
    if image.format in JPEGS:
        return _coefficients(file, image, pixels)
    if image.format == "WEBP":
        return webp_memory(pixels, os.fstat(file.fileno()).st_size) - stored - pixels * RESULT_BYTES
    if image.format == "TIFF":
        turned: int = stored if image.tag_v2.get(_ORIENTATION, 1) != 1 else 0
        return turned + (_strip(image) + os.fstat(file.fileno()).st_size if codec == "libtiff" else 0)
    if codec in _IN_PYTHON:
        return 2 * pixels * _BYTES_OF_MODE.get(image.mode, 4)
    return 0


def _coefficients(file: BinaryIO, image: Any, pixels: int) -> int:
    """Return the bytes that libjpeg takes for all coefficients, two each. 0 if one scan gives them in order, so none
    are kept."""
    if jpeg_is_one_scan(file):
        return 0
    samples = [(across, down) for _, across, down, *_ in image.layer]
    most = max(1, *(across for across, _ in samples)) * max(1, *(down for _, down in samples))
    return int(2 * pixels * sum(across * down for across, down in samples) / most)


def _strip(image: Any) -> int:
    """Return the bytes that libtiff decompresses at a time: a strip or a tile, with all samples."""
    tags = image.tag_v2
    bits = tags.get(_BITS, (1,))
    rows = min(tags.get(_STRIP_ROWS, image.height), image.height)
    tile = [tags.get(tag, 0) for tag in _TILE_SIDES]
    return int(max(rows * image.width, tile[0] * tile[1]) * sum(bits) / 8)
