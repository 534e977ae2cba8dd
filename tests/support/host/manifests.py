"""Changed manifests, and the errors that they are refused with."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from boards.errors import SystolicError
from host.contract.manifest import as_fields, of_style, parse_manifest
from host.contract.systolic import SystolicManifest

GOLDEN = Path(__file__).parents[2] / "golden"
SOURCE = "manifest.json"


@cache
def _text(style: str) -> str:
    return (GOLDEN / style / "design" / SOURCE).read_text("utf-8")


def golden_values(style: str = "systolic") -> dict[str, Any]:
    """Return the JSON of a small design.

    The systolic one has two layers of 8 × 8 after an input of 16 × 16 pixels, on six rows of 8 × 8; the pipeline has
    three layers.
    """
    return fields_of_text(_text(style))


def fields_of_text(text: str | bytes) -> dict[str, Any]:
    """Return the JSON of a manifest as a manifest of version 2: every key of its class at the top."""
    values = json.loads(text)
    head = {"format": values["format"], "version": 2, "style": values["style"]}
    return head | dict(as_fields(values))


def manifest_fields(folder: Path) -> dict[str, Any]:
    """Return ``fields_of_text`` of a design's folder. What a test changes and writes there is read as version 2."""
    return fields_of_text((folder / SOURCE).read_text("utf-8"))


def read_systolic_manifest(values: dict[str, Any]) -> SystolicManifest:
    """Return the manifest that the JSON of a systolic design describes."""
    return of_style(SystolicManifest, parse_manifest(values, SOURCE))


def keys_of(path: str) -> tuple[Any, ...]:
    """Return the keys of ``layers.0.name``."""
    return tuple(int(key) if key.isdigit() else key for key in path.split("."))


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the keys that lead to every value of every object and list."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def changed(values: dict[str, Any], path: str | tuple[Any, ...], new: Any) -> dict[str, Any]:
    """Return a copy with the value at ``path`` set to ``new``, or removed if that is Ellipsis."""
    made = copy.deepcopy(values)
    keys = keys_of(path) if isinstance(path, str) else path
    at: Any = made
    for key in keys[:-1]:
        at = at[key]
    if new is ...:
        del at[keys[-1]]
    else:
        at[keys[-1]] = new
    return made


def refusal(values: dict[str, Any]) -> SystolicError | None:
    """Return the error with which a manifest is refused, None if it is read."""
    try:
        parse_manifest(values, SOURCE)
    except SystolicError as error:
        return error
    return None


def subject_of(error: SystolicError) -> str:
    """Return the place within the manifest and the name of what is wrong: ``conv1: offset``."""
    place = error.where.removeprefix(SOURCE).removeprefix(": ")
    name = getattr(error, "what", None) or getattr(error, "subject", "")
    return f"{place}: {name}" if place else str(name)


Row = tuple[str, list[Any], list[Any], type[SystolicError], str]
"""A path, values that are taken there, values that are refused, and the class and subject of the refusal."""


def check_rows(values: dict[str, Any], rows: Iterable[Row]) -> None:
    """Check what a manifest takes at each path, and what it refuses."""
    for path, taken, refused, kind, subject in rows:
        for value in taken:
            error = refusal(changed(values, path, value))
            assert error is None, f"{path} = {value!r}: {error}"
        for value in refused:
            error = refusal(changed(values, path, value))
            found = (type(error), subject_of(error)) if error else (None, "")
            assert found == (kind, subject), f"{path} = {value!r}: {error}"
