"""The manifest is untrusted: whatever is in it, it is read or refused in a sentence."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from boards.errors import HostError
from host.manifest import LARGEST_MANIFEST, parse_manifest, read_image, read_manifest

IGNORED = {"estimate", "array", "burst_words", "outstanding", "golden"}
"""For people and for other rooms; the host reads none of it."""


@pytest.fixture(scope="module")
def values(tiny: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((tiny / "manifest.json").read_text("utf-8"))
    return loaded


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every key of every object, as a path."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        if key not in IGNORED:
            yield (*path, key)
            yield from places(inner, (*path, key))


def changed(values: dict[str, Any], path: tuple[Any, ...], new: Any) -> dict[str, Any]:
    """A copy with one place set to ``new``, or removed where that is Ellipsis."""
    made = copy.deepcopy(values)
    at: Any = made
    for key in path[:-1]:
        at = at[key]
    if new is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = new
    return made


def refusal(values: dict[str, Any]) -> str:
    try:
        parse_manifest(values, "manifest.json")
    except HostError as error:
        return str(error)
    return ""


def test_reads_what_the_generator_writes(tiny: Path, values: dict[str, Any]) -> None:
    found = read_manifest(tiny)
    assert found.vlnv == "systolic:cnn:systolic_top:1.0"
    assert found.labels == ("circle", "square", "star")
    assert found.kept_layers() == (len(values["layers"]) - 1,)
    assert found.layer_of_pass(0) == found.layers[0]
    assert found.layer_of_pass(found.passes) is None
    assert found.cycles == sum(layer["compute_cycles"] for layer in values["layers"])


@pytest.mark.parametrize("new", [..., None, -1, 1 << 70, 1e400, float("nan"), "x", "../../etc/passwd", [], {}, True])
def test_whatever_is_changed_it_is_a_manifest_or_refused(values: dict[str, Any], new: Any) -> None:
    said = [refusal(changed(values, path, new)) for path in places(values)]
    refused = [sentence for sentence in said if sentence]
    assert len(refused) > 20
    assert all(sentence.startswith("manifest.json ") for sentence in refused)


@pytest.mark.parametrize(
    ("path", "new", "sentence"),
    [
        (
            ("version",),
            2,
            "has version 2, this host reads version 1; generate the design again with the systolic package",
        ),
        (("maps_bytes",), 1 << 40, "maps_bytes is 1…2147483648, not 1099511627776"),
        (("layers", 0, "output", "offset"), 1 << 30, "the map lies within maps_bytes, not (1073741824,"),
        (("layers", 1, "first_pass"), 0, "first_pass is 1, not 0"),
        (("images", "program"), "../x", "an image stays inside the folder, '../x' does not"),
        (("fit",), "squeeze", "fit is one of plain, letterbox, smooth, not 'squeeze'"),
        (("heads", 0, "layer"), 7, "a head reads one of the layers, not 7"),
        (("heads", 0, "classes"), 4, "a head of 16 channels, not 18"),
        (("labels",), ..., "lacks 'labels'; generate the design again"),
    ],
)
def test_says_what_is_wrong(values: dict[str, Any], path: tuple[Any, ...], new: Any, sentence: str) -> None:
    with pytest.raises(HostError) as caught:
        parse_manifest(changed(values, path, new), "manifest.json")
    assert sentence in str(caught.value)


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"is not a generated design, manifest.json cannot be read"):
        read_manifest(tmp_path)
    (tmp_path / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(HostError, match="is damaged, it is no JSON"):
        read_manifest(tmp_path)
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(HostError, match="is no manifest of a generated design; run systolic generate first"):
        read_manifest(tmp_path)
    with (tmp_path / "manifest.json").open("wb") as file:
        file.truncate(LARGEST_MANIFEST + 1)
    with pytest.raises(HostError, match="a manifest has at most"):
        read_manifest(tmp_path)


def test_an_image_that_is_not_the_designs(tiny: Path, tmp_path: Path) -> None:
    found = read_manifest(tiny)
    assert read_image(tiny, found.program)
    with pytest.raises(HostError, match=r"program.bin cannot be read .*; copy the whole folder to the board"):
        read_image(tmp_path, found.program)
