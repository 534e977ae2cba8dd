"""PNG files of given bytes."""

from __future__ import annotations

import struct
import zlib


def huge_png(width: int, height: int) -> bytes:
    """Return a few bytes that claim ``width`` × ``height`` pixels."""
    return _file(width, height, b"\0")


def png(width: int, height: int, rows: bytes, *, depth: int = 8, colours: int = 2, interlaced: bool = False) -> bytes:
    """Return a picture with these rows, each after the number of its filter, in two chunks."""
    return _file(width, height, rows, depth, colours, interlaced)


def _file(width: int, height: int, rows: bytes, depth: int = 8, colours: int = 2, interlaced: bool = False) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, depth, colours, 0, 0, int(interlaced))
    packed = zlib.compress(rows)
    parts = (packed[: len(packed) // 2], packed[len(packed) // 2 :])
    data = b"".join(chunk(b"IDAT", part) for part in parts)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + data + chunk(b"IEND", b"")


def len_of(width: int, height: int, bits: int, interlaced: bool) -> int:
    """Return the bytes of the rows, pixel by pixel, by the pattern of the PNG specification, section 8.2."""
    pattern = ["16462646", "77777777", "56565656", "77777777", "36463646", "77777777", "56565656", "77777777"]
    total = 0
    for number in "1234567" if interlaced else "0":
        for y in range(height):
            count = sum(not interlaced or pattern[y % 8][x % 8] == number for x in range(width))
            total += (1 + -(-count * bits // 8)) if count else 0
    return total
