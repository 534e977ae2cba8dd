"""JSON files that people edit: what reading a schedule and reading a folding have in common."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from boards.errors import (
    DamagedFileError,
    InvalidValueError,
    MismatchError,
    MissingValueError,
    RangeError,
    UnknownKeyError,
    listed,
)
from boards.json_text import parse_json
from scheduler.hardware.ddr import MOST_GBPS, DdrRate

MAX_BYTES = 1 << 20
MOST = 1 << 20
"""No number of an array or of a fold is larger."""


def read_object(text: str, name: str, kind: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object that ``text`` is, of the schema's format, version and required keys.

    name: of the file. kind: what it is to hold, a word for the sentence.

    Raises:
        DamagedFileError: The text is too long, is not JSON, or is not an object of the schema's format.
        MismatchError: It has another version.
        UnknownKeyError, MissingValueError: As of ``check_keys``.
    """
    if len(text) > MAX_BYTES:
        raise DamagedFileError(name, f"has {len(text):,} characters; a {kind} has at most {MAX_BYTES:,}")
    values = parse_json(text, name)
    kind_name, version = (schema["properties"][key]["const"] for key in ("format", "version"))
    if not isinstance(values, dict) or values.get("format") != kind_name:
        raise DamagedFileError(name, f'is not a {kind}, an object with "format": "{kind_name}"')
    if values.get("version") != version:
        remedy = f"save the {kind} again"
        raise MismatchError("the version", values.get("version"), version, where=name, remedy=remedy)
    check_keys(values, schema["required"], list(schema["properties"]), name)
    return values


DDR_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "required": ["gbps", "efficiency"],
    "additionalProperties": False,
    "properties": {
        "gbps": {"type": "number", "exclusiveMinimum": 0, "maximum": MOST_GBPS},
        "efficiency": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    },
}
"""JSON Schema of a ``DdrRate``, for editors."""


def ddr_of(values: Mapping[str, Any], name: str) -> DdrRate | None:
    """Return the memory under "ddr", None if the file does not have it. name: of the file.

    Raises InvalidValueError or RangeError if it is not a memory.
    """
    if "ddr" not in values:
        return None
    ddr = values["ddr"]
    if not isinstance(ddr, dict):
        raise InvalidValueError("ddr", ddr, "an object of gbps and efficiency", where=name)
    check_keys(ddr, ("gbps", "efficiency"), ("gbps", "efficiency"), f"{name}: ddr")
    for key, value in ddr.items():
        if type(value) not in (int, float):
            raise InvalidValueError(f"ddr.{key}", value, "a number", where=name)
    try:
        return DdrRate(float(ddr["gbps"]), float(ddr["efficiency"]))
    except RangeError as error:
        raise error.at(f"{name}: ddr") from error


def check_keys(values: Mapping[str, Any], required: Collection[str], allowed: Sequence[str], place: str) -> None:
    """Check the keys of an object, which is at ``place``.

    Raises UnknownKeyError if a key is not allowed, else MissingValueError if a required one is missing.
    """
    missing, unknown = sorted(set(required) - set(values)), sorted(set(values) - set(allowed))
    if unknown:
        raise UnknownKeyError(unknown, allowed, where=place)
    if missing:
        raise MissingValueError(f"the key {listed(missing)}", f"the keys are {', '.join(allowed)}", where=place)


def entries(
    values: Mapping[str, Any], key: str, names: Sequence[str], name: str, kind: str, network: str
) -> list[dict[str, Any]]:
    """Return the objects of the list ``key``, one for each of ``names`` in their order; MismatchError if it has others.

    The error is about the network if the file is of another one, else about the names.
    """
    elements = values[key]
    found = [_name(element) for element in elements] if isinstance(elements, list) else elements
    if found != list(names):
        remedy = f"save the {kind} again and edit that"
        owner = values.get("network")
        if owner != network:
            raise MismatchError("the network", owner, network, where=name, remedy=remedy)
        raise MismatchError(f"the list of names in {key}", found, list(names), where=name, remedy=remedy)
    return list(elements)


def _name(entry: object) -> object:
    return entry.get("name") if isinstance(entry, dict) else None
