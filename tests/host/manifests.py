"""Manifests that are not what they should be."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from boards.errors import HostError
from host.contract.manifest import parse_manifest


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every key of every object, as a path."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def changed(values: dict[str, Any], path: tuple[Any, ...], new: Any) -> dict[str, Any]:
    """A copy with one place set to ``new``, or removed where that is Ellipsis."""
    made = copy.deepcopy(values)
    at: Any = made
    for key in path[:-1]:
        at = at[key]
    if new is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = new
    return made


def refusal(values: dict[str, Any]) -> str:
    """The sentence, or nothing where it is a manifest."""
    try:
        parse_manifest(values, "manifest.json")
    except HostError as error:
        return str(error)
    return ""
