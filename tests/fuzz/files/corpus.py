"""Files that were a defect once, or that show a mutator what there is: ``tests/fuzz/corpus/KIND/*``."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "corpus"


def files(kind: str) -> tuple[bytes, ...]:
    """Those of one kind, by their names."""
    return tuple(path.read_bytes() for path in sorted((FOLDER / kind).glob("*")))


def file(kind: str, name: str) -> bytes:
    """One of them."""
    return (FOLDER / kind / name).read_bytes()
