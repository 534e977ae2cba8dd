"""Why some survivors stand, as survivors.toml says it; read without Cosmic Ray."""

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
    """Of a file and a line of it: what it may become, any where nothing is named, and why no test notices."""
    listed: dict[tuple[str, str], list[tuple[list[str], str]]] = defaultdict(list)
    with FILE.open("rb") as file:
        for entry in tomllib.load(file).get("survivor", ()):
            listed[entry["file"], entry["line"]].append((entry.get("mutated", []), entry["reason"]))
    return listed
