"""Functions that all readers of reports share: bounded files, tables, numbers and XML.

Reports are untrusted, so sizes are checked before reading, and XML with a DOCTYPE is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

from boards.errors import DamagedFileError, FileAccessError

MAX_REPORT_BYTES = 256 << 20
"""The size in bytes above which a report is refused. The report of a large network has about ten million."""

MAX_LINE_LENGTH = 4_000
"""The number of characters at which a line of a log or a schedule is cut."""

MAX_ELEMENTS = 1_000_000
"""The largest number of elements of an XML report, without operators. The limit bounds the memory of the parser."""

MAX_NUMBER = 1e12
"""The largest number that is read. No report contains a larger one, and it could overflow in later computations."""

_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def read_text(path: Path, largest: int = MAX_REPORT_BYTES) -> str:
    """Return a report's text; bytes that are not UTF-8 are replaced. A file that is too large is refused.

    Raises:
        FileAccessError: The file cannot be read or has more than ``largest`` bytes.
    """
    try:
        with path.open("rb") as file:
            data = file.read(largest + 1)
    except OSError as error:
        raise _unreadable(path, error) from error
    if len(data) > largest:
        raise _too_large(path, largest)
    return data.decode("utf-8", "replace")


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of a long report, each cut to MAX_LINE_LENGTH characters.

    Raises:
        FileAccessError: The file cannot be read or has more than MAX_REPORT_BYTES bytes.
    """
    try:
        size = path.stat().st_size
        if size > MAX_REPORT_BYTES:
            raise _too_large(path, MAX_REPORT_BYTES)
        with path.open(encoding="utf-8", errors="replace") as file:
            whole = True
            while piece := file.readline(MAX_LINE_LENGTH):
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
"""The elements of the design's operators. They are not needed and are the largest part of the file."""


def parse_xml(text: str, path: Path) -> ElementTree.Element:
    """Return the root element of an XML report, parsed without the elements of the design's operators.

    Raises:
        DamagedFileError: The text is not XML, has too many elements, or has a DOCTYPE or an entity, which could refer
            to other files or expand without bound.
    """
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        reason = "has a DOCTYPE or an entity, which no report of Vitis HLS has"
        raise DamagedFileError(str(path), reason, remedy="take the file as the tool wrote it")
    text = _OPERATIONS.sub("", text)
    if text.count("<") > 2 * MAX_ELEMENTS:  # an element has one tag or two
        raise DamagedFileError(str(path), f"has more than {MAX_ELEMENTS:,} elements, which no report has")
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        reason, remedy = f"is not XML ({error}); was it cut off?", "run the synthesis again"
        raise DamagedFileError(str(path), reason, remedy=remedy) from error


def number(text: str | None) -> float | None:
    """Return the number at the start of a cell such as "320 (3%)" or "7.30 ns".

    None for a cell such as "-", "NA", "undef" or "?", and for a number above MAX_NUMBER.
    """
    match = _NUMBER.match((text or "").strip().lstrip("~").replace(",", ""))
    value = float(match[0]) if match else None
    return None if value is None or abs(value) > MAX_NUMBER else value


def integer(text: str | None) -> int | None:
    """Return the number at the start of a cell as an int; None if it has none."""
    value = number(text)
    return None if value is None else int(value)


def field(text: str, name: str) -> str:
    """Return the value of a header line such as ``| Device : xczu7ev`` or ``* Version: 2022.2``; "" without one."""
    match = re.search(rf"^[ |*]*{re.escape(name)}[ \t]*:[ \t]*([^\n|]*)", text, re.MULTILINE)
    return match[1].strip() if match else ""


def cells(line: str) -> list[str] | None:
    """Return the cells of a line ``| a | b |``; None for another line.

    Blanks before a cell's text are kept, because the indentation of a name shows the nesting.
    """
    stripped = line.strip()
    if len(stripped) < 2 or not (stripped.startswith("|") and stripped.endswith("|")):
        return None
    return [cell.rstrip() for cell in stripped[1:-1].split("|")]


def rows_under(lines: Sequence[str], start: int) -> Iterator[list[str]]:
    """Yield the cells of each row of the first table at or below line ``start``, with its head."""
    begun = False
    for line in lines[start:]:
        row = cells(line)
        if row is not None:
            begun = True
            yield row
        elif begun and not line.strip().startswith("+"):
            return
