"""How every command answers: one JSON object or a text, files with their sentence."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from boards.errors import GenerateError
from host.whole_file import check_whole, write_whole


def check_files(options: argparse.Namespace) -> None:
    """GenerateError where a file that the command is to write cannot be: asked before it works."""
    for name in ("json", "save", "report"):
        path = getattr(options, name, None)
        if path is not None and str(path) != "-":
            with _refusal(path):
                check_whole(Path(path))


def give(options: argparse.Namespace, values: Mapping[str, Any], text: str) -> None:
    """The object to where --json says, the text to stdout unless the object goes there."""
    if options.json == "-":
        print(json.dumps(values, indent=1, ensure_ascii=False))
        return
    if options.json:
        write_text(Path(options.json), json.dumps(values, indent=1, ensure_ascii=False) + "\n")
    print(text)


def write_text(path: Path, text: str) -> None:
    """Whole or not at all. GenerateError where the file cannot be written."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """As ``write_text``."""
    with _refusal(path):
        write_whole(path, data)


@contextmanager
def _refusal(path: Path | str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise GenerateError(f"{path} cannot be written: {error.strerror}; choose another file") from error
