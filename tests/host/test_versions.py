"""Manifests of every version: the written form, and the forms that are still read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from boards.errors import InvalidValueError, MissingValueError, RangeError, SystolicError
from host.contract.manifest import BITSTREAM, manifest_text, parse_manifest
from tests.support.errors import raises
from tests.support.host.manifests import GOLDEN, changed

STYLES = ("systolic", "streaming")


def stored(style: str) -> dict[str, Any]:
    """Return the JSON of a generated manifest of version 2, for the small design of tests/golden."""
    values: dict[str, Any] = json.loads((Path(__file__).parent / "version_2" / f"{style}.json").read_text("utf-8"))
    return values


def written(style: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((GOLDEN / style / "design" / "manifest.json").read_text("utf-8"))
    return values


@pytest.mark.parametrize("style", STYLES)
def test_manifest_of_version_2_is_read_as_the_one_of_version_3(style: str) -> None:
    assert (stored(style)["version"], written(style)["version"]) == (2, 3)
    old, new = parse_manifest(stored(style), "manifest.json"), parse_manifest(written(style), "manifest.json")
    assert old == new
    assert json.loads(manifest_text(old)) == written(style)


@pytest.mark.parametrize("style", STYLES)
def test_manifest_of_version_3_separates_bitstream_and_network(style: str) -> None:
    values = written(style)
    (network,) = values["networks"]
    assert set(values) - {"format", "version", "style", "networks"} <= set(BITSTREAM)
    assert not set(network) & set(BITSTREAM)
    assert {"name", "labels", "inputs", "layers", "heads", "images", "check"} <= set(network)
    assert len(network["inputs"]) == 1


@pytest.mark.parametrize(
    ("path", "value", "kind", "fields"),
    [
        ("networks", ..., MissingValueError, {"what": "'networks'"}),
        ("networks", {}, InvalidValueError, {"where": "manifest.json: networks", "required": "a list"}),
        ("networks", [], RangeError, {"what": "the number of networks", "got": 0, "low": 1, "high": 1}),
        ("networks", [{}, {}], RangeError, {"what": "the number of networks", "got": 2, "low": 1, "high": 1}),
        ("networks.0", 7, InvalidValueError, {"where": "manifest.json: networks[0]", "required": "an object"}),
        ("networks.0.name", ..., MissingValueError, {"where": "manifest.json: networks[0]", "what": "'name'"}),
        ("networks.0.inputs", ..., MissingValueError, {"where": "manifest.json: networks[0]", "what": "'inputs'"}),
        ("networks.0.inputs", [{}, {}], RangeError, {"what": "the number of inputs", "got": 2}),
        ("networks.0.inputs.0", [], InvalidValueError, {"where": "manifest.json: networks[0].inputs[0]"}),
    ],
)
@pytest.mark.parametrize("style", STYLES)
def test_manifest_without_one_network_and_input_is_refused(
    style: str, path: str, value: Any, kind: type[SystolicError], fields: dict[str, Any]
) -> None:
    with raises(kind, **fields):
        parse_manifest(changed(written(style), path, value), "manifest.json")


@pytest.mark.parametrize(
    ("field", "place"),
    [
        ("clock_mhz", "clock_mhz"),
        ("name", "networks[0].name"),
        ("inputs.0.height", "networks[0].inputs[0].height"),
        ("layers.0.output.height", "networks[0].layers[0].output.height"),
    ],
)
@pytest.mark.parametrize("style", STYLES)
def test_error_of_a_value_names_its_place_in_the_file(style: str, field: str, place: str) -> None:
    """Change one value to null in a file of each version. The error names the place that the file has."""
    new = field if field in BITSTREAM else f"networks.0.{field}"
    with raises(InvalidValueError, where=f"manifest.json: {place}", got=None):
        parse_manifest(changed(written(style), new, None), "manifest.json")
    old = field.replace("name", "network").replace("inputs.0", "input")
    with raises(InvalidValueError, where=f"manifest.json: {old.replace('.0', '[0]')}", got=None):
        parse_manifest(changed(stored(style), old, None), "manifest.json")


@pytest.mark.parametrize("style", STYLES)
def test_key_of_the_bitstream_in_a_network_is_not_read(style: str) -> None:
    values = written(style)
    manifest = parse_manifest(changed(values, "networks.0.board", "another"), "manifest.json")
    assert manifest == parse_manifest(values, "manifest.json")
