"""Mutators that keep the structure of a file: of JSON, of an archive, of the header of an array, of binary numbers."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from tests.fuzz.files.mutators import BYTES, NUMBERS, ODD, extreme
from tests.fuzz.files.target import Mutate

VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 7, 255, 256, 65536, 1 << 20, (1 << 31) - 1, 1 << 31, 1 << 32, -(1 << 31),
    1 << 48, 1 << 63, 10**30, 10**400, 0.0, -0.0, 0.5, 1.5, 1e-320, 1e-300, 1e300, 1e308, float("inf"), float("nan"),
    "", "x", "a" * 300, "a" * 5000, "INT8", "UINT4", "BIPOLAR", [], [[]], [0], [1, 2], {}, {"a": 1}, [None], "0",
    "../x", "/etc/passwd",
)  # fmt: skip
"""Values that replace a value of a JSON text."""

DEPTHS = (10, 900, 5000, 100_000)
"""Depths of nested lists or objects."""


def json_value(data: bytes, random: Random, pool: Sequence[bytes]) -> bytes:
    """Change, remove, rename or repeat one value of a JSON text."""
    try:
        values = json.loads(data)
    except (ValueError, RecursionError):
        return random.choice(BYTES)(data, random, pool)
    places: list[tuple[Any, Any]] = []
    _collect(values, places)
    if not places:
        return json.dumps(random.choice(VALUES)).encode()
    holder, key = random.choice(places)
    _change(holder, key, random, places)
    try:
        return json.dumps(values, ensure_ascii=random.random() < 0.5).encode("utf-8", "surrogatepass")
    except RecursionError:
        return data


def _collect(values: Any, places: list[tuple[Any, Any]]) -> None:
    keys = list(values) if isinstance(values, dict) else range(len(values)) if isinstance(values, list) else ()
    for key in keys:
        places.append((values, key))
        _collect(values[key], places)


def _change(holder: Any, key: Any, random: Random, places: list[tuple[Any, Any]]) -> None:
    what = random.randrange(9)
    before = holder[key]
    if what == 0:
        del holder[key]
    elif what == 1 and isinstance(holder, list):
        holder[key:key] = [before] * random.choice((1, 1, 5, 500))
    elif what == 1:
        holder[random.choice((f"{key}x", random.choice(ODD), "a" * 4000))] = before
    elif what == 2:
        other, other_key = random.choice(places)
        holder[key] = json.loads(json.dumps(other[other_key])) if other_key in _keys(other) else 0
    elif what in (3, 4, 5) and isinstance(before, int | float) and not isinstance(before, bool):
        holder[key] = random.choice((before + 1, before - 1, -before, before * 2, before * 1000, 0, 1, 1 << 40))
    elif what in (3, 4) and isinstance(before, str):
        place = random.randrange(len(before) + 1)
        holder[key] = before[:place] + random.choice(ODD) * random.choice((1, 1, 400)) + before[place:]
    else:
        holder[key] = random.choice(VALUES)


def _keys(values: Any) -> Sequence[Any]:
    return list(values) if isinstance(values, dict) else range(len(values))


def nested(data: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    """Replace a value of a JSON text by one that is nested up to 100,000 levels deep."""
    depth = random.choice(DEPTHS)
    opening, closing = random.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"[", b"")))
    colons = [match.end() for match in re.finditer(rb":", data[: 1 << 16])]
    place = random.choice(colons) if colons and random.random() < 0.8 else 0
    end = place + len(re.match(rb"[^,}\]\n]*", data[place:]).group())  # type: ignore[union-attr]
    return data[:place] + opening * depth + b"1" + closing * depth + data[end:]


def raw_number(data: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    """Replace a number of a JSON text by one that is too long, or that is not written as JSON requires."""
    places = [match.span() for match in re.finditer(rb"-?\d[\d.eE+-]*", data[: 1 << 16])]
    if not places:
        return data
    start, end = random.choice(places)
    return data[:start] + random.choice(NUMBERS).encode() + data[end:]


JSON = (json_value, json_value, json_value, json_value, nested, raw_number, raw_number, *BYTES)


def archive(inner: Callable[[str], Sequence[Mutate]]) -> Mutate:
    """Return a mutator of .npz files and other zip archives.

    Args:
        inner: Returns the mutators of a member, by the member's name.
    """

    def change(data: bytes, random: Random, pool: Sequence[bytes]) -> bytes:
        members = read_members(data)
        if not members:
            return random.choice(BYTES)(data, random, pool)
        place = random.randrange(len(members))
        name, content = members[place]
        what = random.randrange(12)
        if what == 0:
            del members[place]
        elif what == 1:
            members.append((random.choice((name, f"{name}x", random.choice(ODD), "../x", "a" * 300, "0.npy")), content))
        elif what == 2:
            other = random.randrange(len(members))
            members[place] = (name, members[other][1])
        elif what == 3:
            return write_members(members, random.choice((8, 12, 14)))
        else:
            members[place] = (name, random.choice(inner(name))(content, random, [content]))
        return write_members(members)

    return change


def read_members(data: bytes) -> list[tuple[str, bytes]]:
    """Return the names and contents of an archive's members, or [] if ``data`` is not a readable archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as opened:
            return [(entry.filename, opened.read(entry)) for entry in opened.infolist()]
    except Exception:  # zipfile raises various exceptions for a damaged archive
        return []


