"""What a picture file says of itself before it is decoded, where Pillow does not tell."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO

_PNG_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by colour type
_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
"""Of each pass: first column and row, and the steps between them."""
_PIECE = 1 << 16


def png_is_whole(file: BinaryIO) -> bool:
    """Whether the compressed data of a PNG hold all of its rows. Pillow leaves those black that they do not.

    zlib.error where they cannot be decompressed.
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
    """Kind and data, in pieces: a chunk may be as long as it likes."""
    while len(head := file.read(8)) == 8:
        size, kind = struct.unpack(">I4s", head)
        while size > 0 and (data := file.read(min(size, _PIECE))):
            size -= len(data)
            yield kind, data
        file.seek(4, 1)  # its checksum


def _png_bytes(width: int, height: int, depth: int, colours: int, *how: int) -> int:
    """Of all rows, each with the byte that names its filter."""
    bits = depth * _PNG_CHANNELS.get(colours, 1)
    passes = _ADAM7 if how[-1] else ((0, 0, 1, 1),)
    total = 0
    for left, top, step_x, step_y in passes:
        columns, rows = -(-(width - left) // step_x), -(-(height - top) // step_y)
        if columns > 0 and rows > 0:
            total += rows * (1 + (columns * bits + 7) // 8)
    return total


def webp_pixels(head: bytes) -> int:
    """Of the canvas, by the first 30 bytes of a WebP file; 0 where they are none."""
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


def jpeg_is_one_scan(file: BinaryIO) -> bool:
    """Whether all components come together: else libjpeg keeps the coefficients of the whole picture."""
    file.seek(2)
    components = 0
    while len(head := file.read(4)) == 4:
        marker, size = struct.unpack(">HH", head)
        if marker == 0xFFDA:
            return file.read(1)[:1] == bytes([components])
        if 0xFFC0 <= marker <= 0xFFCF and marker not in (0xFFC4, 0xFFC8, 0xFFCC):
            components = (file.read(6) + bytes(6))[5]
            file.seek(-6, 1)
        file.seek(max(size - 2, 0), 1)
    return False
