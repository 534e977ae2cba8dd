"""Checks for the JSON files that people edit: schedules (systolic style) and foldings (streaming style)."""

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
from scheduler.hardware.ddr import MAX_GBPS, DdrRate

MAX_BYTES = 1 << 20
"""The maximum length of a file, in characters."""

MOST = 1 << 20
"""The maximum of every number that describes an array or a fold."""


def read_object(text: str, name: str, kind: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON object in a schedule or folding file's ``text`` after checks of its format, version and keys
    against ``schema``.

    Args:
        text: The file's content.
        name: The file's name, for errors.
        kind: A noun for errors: "schedule" or "folding".
        schema: The JSON Schema of the file.

    Raises:
        DamagedFileError: The text is too long, is not JSON, or is not an object of the schema's format.
        MismatchError: The version differs from the schema's.
        UnknownKeyError: A key is not in the schema.
        MissingValueError: A required key is missing.
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
        "gbps": {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_GBPS},
        "efficiency": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    },
}
"""JSON Schema of a ``DdrRate``. Text editors use it to check a file while it is edited."""


def ddr_of(values: Mapping[str, Any], name: str) -> DdrRate | None:
    """Return the DDR bandwidth stored under the key "ddr" of a schedule or folding file, or None without this key.

    Args:
        values: The file's object.
        name: The file's name, for errors.

    Raises:
        InvalidValueError: "ddr" is not an object, or one of its values is not a number.
        RangeError: The bandwidth or the efficiency is out of range.
        UnknownKeyError, MissingValueError: "ddr" has other keys than gbps and efficiency.
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
    """Raise an error if a JSON object of an edited file lacks a required key or has a key that is not allowed.

    Args:
        values: The object.
        required: Keys that the object must have.
        allowed: All keys that the object may have.
        place: The object's place for errors: the file, and the part of it.

    Raises:
        UnknownKeyError: A key is not allowed. This error has priority.
        MissingValueError: A required key is missing.
    """
    missing, unknown = sorted(set(required) - set(values)), sorted(set(values) - set(allowed))
    if unknown:
        raise UnknownKeyError(unknown, allowed, where=place)
    if missing:
        raise MissingValueError(f"the key {listed(missing)}", f"the keys are {', '.join(allowed)}", where=place)


def entries(
    values: Mapping[str, Any], key: str, names: Sequence[str], name: str, kind: str, network: str
) -> list[dict[str, Any]]:
    """Return the list of objects under ``key`` of an edited file, with one object per layer or block. Their names must
    be ``names`` in this order.

    Args:
        values: The file's object.
        key: The key of the list, for example "layers" or "blocks".
        names: The required names: of all layers, or of all blocks.
        name: The file's name, for errors.
        kind: A noun for errors: "schedule" or "folding".
        network: The name of the network that the file must be made for.

    Raises:
        MismatchError: The names differ. The error reports the network if the file was made for another network,
            otherwise both lists of names.
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
