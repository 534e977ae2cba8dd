"""JSON files that people edit: what reading a schedule and reading a folding have in common."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from boards.errors import LONGEST_FAULT, ScheduleError, cut, listed, shown
from scheduler.hardware.ddr import MOST_GBPS, DdrRate

MAX_BYTES = 1 << 20
MOST = 1 << 20
"""No number of an array or of a fold is larger."""


def read_object(text: str, name: str, kind: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The object that ``text`` is, of the schema's format, version and required keys; ScheduleError else.

    name: of the file. kind: what it is to hold, a word for the sentence.
    """
    if len(text) > MAX_BYTES:
        raise ScheduleError(f"{name} has {len(text)} characters; a {kind} has at most {MAX_BYTES}")
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ScheduleError(f"{name} is not JSON: {cut(error, LONGEST_FAULT)}") from error
    kind_name, version = (schema["properties"][key]["const"] for key in ("format", "version"))
    if not isinstance(values, dict) or values.get("format") != kind_name:
        raise ScheduleError(f'{name} is not a {kind}: it has to be an object with "format": "{kind_name}"')
    if values.get("version") != version:
        raise ScheduleError(
            f"{name} has version {shown(values.get('version'))}; this program reads version {version}: "
            f"save the {kind} again"
        )
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
    """The memory under "ddr", None where the file says nothing; ScheduleError where it is none. name: of the file."""
    if "ddr" not in values:
        return None
    ddr = values["ddr"]
    if not isinstance(ddr, dict):
        raise ScheduleError(f"{name}: ddr is an object of gbps and efficiency, not {shown(ddr)}")
    check_keys(ddr, ("gbps", "efficiency"), ("gbps", "efficiency"), f"{name}: ddr")
    for key, value in ddr.items():
        if type(value) not in (int, float):
            raise ScheduleError(f"{name}: ddr.{key} is a number, not {shown(value)}")
    try:
        return DdrRate(float(ddr["gbps"]), float(ddr["efficiency"]))
    except ScheduleError as error:
        raise ScheduleError(f"{name}: ddr: {error}") from error


def check_keys(values: Mapping[str, Any], required: Collection[str], allowed: Sequence[str], place: str) -> None:
    """ScheduleError where a required key is missing or one is there that is not allowed. place: for the sentence."""
    missing, unknown = sorted(set(required) - set(values)), sorted(set(values) - set(allowed))
    if missing or unknown:
        faults = [f"lacks {listed(missing)}"] * bool(missing) + [f"has unknown {listed(unknown)}"] * bool(unknown)
        raise ScheduleError(f"{place}: {' and '.join(faults)}; the keys are {', '.join(allowed)}")


def entries(
    values: Mapping[str, Any], key: str, names: Sequence[str], name: str, kind: str, network: str
) -> list[dict[str, Any]]:
    """The objects of the list ``key``, one for each of ``names`` in their order; ScheduleError else."""
    elements = values[key]
    if not isinstance(elements, list) or [_name(element) for element in elements] != list(names):
        owner = values.get("network")
        hint = "" if owner == network else f" (the file is the {kind} of {shown(owner)})"
        raise ScheduleError(
            f"{name}: {key} has to name {listed(names)} in this order, as {network} does{hint}; "
            f"save the {kind} again and edit that"
        )
    return elements


def _name(entry: object) -> object:
    return entry.get("name") if isinstance(entry, dict) else None
