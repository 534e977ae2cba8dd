"""What lies in a folder: path → content."""

from __future__ import annotations

import json
import re
from pathlib import Path, PurePosixPath

Tree = dict[str, bytes]
"""Files with what they hold; a folder that holds nothing ends with a slash."""


_SECONDS = re.compile(rb"""(seconds": )[\d.e+-]+|\b\d+(?:\.\d+)?( s\b)""")
"""What a file says of the run that wrote it."""


def tree_of(folder: Path) -> Tree:
    """Everything below ``folder``."""
    tree: Tree = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir():
            tree |= {} if any(path.iterdir()) else {f"{name}/": b""}
        else:
            tree[name] = path.read_bytes()
    return tree


def put(tree: Tree, folder: Path) -> None:
    """Makes ``folder`` hold ``tree``."""
    folder.mkdir(parents=True)
    for name, data in tree.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir(exist_ok=True)
        else:
            path.write_bytes(data)


def below(tree: Tree, folder: str) -> Tree:
    """The part of ``tree`` in ``folder``, by paths from there."""
    return {name.removeprefix(f"{folder}/"): data for name, data in tree.items() if name.startswith(f"{folder}/")}


def is_hidden(name: str) -> bool:
    """Whether a path is in one of the folders in which runs make things."""
    return any(part.startswith(".") and part.endswith(".partial") for part in PurePosixPath(name).parts)


def untimed(data: bytes) -> bytes:
    """A file without the seconds that it tells of: two runs write the same, and take what they take."""
    return _SECONDS.sub(rb"\1\2", data)


def same(first: bytes | None, second: bytes | None, volatile: bool) -> bool:
    """Whether a file is the other one, but for seconds. volatile: it tells of more that differs between runs, so that
    its form is compared."""
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
