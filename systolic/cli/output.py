"""What every command reads and gives: one JSON object or a text, files with their sentence."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from boards.errors import GenerateError, ScheduleError


def give(options: argparse.Namespace, values: Mapping[str, Any], text: str) -> None:
    """The object to where --json says, the text to stdout unless the object goes there."""
    if options.json == "-":
        print(json.dumps(values, indent=1, ensure_ascii=False))
        return
    if options.json:
        write_text(Path(options.json), json.dumps(values, indent=1, ensure_ascii=False) + "\n")
    print(text)


def write_text(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise GenerateError(f"{path} cannot be written: {error.strerror}") from error


def read_text(path: str | Path, what: str, made_by: str) -> str:
    """ScheduleError where the file cannot be read, with the command that writes one."""
    try:
        return Path(path).read_text("utf-8")
    except UnicodeDecodeError as error:
        raise ScheduleError(f"the {what} {path} is no text; write one with {made_by}") from error
    except OSError as error:
        raise ScheduleError(f"the {what} {path} cannot be read: {error}; write one with {made_by}") from error


def read_schedule(path: Path) -> str:
    return read_text(path, "schedule", "systolic schedule --save FILE")
