"""Completion in a shell. It lists folders instead of importing other packages, so that it answers at once."""

from __future__ import annotations

import os

import systolic
from systolic.styles.streaming.arguments import SEARCHES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Completer = Callable[..., list[str]]

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(systolic.__file__)))  # noqa: PTH100, PTH120
"""The folder that contains the packages."""

NETWORK_ENDINGS = (".cfg", ".onnx", ".json", ".h")


def board_names() -> list[str]:
    """Return the names of the boards."""
    return sorted(name.removesuffix(".toml") for name in os.listdir(f"{ROOT}/boards") if name.endswith(".toml"))  # noqa: PTH208


def network_names() -> list[str]:
    """Return the names of the built-in networks."""
    folder = f"{ROOT}/cnn/models"
    return sorted(
        name
        for name in os.listdir(folder)  # noqa: PTH208
        if any(os.path.exists(f"{folder}/{name}/{name}.{ending}") for ending in ("cfg", "json"))  # noqa: PTH110
    )


COMPLETERS = {
    "board": (board_names, (".toml",)),
    "network": (network_names, NETWORK_ENDINGS),
    "design": (list, ()),
    "folding": (lambda: list(SEARCHES), (".json",)),
}
"""Kind of value → (function that returns the names to offer, endings of the files to offer)."""


def completer(complete: str | tuple[str, ...]) -> Completer:
    """Return the function that ``argcomplete`` calls with the beginning of a word; it returns the completions.

    Args:
        complete: A key of ``COMPLETERS``, or the words to offer.
    """

    def words(prefix: str, **_: Any) -> list[str]:
        if not isinstance(complete, str):
            return _matching(complete, prefix)
        names, endings = COMPLETERS[complete]
        return [*_matching(names(), prefix), *_files(prefix, endings)]

    return words


def _matching(words: Iterable[str], prefix: str) -> list[str]:
    return [word for word in words if word.startswith(prefix)]


def _files(prefix: str, endings: tuple[str, ...]) -> list[str]:
    """Return the folders, and the files with these endings, whose paths begin with ``prefix``."""
    folder, name = os.path.split(prefix)
    try:
        entries = sorted(os.scandir(folder or "."), key=lambda entry: entry.name)
    except OSError:
        return []
    found = []
    for entry in entries:
        if entry.name.startswith(name) and (name or not entry.name.startswith(".")):
            path = os.path.join(folder, entry.name)  # noqa: PTH118
            if entry.is_dir():
                found.append(f"{path}/")
            elif entry.name.endswith(endings) and endings:
                found.append(path)
    return found
