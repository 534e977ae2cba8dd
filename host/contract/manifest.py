"""Reading, checking and writing manifest.json, the description of a generated design.

Version 3 separates the description of a bitstream from the networks that it executes::

    {"format": …, "version": 3, "style": …, "board": …, "array": …,
     "networks": [{"name": …, "labels": …, "inputs": [{…}], "layers": [{…}, …], "outputs": […], "heads": […], …}]}

``networks``, ``inputs`` and ``outputs`` are lists, so that a later generator can write several without a new version.
This host executes bitstreams of one network with one input, and refuses others. Version 2 is still read. It had the
keys of its only network next to the keys of the bitstream, the network's name as ``network`` and its input as
``input``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from boards.errors import (
    ChoiceError,
    DamagedFileError,
    FileAccessError,
    InvalidValueError,
    MismatchError,
    MissingValueError,
    RangeError,
    SystolicError,
    cut,
)
from host.contract.codec import from_json, parse_json, read_json, to_json
from host.contract.parts import MANIFEST, Manifest
from host.contract.streaming import StreamingManifest
from host.contract.systolic import SystolicManifest

VERSION, VERSIONS = 3, (2, 3)
"""The version that is written, and the versions that can be read."""

BITSTREAM = (
    *("board", "clock_mhz", "ddr", "top", "estimate", "burst_words", "outstanding"),
    *("array", "word_bytes", "weight_word_bytes", "pass_words", "pass_fields"),
)
"""Keys that are the same for every network of a bitstream. All other fields are written to ``networks[0]``."""


def check_version(values: Mapping[str, Any], source: str) -> None:
    """Raise ChoiceError if the version of a manifest, given as parsed JSON, is not one of VERSIONS."""
    version = values.get("version")
    if type(version) is not int or version not in VERSIONS:
        remedy = "generate the design again with the systolic package that this host came with"
        raise ChoiceError("the version", version, VERSIONS, where=source, remedy=remedy)


def as_fields(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the JSON values of a manifest, in any of VERSIONS, by the field names of its dataclass.

    MissingValueError, InvalidValueError or RangeError if a list of version 3 is missing, is not a list, or does not
    hold exactly one object.
    """
    if values["version"] == 2:
        return values
    network = _only(values, "networks", "")
    given = {key: values[key] for key in BITSTREAM if key in values}
    given |= {key: value for key, value in network.items() if key not in ("name", "inputs", *BITSTREAM)}
    if "name" in network:
        given["network"] = network["name"]
    return {**given, "input": _only(network, "inputs", "networks[0]")}


def _places(kind: type[Manifest], version: int) -> dict[str, str]:
    """Return {field: its place in manifest.json} of the fields that version 3 does not write at the top."""
    if version == 2:
        return {}
    renamed = {"network": "name", "input": "inputs[0]"}
    names = (field.name for field in fields(kind) if field.name not in BITSTREAM)
    return {name: f"networks[0].{renamed.get(name, name)}" for name in names}


def _only(values: Mapping[str, Any], key: str, place: str) -> Mapping[str, Any]:
    """Return the only object in the list at ``key`` of a JSON object.

    ``place`` is the place of ``values`` for errors.
    """
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


def as_version_3(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a manifest's dataclass as the JSON keys of version 3 that follow "style"."""
    bitstream = {key: values[key] for key in BITSTREAM if key in values}
    network: dict[str, Any] = {}
    for key, value in values.items():
        if key == "network":
            network["name"] = value
        elif key == "input":
            network["inputs"] = [value]
        elif key not in BITSTREAM:
            network[key] = value
    return {**bitstream, "networks": [network]}


FORMAT = "systolic-manifest"
MAX_MANIFEST_BYTES = 16 << 20  # bytes

M = TypeVar("M", bound=Manifest)

MANIFESTS: dict[str, type[Manifest]] = {kind.style: kind for kind in (SystolicManifest, StreamingManifest)}
"""Maps the style that a manifest names to its class."""


def read_manifest(folder: Path) -> Manifest:
    """Return the checked manifest.json of a generated design's folder. An error says what is missing or wrong, and what
    to do."""
    path = folder / MANIFEST
    try:
        values = read_json(path, MAX_MANIFEST_BYTES)
    except OSError as error:
        raise FileAccessError(
            str(folder),
            f"is not a generated design: its {MANIFEST} cannot be read ({error.strerror})",
            "folder",
            remedy="run systolic generate first, or copy the whole folder to the board",
        ) from error
    return parse_manifest(values, str(path))


def manifest_in(files: Mapping[str, bytes]) -> Manifest:
    """Return the manifest among a design's files, given by name, before they are written."""
    return parse_manifest(parse_json(files[MANIFEST], MANIFEST), MANIFEST)


def parse_manifest(values: object, source: str) -> Manifest:
    """Return the checked manifest from parsed JSON. ``source`` names the file in errors."""
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        remedy = "run systolic generate first"
        raise DamagedFileError(source, "is not the manifest of a generated design", remedy=remedy)
    check_version(values, source)
    try:
        kind = _kind(values.get("style"))
        manifest = from_json(kind, as_fields(values), places=_places(kind, values["version"]))
        manifest.validate()
    except SystolicError as error:
        raise error.at(source, "generate the design again") from error
    return manifest


def _kind(style: object) -> type[Manifest]:
    if not isinstance(style, str) or style not in MANIFESTS:
        raise ChoiceError("the style", style, tuple(MANIFESTS))
    return MANIFESTS[style]


def of_style(kind: type[M], manifest: Manifest) -> M:
    """Return the manifest, checked to be of class ``kind``. MismatchError if it has another style."""
    if not isinstance(manifest, kind):
        raise MismatchError(f"the style of {cut(manifest.network)}", manifest.style, kind.style)
    return manifest


def manifest_text(manifest: Manifest) -> str:
    """Return a manifest as the JSON text that ``read_manifest`` reads, with one value per line."""
    head: dict[str, Any] = {"format": FORMAT, "version": VERSION, "style": manifest.style}
    return json.dumps(head | as_version_3(to_json(manifest)), indent=1, ensure_ascii=False) + "\n"


def is_design(folder: Path) -> bool:
    """Return whether a folder holds the manifest of a generated design of any version, even if its other files are
    missing.

    Used before a folder is replaced.
    """
    try:
        values = read_json(folder / MANIFEST, MAX_MANIFEST_BYTES)
    except (OSError, DamagedFileError, FileAccessError, RangeError):
        return False
    return isinstance(values, dict) and values.get("format") == FORMAT
