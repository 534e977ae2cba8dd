"""Greedy delta debugging: reduce a failing case to a smaller one that fails in the same way."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.fuzz.networks.case import Case
from tests.fuzz.networks.trial import Outcome, try_case

Try = Callable[[Case], Outcome]

NEEDED = {"format", "name", "type", "filters", "kernel", "size", "weight_bits", "from", "layers", "input", "height"}
NEEDED |= {"width", "channels", "anchors", "classes", "num", "group_id", "output"}
"""Keys that are never left out, because a network without them is invalid."""

REFERENCES = {"route": ("layers",), "shortcut": ("from",), "sam": ("from",), "scale_channels": ("from",)}
"""The options of darknet sections that name other layers by index."""

PLAIN: dict[str, Any] = {
    "batch": 1,
    "stay": 0.0,
    "fps": None,
    "max_padding": 0,
    "max_pixels": 1,
    "pad_ends": False,
    "external": 0.0,
    "estimated_fifos": True,
    "pins": {},
}
"""The values of a mapping that change nothing."""


def shrunk(case: Case, failure: Outcome, cache: Path, seconds: float) -> Case:
    """Return the smallest case that is found within ``seconds``."""
    end = time.monotonic() + seconds
    return shrunk_by(case, failure, lambda smaller: try_case(smaller, cache), lambda: time.monotonic() > end)


def shrunk_by(case: Case, failure: Outcome, attempt: Try, late: Callable[[], bool] = lambda: False) -> Case:
    """Return the smallest failing case that is found before ``late`` returns True.

    Args:
        attempt: Returns the outcome of a smaller case. Outcomes with the same signature are the same failure.
        late: Returns whether the time is over.
    """

    def fails(smaller: Case) -> bool:
        outcome = attempt(smaller)
        return outcome.state == "failed" and outcome.signature == failure.signature

    if failure.stage in case.checks:
        alone = replace(case, checks=(failure.stage,))
        case = alone if fails(alone) else case
    improved = True
    while improved and not late():
        improved = False
        for smaller in smaller_cases(case):
            if late():
                break
            if fails(smaller):
                case, improved = smaller, True
                break
    return case


def smaller_cases(case: Case) -> Iterator[Case]:
    """Yield every case that is one step smaller or simpler, the largest steps first."""
    exported = case.network["form"] == "exported"
    for network in _fewer_layers(case.network) if exported else _fewer_sections(case.network):
        yield replace(case, network=network)
    yield from _plainer(case)
    for network in _smaller_numbers(dict(case.network)):
        yield replace(case, network=network)


# --- layers ------------------------------------------------------------------------------------------------------


def _fewer_layers(network: Any) -> Iterator[dict[str, Any]]:
    """Yield the network without one layer. Its readers read its first input instead."""
    layers = network["topology"]["layers"]
    for number in reversed(range(len(layers))):
        left = copy.deepcopy(dict(network))
        before = layers[number - 1]["name"] if number else "input"
        source = layers[number].get("from", before)
        source = source[0] if isinstance(source, list) else source
        remaining = left["topology"]["layers"]
        gone = remaining.pop(number).get("name")
        for index, layer in enumerate(remaining):
            if index == number and "from" not in layer:
                layer["from"] = source
            _rename(layer, gone, source)
        if remaining:
            yield left


def _rename(layer: dict[str, Any], gone: str | None, source: str) -> None:
    reads = layer.get("from")
    if isinstance(reads, list):
        layer["from"] = [source if name == gone else name for name in reads]
    elif reads == gone and reads is not None:
        layer["from"] = source


def _fewer_sections(network: Any) -> Iterator[dict[str, Any]]:
    """Yield the network without one section. Its readers read the layer before it.

    The indices in ``REFERENCES`` become absolute, and follow the layers that they name.
    """
    sections = _absolute(network["sections"])
    for number in reversed(range(1, len(sections))):
        remaining = copy.deepcopy([section for index, section in enumerate(sections) if index != number])
        for kind, options in remaining:
            for key in _references(kind):
                if key in options:
                    indices = [int(part) for part in str(options[key]).split(",")]
                    options[key] = ",".join(str(i - (i >= number - 1 and i > 0)) for i in indices)
        if len(remaining) > 1:
            yield {**network, "sections": remaining}


def _references(kind: str) -> tuple[str, ...]:
    """Return the options of a section whose values are indices of layers."""
    return REFERENCES.get(kind, ())


def _absolute(sections: Any) -> list[Any]:
    counted = copy.deepcopy(list(sections))
    for number, (kind, options) in enumerate(counted):
        for key in _references(kind):
            indices = [int(part) for part in str(options[key]).split(",")]
            options[key] = ",".join(str(i + number - 1 if i < 0 else i) for i in indices)
    return counted


# --- values ------------------------------------------------------------------------------------------------------


def _plainer(case: Case) -> Iterator[Case]:
    """Yield cases with simpler weights, pixels or mapping, and the same network."""
    if case.numbers["wild"]:
        yield replace(case, numbers={**case.numbers, "wild": 0.0})
    if case.pixels["kind"] != "noise":
        yield replace(case, pixels={**case.pixels, "kind": "noise"})
    for key, value in PLAIN.items():
        if key in case.mapping and case.mapping[key] not in (value, 0.0):
            yield replace(case, mapping={**case.mapping, key: value})
    if case.style == "streaming" and case.mapping["kind"] != "greedy":
        yield replace(case, mapping={**case.mapping, "kind": "greedy"})
    for kept in ("numbers", "mapping"):
        values = getattr(case, kept)
        if values.get("seed", 1) > 1:
            yield replace(case, **{kept: {**values, "seed": 1}})  # type: ignore[arg-type]


def _smaller_numbers(values: Any) -> Iterator[Any]:
    """Yield the object with one value left out, or one integer made smaller, at any depth."""
    if isinstance(values, dict):
        for key, value in values.items():
            if key not in NEEDED and not isinstance(value, (dict, list)) and key not in ("form", "sections"):
                yield {name: other for name, other in values.items() if name != key}
            for smaller in _smaller_numbers(value):
                yield {**values, key: smaller}
    elif isinstance(values, (list, tuple)):
        for index, value in enumerate(values):
            for smaller in _smaller_numbers(value):
                yield [*values[:index], smaller, *values[index + 1 :]]
    elif isinstance(values, int) and not isinstance(values, bool):
        yield from (smaller for smaller in dict.fromkeys((1, values // 2, values - 1)) if 0 < smaller < values)