def write_members(members: Sequence[tuple[str, bytes]], method: int = zipfile.ZIP_STORED) -> bytes:
    """Return an archive of the members.

    Args:
        method: The number of the compression method in the zip format.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as opened:
        for name, content in members:
            entry = zipfile.ZipInfo(name.encode("utf-8", "replace").decode())
            opened.writestr(entry, content, method)
    return buffer.getvalue()


def npy_header(data: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    """Change the header of a .npy array."""
    end = data.find(b"\n") + 1
    if not data.startswith(b"\x93NUMPY") or not end:
        return data
    header = data[10:end].rstrip()
    what = random.randrange(6)
    if what == 0:
        header = re.sub(rb"'descr': [^,]*", b"'descr': " + random.choice(_DTYPES), header)
    elif what == 1:
        header = re.sub(rb"'shape': \([^)]*\)", b"'shape': " + random.choice(_SHAPES), header)
    elif what == 2:
        header = header.replace(b"False", random.choice((b"True", b"1", b"None", b"False or True")))
    elif what == 3:
        place = random.randrange(len(header) + 1)
        header = (
            header[:place] + random.choice((*_DTYPES, *_SHAPES, b"(", b"\0", b"\xff", b"lambda: 0")) + header[place:]
        )
    elif what == 4:
        header = b"(" * random.choice((10, 200, 3000)) + header
    else:
        return data[:6] + bytes([random.choice((0, 1, 2, 3, 9)), random.choice((0, 1))]) + data[8:]
    length = random.choice((len(header) + 1,) * 4 + (0, 1, 65535))
    return data[:8] + length.to_bytes(2, "little") + header[:65000] + b"\n" + data[end:]


_DTYPES = (
    b"'<f4'", b"'>f4'", b"'<f2'", b"'<f8'", b"'|O'", b"'|S5'", b"'<U9'", b"'|V8'", b"'<i8'", b"'|b1'", b"'<c8'", b"''",
    b"[('a', '<f4')]", b"[('a', '<f4', (1000000000,))]", b"'<f4,<f4'", b"None", b"'<M8[ns]'", b"'f'", b"'<f16'",
    b"'(1000000,1000000)<f4'", b"'" + b"x" * 3000 + b"'",
)  # fmt: skip
_SHAPES = (
    b"()", b"(1,)", b"(0,)", b"(-1,)", b"(1000000000000,)", b"(2, 2)", b"None", b"(1.5,)", b"('a',)", b"[1]",
    b"(True,)", b"(" + b"1, " * 70 + b")", b"(18446744073709551616,)", b"(" + b"9" * 5000 + b",)",
    b"(65536, 65536, 65536, 65536)",
)  # fmt: skip


def word_of(form: str) -> Mutate:
    """Return a mutator of a file of numbers in the struct format ``form``."""

    def change(data: bytes, random: Random, _: Sequence[bytes]) -> bytes:
        number = extreme(form, random)
        places = len(data) // len(number)
        if not places:
            return data
        start = random.randrange(places) * len(number)
        return data[:start] + number + data[start + len(number) :]

    return change
