"""A folding as a JSON file, which users can edit by hand and load again. Loading checks all constraints of rules.py.

{"format": "systolic-folding", "version": 1, "network": …,
 "blocks": [{"name": …, "pe": …, "simd": …, "m": …, "pixels": …, "style": …, "memory": …, "ram": …, "multiplier": …,
             "pad_in": …, "pad_out": …, "depths": […]}, …]}

A block needs only its name. A missing key has the default of ``graph.Fold``. "depths" are the depths in words of the
FIFOs before the block's inputs, with 0 for the minimum depth. The optional key "ddr": {"gbps": …, "efficiency": …} is
the DDR rate that the folding was made for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from boards.errors import ChoiceError, InvalidValueError, RangeError, SeveralFaultsError
from scheduler.hand_edited import DDR_SCHEMA, MOST, check_keys, ddr_of, entries, read_object
from scheduler.hardware.ddr import DdrRate
from scheduler.streaming import graph as g
from scheduler.streaming.rules import MEMORIES, MULTIPLIERS, RAMS, STYLES, check

FORMAT, VERSION = "systolic-folding", 1
DEEPEST = 1 << 24
"""The maximum depth of a FIFO in words."""

_CHOICES = {"style": STYLES, "memory": MEMORIES, "ram": RAMS, "multiplier": MULTIPLIERS}
_LEAST = {"pad_in": 0, "pad_out": 0}
_FOLD = tuple(f.name for f in fields(g.Fold))
_BLOCK = ("name", *_FOLD, "depths")


def _property(key: str) -> Mapping[str, Any]:
    if key in _CHOICES:
        return {"enum": list(_CHOICES[key])}
    return {"type": "integer", "minimum": _LEAST.get(key, 1), "maximum": MOST}


SCHEMA: Mapping[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["format", "version", "network", "blocks"],
    "additionalProperties": False,
    "properties": {
        "format": {"const": FORMAT},
        "version": {"const": VERSION},
        "network": {"type": "string"},
        "ddr": DDR_SCHEMA,
        "blocks": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name"],
                "additionalProperties": False,
                "properties": {
                    "name": {"type": "string"},
                    **{key: _property(key) for key in _FOLD},
                    "depths": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": DEEPEST}},
                },
            },
        },
    },
}
"""JSON Schema of the file, for editors."""


def to_json(folding: g.StreamingFolding, ddr: DdrRate | None = None) -> str:
    """Return a folding as the text of a JSON file, with one line per block. Keys with default values are left out.

    Args:
        folding: The folding to save.
        ddr: The DDR rate that the folding was made for.
    """
    set_depths = {(index, port): depth for index, port, depth in folding.depths}
    blocks = []
    for index, (block, fold) in enumerate(zip(folding.graph.blocks, folding.folds, strict=True)):
        depths = [set_depths.get((index, port), 0) for port in range(len(block.inputs))]
        changed = {key: value for key, value in asdict(fold).items() if value != getattr(g.Fold(), key)}
        blocks.append({"name": block.name, **changed, **({"depths": depths} if any(depths) else {})})
    head: dict[str, Any] = {"format": FORMAT, "version": VERSION, "network": folding.graph.name}
    head |= {"ddr": asdict(ddr)} if ddr else {}
    lines = ",\n  ".join(json.dumps(block, ensure_ascii=False) for block in blocks)
    return json.dumps(head, ensure_ascii=False)[:-1] + f',\n "blocks": [\n  {lines}\n]}}\n'


def from_json(text: str, graph: g.StreamGraph, name: str = "folding") -> g.StreamingFolding:
    """Return the folding in a folding file's ``text``, checked against the streaming graph ``graph``.

    Args:
        text: The contents of the file.
        graph: The graph to fold.
        name: The name of the file, for errors.

    Raises:
        ChoiceError, RangeError, InvalidValueError: A key has a value that is not allowed.
        SeveralFaultsError: The folding violates constraints.
        SystolicError: ``read_object`` or ``entries`` found another fault in the file.
    """
    values = read_object(text, name, "folding", SCHEMA)
    blocks = entries(values, "blocks", [block.name for block in graph.blocks], name, "folding", graph.name)
    folds = tuple(_fold(block, f"{name}: {block['name']}") for block in blocks)
    depths = [
        (index, port, depth)
        for index, block in enumerate(blocks)
        for port, depth in enumerate(_depths(block, graph.blocks[index], f"{name}: {block['name']}"))
        if depth > 0
    ]
    try:
        return check(g.StreamingFolding(graph, folds, tuple(depths)))
    except SeveralFaultsError as error:
        raise error.at(name) from error


def saved_ddr(text: str, name: str = "folding") -> DdrRate | None:
    """Return the DDR bandwidth for which the folding in ``text`` was made, or None if the file has no such key."""
    return ddr_of(read_object(text, name, "folding", SCHEMA), name)


def _fold(block: dict[str, Any], place: str) -> g.Fold:
    check_keys(block, ["name"], _BLOCK, place)
    values = {key: block[key] for key in _FOLD if key in block}
    for key, value in values.items():
        if key in _CHOICES:
            if not isinstance(value, str) or value not in _CHOICES[key]:
                raise ChoiceError(key, value, _CHOICES[key], where=place)
        elif type(value) is not int or not _LEAST.get(key, 1) <= value <= MOST:
            raise RangeError(key, value, _LEAST.get(key, 1), MOST, integer=True, where=place)
    return g.Fold(**values)


def _depths(values: dict[str, Any], block: g.Block, place: str) -> list[int]:
    depths = values.get("depths", [0] * len(block.inputs))
    are_depths = isinstance(depths, list) and all(type(d) is int and 0 <= d <= DEEPEST for d in depths)
    if not are_depths or len(depths) != len(block.inputs):
        required = f"a list of {len(block.inputs)} whole numbers between 0 and {DEEPEST}, one per input"
        raise InvalidValueError("depths", depths, required, where=place)
    return list(depths)
