"""The corpus ``tests/fuzz/corpus/KIND/*``: files that once showed a defect, and material for mutators."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "corpus"


def files(kind: str) -> tuple[bytes, ...]:
    """Return the files of one kind, sorted by name."""
    return tuple(path.read_bytes() for path in sorted((FOLDER / kind).glob("*")))


def file(kind: str, name: str) -> bytes:
    """Return one file of a kind."""
    return (FOLDER / kind / name).read_bytes()
