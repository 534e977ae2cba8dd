"""The versions of manifest.json, and how each becomes the fields of the classes of a manifest.

Version 3 keeps apart what a bitstream is and what it executes::

    {"format": …, "version": 3, "style": …, "board": …, "array": …,
     "networks": [{"name": …, "labels": …, "inputs": [{…}], "layers": [{…}, …], "outputs": […], "heads": […], …}]}

``networks``, ``inputs`` and ``outputs`` are lists, so that a later generator can write several without another version.
This host executes bitstreams of one network with one input, and refuses others. Version 2 had the keys of the only
network next to those of the bitstream, its name as ``network`` and its only input as ``input``; it is still read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boards.errors import ChoiceError, InvalidValueError, MissingValueError, RangeError

VERSION, VERSIONS = 3, (2, 3)
"""The version that is written, and those that are read."""

BITSTREAM = (
    *("board", "clock_mhz", "ddr", "top", "estimate", "burst_words", "outstanding"),
    *("array", "word_bytes", "weight_word_bytes", "pass_words", "pass_fields"),
)
"""Keys of a bitstream; the other ones are those of a network."""


def check_version(values: Mapping[str, Any], source: str) -> None:
    """Raise ChoiceError if the version of a manifest is not one of VERSIONS."""
    version = values.get("version")
    if type(version) is not int or version not in VERSIONS:
        remedy = "generate the design again with the systolic package that this host came with"
        raise ChoiceError("the version", version, VERSIONS, where=source, remedy=remedy)


def as_fields(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values of a manifest of one of VERSIONS as the fields of its class.

    Raises MissingValueError, InvalidValueError or RangeError if a list of version 3 is missing, is not a list, or does
    not have one object.
    """
    if values["version"] == 2:
        return values
    network = _only(values, "networks", "")
    given = {key: values[key] for key in BITSTREAM if key in values}
    given |= {key: value for key, value in network.items() if key not in ("name", "inputs", *BITSTREAM)}
    if "name" in network:
        given["network"] = network["name"]
    return {**given, "input": _only(network, "inputs", "networks[0]")}


def _only(values: Mapping[str, Any], key: str, place: str) -> Mapping[str, Any]:
    """Return the object that is the only element of the list ``key``; ``place`` is where ``values`` are."""
    if key not in values:
        raise MissingValueError(f"{key!r}", where=place)
    where, elements = f"{place}.{key}".lstrip("."), values[key]
    if not isinstance(elements, list):
        raise InvalidValueError("the value", elements, "a list", where=where)
    if len(elements) != 1:
        raise RangeError(f"the number of {key}", len(elements), 1, 1, where=place)
    if not isinstance(elements[0], Mapping):
        raise InvalidValueError("the value", elements[0], "an object", where=f"{where}[0]")
    return elements[0]


def as_version_3(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a manifest's class as the keys of version 3 that follow "style"."""
    bitstream = {key: fields[key] for key in BITSTREAM if key in fields}
    network: dict[str, Any] = {}
    for key, value in fields.items():
        if key == "network":
            network["name"] = value
        elif key == "input":
            network["inputs"] = [value]
        elif key not in BITSTREAM:
            network[key] = value
    return {**bitstream, "networks": [network]}
