"""Mutators of arbitrary files, of text, and of files of binary words."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from random import Random

LONGEST = 1 << 21
"""The limit for the length of a mutated file, in bytes."""

NUMBERS = (
    "0", "-1", "1", "2", "-0", "+1", "00", "007", "255", "256", "65535", "65536", "65537", "2147483647", "2147483648",
    "4294967295", "4294967296", "-2147483648", "9223372036854775807", "9223372036854775808", "18446744073709551616",
    "1e308", "1e309", "-1e309", "1e-320", "1e-300", "nan", "NaN", "inf", "Infinity", "-Infinity", "0x10", "1_000",
    "1.5", ".5", "1.", "٣", "１", "", " ", "9" * 40, "9" * 400, "9" * 5000, "-" + "9" * 5000, "0." + "0" * 400 + "1",
)  # fmt: skip
"""Numbers as text that a reader may not expect: extreme, infinite, long, or not written in plain digits."""

ODD = (
    "\0", "\t", "\n", "\r", "\x0b", "\x1b[31m", "\x7f", "\u0085", "\u00a0", "\u00ad", "\u200b", "\u200d", "\u202e",
    "\u2028", "\ufeff", "\ufffd", "\ud7ff", "é", "ß", "İ", "漢", "🎈", "e\u0301" * 3, "'", '"', "`", "\\", "/", "../",
    "%s", "{}", "{{", "}}", "{%", "<script>", "&amp;", "$(id)", ";", "#", "=", ",", "[", "]", "[[", "*/", "//",
)  # fmt: skip
"""Texts that a reader may not expect: control characters, unusual Unicode, and parts of other syntaxes."""

_NUMBER = re.compile(rb"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_WORD = re.compile(rb"[A-Za-z_][A-Za-z_0-9.-]*")


def _bounded(data: bytes) -> bytes:
    return data[:LONGEST]


def flip(data: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    """Change one to eight bytes."""
    if not data:
        return bytes([random.randrange(256)])
    changed = bytearray(data)
    for _i in range(random.choice((1, 1, 2, 8))):
        place = random.randrange(len(changed))
        changed[place] = random.choice((changed[place] ^ (1 << random.randrange(8)), random.randrange(256), 0, 255))
    return bytes(changed)


def truncate(data: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    """Cut off the end of the file, or sometimes its beginning."""
    place = random.randrange(len(data) + 1)
    return data[:place] if random.random() < 0.8 else data[place:]


def cut_out(data: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    """Remove a part of the file."""
    start = random.randrange(len(data) + 1)
    return data[:start] + data[start + random.choice((1, 2, 4, 16, 256)) :]


def repeat(data: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    """Repeat a part of the file, once or many times."""
    start = random.randrange(len(data) + 1)
    part = data[start : start + random.choice((1, 4, 32, 256))]
    return _bounded(data[:start] + part * random.choice((1, 1, 2, 16, 1000)) + data[start:])


def splice(data: bytes, random: Random, pool: Sequence[bytes]) -> bytes:
    """Join the beginning of this file and the end of another."""
    other = random.choice(pool)
    return _bounded(data[: random.randrange(len(data) + 1)] + other[random.randrange(len(other) + 1) :])


def word(data: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    """Replace a binary number of 1 to 8 bytes by an extreme one."""
    form = random.choice(("b", "<h", ">h", "<i", ">i", "<q", ">q", "<f", "<d"))
    size = struct.calcsize(form)
    if len(data) < size:
        return data
    start = random.randrange(len(data) - size + 1) // size * size if random.random() < 0.7 else 0
    return data[:start] + extreme(form, random) + data[start + size :]


def extreme(form: str, random: Random) -> bytes:
    """Return a number in a struct format: at the end of its range, near 0, or a random one."""
    if form[-1] in "fd":
        values = (0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 1e-40, 3e38, -3e38)
        return struct.pack(form, random.choice(values))
    bits = 8 * struct.calcsize(form)
    most = (1 << (bits - 1)) - 1
    values_of_bits = (
        0,
        1,
        -1,
        2,
        most,
        -most - 1,
        most - 1,
        random.randint(-most, most),
        1 << random.randrange(bits - 1),
    )
    return struct.pack(form, random.choice(values_of_bits))


def number(data: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    """Replace a number in a text."""
    return _replaced(data, _NUMBER, random.choice(NUMBERS).encode(), random)


def token(data: bytes, random: Random, pool: Sequence[bytes]) -> bytes:
    """Replace a word in a text by a word of one of the texts."""
    words = _WORD.findall(random.choice(pool)) or [b"word"]
    return _replaced(data, _WORD, random.choice(words), random)


def odd(data: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    """Insert unexpected characters into a text."""
    place = random.randrange(len(data) + 1)
    text = random.choice(ODD) * random.choice((1, 1, 1, 3, 300, 3000))
    return _bounded(data[:place] + text.encode("utf-8", "surrogatepass") + data[place:])


def _replaced(data: bytes, pattern: re.Pattern[bytes], by: bytes, random: Random) -> bytes:
    places = [match.span() for match in pattern.finditer(data[: 1 << 16])]
    if not places:
        return data
    start, end = random.choice(places)
    return data[:start] + by + data[end:]


def lines(data: bytes, random: Random, pool: Sequence[bytes]) -> bytes:
    """Remove a line, repeat it, exchange it with another, or insert a line of another text."""
    listed = data.split(b"\n")
    place = random.randrange(len(listed))
    what = random.randrange(4)
    if what == 0:
        del listed[place]
    elif what == 1:
        listed[place:place] = [listed[place]] * random.choice((1, 1, 2, 50, 1100))
    elif what == 2:
        other = random.randrange(len(listed))
        listed[place], listed[other] = listed[other], listed[place]
    else:
        listed.insert(place, random.choice(random.choice(pool).split(b"\n")))
    return _bounded(b"\n".join(listed))


BYTES = (flip, truncate, cut_out, repeat, splice, word)
TEXT = (number, number, token, token, odd, lines, lines, flip, truncate, cut_out, repeat, splice)
