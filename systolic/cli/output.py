"""The output of a command: one JSON object or a text, and files."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from boards.errors import FileAccessError
from host.whole_file import check_whole, write_whole
from systolic.cli.streams import shown_as_text


def check_files(options: argparse.Namespace) -> None:
    """Raise FileAccessError, before the work starts, if the file of --json, --save or --report cannot be written."""
    for name in ("json", "save", "report"):
        path = getattr(options, name, None)
        if path is not None and str(path) != "-":
            with _refusal(path):
                check_whole(Path(path))


def write_result(options: argparse.Namespace, values: Mapping[str, Any], text: str) -> None:
    """Print the result as text, and write it as JSON to the file of --json.

    ``--json -`` prints the object instead of the text.
    """
    as_json = shown_as_text(json.dumps(values, indent=1, ensure_ascii=False)) if options.json else ""
    if options.json == "-":
        print(as_json)
        return
    if options.json:
        write_text(Path(options.json), f"{as_json}\n")
    print(shown_as_text(text))


def write_text(path: Path, text: str) -> None:
    """Write a text file. An existing file is replaced only after the whole text is written.

    Raises:
        FileAccessError: The file cannot be written.
    """
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Write a binary file. An existing file is replaced only after all bytes are written."""
    with _refusal(path):
        write_whole(path, data)


@contextmanager
def _refusal(path: Path | str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FileAccessError(
            str(path), f"cannot be written: {error.strerror}", remedy="choose another file"
        ) from error
