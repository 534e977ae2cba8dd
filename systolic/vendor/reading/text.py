"""What every reader of reports needs. Reports are untrusted: sizes are bounded before reading, and XML has no
DOCTYPE."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

from boards.errors import DamagedFileError, FileAccessError

LARGEST_REPORT = 256 << 20
"""Bytes. That of a large network has some ten million."""

LONGEST_LINE = 4_000
"""Characters that are read of a line of a log or a schedule."""

MOST_ELEMENTS = 1_000_000
"""Of an XML report, without operators: each takes a hundred times its bytes."""

GREATEST_NUMBER = 1e12
"""Any larger one is not a report's, and could overflow in what is computed of it."""

_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def read_text(path: Path, largest: int = LARGEST_REPORT) -> str:
    """Read a report; characters that are not UTF-8 are replaced. FileAccessError if it cannot be read or is too
    large."""
    try:
        with path.open("rb") as file:
            data = file.read(largest + 1)
    except OSError as error:
        raise _unreadable(path, error) from error
    if len(data) > largest:
        raise _too_large(path, largest)
    return data.decode("utf-8", "replace")


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of a long report, each cut to LONGEST_LINE characters; raise as ``read_text`` does."""
    try:
        size = path.stat().st_size
        if size > LARGEST_REPORT:
            raise _too_large(path, LARGEST_REPORT)
        with path.open(encoding="utf-8", errors="replace") as file:
            whole = True
            while piece := file.readline(LONGEST_LINE):
                if whole:
                    yield piece
                whole = piece.endswith("\n")
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> FileAccessError:
    reason, remedy = f"cannot be read: {error.strerror}", "copy the whole folder of reports"
    return FileAccessError(str(path), reason, "report", remedy=remedy)


def _too_large(path: Path, largest: int) -> FileAccessError:
    return FileAccessError(str(path), f"has more than {largest:,} bytes, which no report has", "report")


_OPERATIONS = re.compile(r'<BindNode BINDTYPE="op"[^<]*?/>')
"""One for each operator of the design, of which nothing is asked here."""


def parse_xml(text: str, path: Path) -> ElementTree.Element:
    """Return the root, without the operators; DamagedFileError for text that is not XML, and for a DOCTYPE, which could
    name other files or grow without bound."""
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        reason = "has a DOCTYPE or an entity, which no report of Vitis HLS has"
        raise DamagedFileError(str(path), reason, remedy="take the tool's own file")
    text = _OPERATIONS.sub("", text)
    if text.count("<") > 2 * MOST_ELEMENTS:  # an element has one or two
        raise DamagedFileError(str(path), f"has more than {MOST_ELEMENTS:,} elements, which no report has")
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        reason, remedy = f"is not XML ({error}); was it cut off?", "run the synthesis again"
        raise DamagedFileError(str(path), reason, remedy=remedy) from error


def number(text: str | None) -> float | None:
    """The first number of a cell such as "320 (3%)" or "7.30 ns"; None of "-", "NA", "undef", "?", and of what is above
    GREATEST_NUMBER."""
    match = _NUMBER.match((text or "").strip().lstrip("~").replace(",", ""))
    value = float(match[0]) if match else None
    return None if value is None or abs(value) > GREATEST_NUMBER else value


def integer(text: str | None) -> int | None:
    """``number`` of a count."""
    value = number(text)
    return None if value is None else int(value)


def field(text: str, name: str) -> str:
    """What a head such as ``| Device : xczu7ev`` or ``* Version: 2022.2`` says, "" where it says nothing."""
    match = re.search(rf"^[ |*]*{re.escape(name)}[ \t]*:[ \t]*([^\n|]*)", text, re.MULTILINE)
    return match[1].strip() if match else ""


def cells(line: str) -> list[str] | None:
    """Of a line ``| a | b |``, None of any other; blanks before a name stay, since they say what it is a part of."""
    stripped = line.strip()
    if len(stripped) < 2 or not (stripped.startswith("|") and stripped.endswith("|")):
        return None
    return [cell.rstrip() for cell in stripped[1:-1].split("|")]


def rows_under(lines: Sequence[str], start: int) -> Iterator[list[str]]:
    """Cells of the rows of the first table from line ``start`` on, its head among them."""
    begun = False
    for line in lines[start:]:
        row = cells(line)
        if row is not None:
            begun = True
            yield row
        elif begun and not line.strip().startswith("+"):
            return
