"""The content of a folder as a dictionary of paths and bytes."""

from __future__ import annotations

import json
import re
from pathlib import Path, PurePosixPath

Tree = dict[str, bytes]
"""The content of each file by its path. The path of an empty folder ends with a slash."""

_SECONDS = re.compile(rb"""(seconds": )[\d.e+-]+|\b\d+(?:\.\d+)?( s\b)""")
"""The seconds that a file reports about the run that wrote it."""


def tree_of(folder: Path) -> Tree:
    """Return all files and empty folders in ``folder``."""
    tree: Tree = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir():
            tree |= {} if any(path.iterdir()) else {f"{name}/": b""}
        else:
            tree[name] = path.read_bytes()
    return tree


def put(tree: Tree, folder: Path) -> None:
    """Create ``folder`` with the content of ``tree``."""
    folder.mkdir(parents=True)
    for name, data in tree.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir(exist_ok=True)
        else:
            path.write_bytes(data)


def below(tree: Tree, folder: str) -> Tree:
    """Return the part of ``tree`` in ``folder``, with paths relative to it."""
    return {name.removeprefix(f"{folder}/"): data for name, data in tree.items() if name.startswith(f"{folder}/")}


def is_hidden(name: str) -> bool:
    """Return whether a path is in a hidden folder, where a run prepares its result."""
    return any(part.startswith(".") and part.endswith(".partial") for part in PurePosixPath(name).parts)


def untimed(data: bytes) -> bytes:
    """Return a file without the reported seconds, because these differ between two equal runs."""
    return _SECONDS.sub(rb"\1\2", data)


def same(first: bytes | None, second: bytes | None, volatile: bool) -> bool:
    """Return whether two files are equal except for reported seconds.

    If ``volatile``, further values differ between runs, so that only the form of the files is compared.
    """
    if first is None or second is None:
        return first is second
    if not volatile or untimed(first) == untimed(second):
        return untimed(first) == untimed(second)
    try:
        return _form(json.loads(first)) == _form(json.loads(second))
    except ValueError:
        return first[:50] == second[:50] and first[-50:] == second[-50:]


def _form(value: object) -> object:
    if isinstance(value, dict):
        return {key: _form(inner) for key, inner in value.items()}
    return [_form(inner) for inner in value] if isinstance(value, list) else type(value) in (int, float)
