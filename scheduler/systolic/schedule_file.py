"""A schedule as JSON: saved, edited by hand, loaded again. What a hand breaks is said by the rule's own sentence.

{"format": "systolic-schedule", "version": 1, "network": …, "array": {…},
 "layers": [{"name": …, "order": …, "strip_columns": …, "overlap": …}, …]}

and "batch": frames that share the weights' passage, where they are more than one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from boards.errors import ScheduleError
from cnn.quantized import QuantizedNetwork
from scheduler.hand_edited import MOST, check_keys, entries, read_object
from scheduler.systolic.array import Array, check
from scheduler.systolic.formats import check_format
from scheduler.systolic.layers import MAX_BATCH, Job, lower
from scheduler.systolic.rules import broken_layers
from scheduler.systolic.tiling import Strip, SystolicSchedule, row_words
from scheduler.systolic.work import ORDERS, Cut, Way, tiling_of, way_of

FORMAT, VERSION = "systolic-schedule", 1

LATER: Mapping[str, int] = {"bits": 8, "weight_words": 1, "map_depth": 0}
"""What an array of a file saved before there was a choice has."""

_LAYER_KEYS = {"name": str, "order": str, "strip_columns": int, "overlap": bool, "on_chip": bool}

LATER_KEYS: Mapping[str, bool] = {"on_chip": False}
"""The same of a layer."""


def _least(number: str) -> int:
    return 0 if number == "map_depth" else 1


SCHEMA: Mapping[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["format", "version", "network", "array", "layers"],
    "additionalProperties": False,
    "properties": {
        "format": {"const": FORMAT},
        "version": {"const": VERSION},
        "network": {"type": "string"},
        "batch": {"type": "integer", "minimum": 1, "maximum": MAX_BATCH},
        "array": {
            "type": "object",
            "required": [f.name for f in fields(Array) if f.name not in LATER],
            "additionalProperties": False,
            "properties": {
                f.name: {"type": "string"}
                if f.name == "dsp"
                else {"type": "integer", "minimum": _least(f.name), "maximum": MOST}
                for f in fields(Array)
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
                    "strip_columns": {"type": "integer", "minimum": 1},
                    "overlap": {"type": "boolean"},
                    "on_chip": {"type": "boolean"},
                },
            },
        },
    },
}
"""JSON Schema of the file, for editors."""


def to_json(schedule: SystolicSchedule) -> str:
    layers = []
    for tiling in schedule.tilings:
        way = way_of(schedule.network, tiling, schedule.array)
        layers.append(
            {
                "name": tiling.job.name,
                "order": way.order,
                "strip_columns": way.cut.width,
                "overlap": way.overlap,
                **({"on_chip": True} if way.on_chip else {}),
            }
        )
    values = {
        "format": FORMAT,
        "version": VERSION,
        "network": schedule.network.name,
        **({"batch": schedule.batch} if schedule.batch > 1 else {}),
        "array": asdict(schedule.array),
        "layers": layers,
    }
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"


def from_json(text: str, network: QuantizedNetwork, name: str = "schedule") -> SystolicSchedule:
    """The schedule of ``text`` for ``network``; ScheduleError names the key or the rule. ``name``: of the file."""
    values = read_object(text, name, "schedule", SCHEMA)
    array = check(_array(values["array"], name))
    check_format(network, array)
    jobs = lower(network, _batch(values.get("batch", 1), name))
    layers = entries(values, "layers", [job.name for job in jobs], name, "schedule", network.name)
    ways = [_way(network, job, array, layer, name) for job, layer in zip(jobs, layers, strict=True)]
    problems = broken_layers(network, jobs, array, ways)
    if problems:
        raise ScheduleError(f"{name} is not a legal schedule of {network.name}:\n  " + "\n  ".join(problems))
    tilings = tuple(tiling_of(network, job, array, way) for job, way in zip(jobs, ways, strict=True))
    return SystolicSchedule(network, array, tilings)


def _batch(value: object, name: str) -> int:
    if type(value) is not int or not 1 <= value <= MAX_BATCH:
        raise ScheduleError(f"{name}: batch is an integer of 1…{MAX_BATCH}, not {value!r}")
    return value


def _array(values: object, name: str) -> Array:
    if not isinstance(values, dict):
        raise ScheduleError(f"{name}: array is an object, not {values!r}")
    values = {**LATER, **values}
    known = [f.name for f in fields(Array)]
    check_keys(values, known, known, f"{name}: array")
    for key, value in values.items():
        text = key == "dsp"
        if not (type(value) is str if text else type(value) is int and _least(key) <= value <= MOST):
            wanted = "a text" if text else f"an integer of {_least(key)}…{MOST}"
            raise ScheduleError(f"{name}: array.{key} is {wanted}, not {value!r}")
    return Array(**values)


def _way(network: QuantizedNetwork, job: Job, array: Array, layer: dict[str, Any], name: str) -> Way:
    where = f"{name}: {job.name}"
    layer = {**LATER_KEYS, **layer}
    check_keys(layer, list(_LAYER_KEYS), list(_LAYER_KEYS), where)
    for key, kind in _LAYER_KEYS.items():
        if type(layer[key]) is not kind:
            raise ScheduleError(f"{where}: {key} is of type {kind.__name__}, not {layer[key]!r}")
    width, total = int(layer["strip_columns"]), job.out.width
    if not 1 <= width <= total:
        raise ScheduleError(f"{where}: strip_columns is 1…{total}, not {width}")
    return Way(cut_at(network, job, array, width), layer["order"], layer["overlap"], layer["on_chip"])


def cut_at(network: QuantizedNetwork, job: Job, array: Array, width: int) -> Cut:
    """``job`` in strips of ``width`` columns, the last one with what is left."""
    strips = tuple(Strip(x, min(width, job.out.width - x)) for x in range(0, job.out.width, width))
    words = [row_words(network, job, array, strip) for strip in strips]
    return Cut(strips, (words[0], max(words[1:-1], default=words[0]), words[-1]), sum(words))
