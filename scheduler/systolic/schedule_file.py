"""Schedule files in JSON, which can be edited by hand and loaded again.

If an edited schedule breaks a rule, loading it raises the error of the rule. A file has this form:

    {"format": "systolic-schedule", "version": 2, "network": …, "array": {…},
     "layers": [{"name": …, "order": …, "tile_columns": …, "overlap": …}, …]}

Two keys are optional: "ddr" is the memory for which the schedule was made, as {"gbps": …, "efficiency": …}, and "batch"
is the number of frames that share the weights, if it is more than 1. "tile_columns" is the number of output columns of
a column tile. The last tile has the remaining columns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from boards.errors import InvalidValueError, RangeError, SeveralFaultsError
from cnn.quantized import QuantizedNetwork
from contract.geometry import ENGINES, as_stored, parameters
from scheduler.hand_edited import DDR_SCHEMA, MOST, check_keys, ddr_of, entries, read_object
from scheduler.hardware.ddr import DdrRate
from scheduler.systolic.array import Array, check
from scheduler.systolic.formats import check_format
from scheduler.systolic.layers import MAX_BATCH
from scheduler.systolic.network.layer import Layer
from scheduler.systolic.rules import broken_rules
from scheduler.systolic.schedule import SystolicSchedule, schedule_workload
from scheduler.systolic.tiling import ORDERS, Tiling, column_tiles
from scheduler.systolic.workload import workload_of

FORMAT, VERSION = "systolic-schedule", 2

LATER = {p.name: p.default for p in parameters() if p.later and p.default is not None}
"""The values of array parameters that are not in older files, because these parameters were introduced later."""

BOUNDS = {p.name: (min(p.least, 1), 1 if p.kind is bool else MOST) for p in parameters() if p.kind is not str}
"""The least and the greatest value of each numeric parameter of an array in a file. Flags are 1 or 0.

