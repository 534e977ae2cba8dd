"""Reads from survivors.toml why some mutants survive. This module does not need Cosmic Ray."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

FILE = Path(__file__).with_name("survivors.toml")


def reasons() -> dict[tuple[str, str], list[tuple[list[str], str]]]:
    """Return, for a file and a line, pairs of mutated lines and the reason why no test notices them.

    An empty list of mutated lines means any mutation of the line.
    """
    listed: dict[tuple[str, str], list[tuple[list[str], str]]] = defaultdict(list)
    with FILE.open("rb") as file:
        for entry in tomllib.load(file).get("survivor", ()):
            listed[entry["file"], entry["line"]].append((entry.get("mutated", []), entry["reason"]))
    return listed