``check`` applies the further rules of an array."""

_LAYER_KEYS = {"name": str, "order": str, "tile_columns": int, "overlap": bool, "on_chip": bool}
_TYPES = {str: "a text", int: "a whole number", bool: "true or false"}

LATER_KEYS: Mapping[str, bool] = {"on_chip": False}
"""The values of keys of a layer that are not in older files, because these keys were introduced later."""


SCHEMA: Mapping[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["format", "version", "network", "array", "layers"],
    "additionalProperties": False,
    "properties": {
        "format": {"const": FORMAT},
        "version": {"const": VERSION},
        "network": {"type": "string"},
        "ddr": DDR_SCHEMA,
        "batch": {"type": "integer", "minimum": 1, "maximum": MAX_BATCH},
        "array": {
            "type": "object",
            "required": [p.name for p in parameters() if not p.later],
            "additionalProperties": False,
            "properties": {
                **{
                    name: {"type": "integer", "minimum": least, "maximum": most}
                    for name, (least, most) in BOUNDS.items()
                },
                "dsp": {"type": "string"},
                "engine": {"enum": list(ENGINES)},
            },
        },
        "layers": {
            "type": "array",
            "items": {
                "type": "object",
                "required": [key for key in _LAYER_KEYS if key not in LATER_KEYS],
                "additionalProperties": False,
                "properties": {
                    "name": {"type": "string"},
                    "order": {"enum": list(ORDERS)},
                    "tile_columns": {"type": "integer", "minimum": 1},
                    "overlap": {"type": "boolean"},
                    "on_chip": {"type": "boolean"},
                },
            },
        },
    },
}
"""The JSON Schema of a schedule file, for editors."""


def to_json(schedule: SystolicSchedule, ddr: DdrRate | None = None) -> str:
    """Return a schedule as the text of a JSON file, with one line per key.

    Args:
        schedule: The schedule.
        ddr: The memory for which the schedule was made, or None to leave it out of the file.
    """
    values = {
        "format": FORMAT,
        "version": VERSION,
        "network": schedule.network.name,
        **({"ddr": asdict(ddr)} if ddr else {}),
        **({"batch": schedule.batch} if schedule.batch > 1 else {}),
        "array": as_stored(schedule.array),
        "layers": [
            {
                "name": scheduled.layer.name,
                "order": scheduled.tiling.order,
                "tile_columns": scheduled.tiling.columns.width,
                "overlap": scheduled.tiling.overlap,
                **({"on_chip": True} if scheduled.tiling.on_chip else {}),
            }
            for scheduled in schedule.layers
        ],
    }
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"


def from_json(text: str, network: QuantizedNetwork, name: str = "schedule") -> SystolicSchedule:
    """Return the schedule in a schedule file's ``text``, checked for ``network``.

    Args:
        text: The text of the schedule file.
        network: The network.
        name: The name of the file, for errors.

    Raises:
        SystolicError: The errors of ``read_object`` and ``entries``.
        InvalidValueError: A value has the wrong type, or its key does not allow it.
        RangeError: A number is out of its key's range.
        SeveralFaultsError: The schedule breaks rules.
    """
    values = read_object(text, name, "schedule", SCHEMA)
    array = check(_array(values["array"], name))
    workload = workload_of(network, _batch(values.get("batch", 1), name), array.added_maps)
    layers = workload.layers
    check_format(network, layers, array)
    rows = entries(values, "layers", [layer.name for layer in layers], name, "schedule", network.name)
    tilings = [_tiling(network, layer, array, row, name) for layer, row in zip(layers, rows, strict=True)]
    schedule = schedule_workload(workload, array, tilings)
    errors = broken_rules(schedule)
    if errors:
        raise SeveralFaultsError(errors, f"the schedule of {network.name} is not legal", where=name)
    return schedule


def saved_ddr(text: str, name: str = "schedule") -> DdrRate | None:
    """Return the DDR bandwidth for which the schedule in ``text`` was made, or None if the file does not have it."""
    return ddr_of(read_object(text, name, "schedule", SCHEMA), name)


def saved_fused(text: str, name: str = "schedule") -> bool:
    """Return whether residual adds are fused into the output stage in the schedule in ``text``.

    The network is divided into layers differently then.
    """
    array = read_object(text, name, "schedule", SCHEMA).get("array")
    return isinstance(array, dict) and array.get("added_maps") == 1


def _batch(value: object, name: str) -> int:
    if type(value) is not int or not 1 <= value <= MAX_BATCH:
        raise RangeError("batch", value, 1, MAX_BATCH, integer=True, where=name)
    return value


def _array(values: object, name: str) -> Array:
    if not isinstance(values, dict):
        raise InvalidValueError("array", values, "an object", where=name)
    values = {**LATER, **values}
    keys = [p.name for p in parameters()]
    check_keys(values, keys, keys, f"{name}: array")
    for key, value in values.items():
        least, most = BOUNDS.get(key, (0, 0))
        if key not in BOUNDS:
            if type(value) is not str:
                raise InvalidValueError(f"array.{key}", value, "a text", where=name)
        elif type(value) is not int or not least <= value <= most:
            raise RangeError(f"array.{key}", value, least, most, integer=True, where=name)
    return Array(**{p.name: p.kind(values[p.name]) for p in parameters()})


def _tiling(network: QuantizedNetwork, layer: Layer, array: Array, row: dict[str, Any], name: str) -> Tiling:
    place = f"{name}: {layer.name}"
    row = {**LATER_KEYS, **row}
    check_keys(row, list(_LAYER_KEYS), list(_LAYER_KEYS), place)
    for key, kind in _LAYER_KEYS.items():
        if type(row[key]) is not kind:
            raise InvalidValueError(key, row[key], _TYPES[kind], where=place)
    width, total = int(row["tile_columns"]), layer.out.width
    if not 1 <= width <= total:
        raise RangeError("tile_columns", width, 1, total, where=place)
    return Tiling(column_tiles(network, layer, array, width), row["order"], row["overlap"], row["on_chip"])
