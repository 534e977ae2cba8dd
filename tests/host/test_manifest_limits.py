"""Each number of a systolic manifest: the last that is taken, and the sentence at the next one."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from host.contract.manifest import of_style, parse_manifest
from host.contract.systolic import SystolicManifest
from systolic.files import write
from tests.host.manifests import changed, refusal
from tests.support.accelerators import GEOMETRIES, design_of, networks


@cache
def text(geometry: str, network: str) -> str:
    """A manifest that is generated; nothing is compiled for it."""
    with TemporaryDirectory() as folder:
        write(design_of(networks()[network], GEOMETRIES[geometry], 1), Path(folder) / "design")
        return (Path(folder) / "design" / "manifest.json").read_text("utf-8")


def values(geometry: str = "odd rows", network: str = "pools") -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(text(geometry, network))
    return loaded


def read(content: dict[str, Any]) -> SystolicManifest:
    return of_style(SystolicManifest, parse_manifest(content, "manifest.json"))


def edited(path: tuple[Any, ...], edit: Callable[[Any], Any]) -> dict[str, Any]:
    content: Any = values()
    place = content
    for key in path[:-1]:
        place = place[key]
    return changed(content, path, edit(place[path[-1]]))


@pytest.mark.parametrize(
    ("path", "taken", "refused", "sentence"),
    [
        (("clock_mhz",), 1999.9, 2000, "clock_mhz is 0…2000, not 2000"),
        (("clock_mhz",), 1, 0, "clock_mhz is 0…2000, not 0"),
        (("burst_words",), 256, 257, "burst_words is 1…256, not 257"),
        (("outstanding",), 1, 0, "outstanding is 1…256, not 0"),
        (("layers", 0, "modelled_cycles"), 1 << 48, (1 << 48) + 1, "modelled_cycles is 0…281474976710656, not"),
        (("layers", 0, "modelled_cycles"), 0, -1, "modelled_cycles is 0…281474976710656, not -1"),
    ],
)
def test_a_number_within_its_limits(path: tuple[Any, ...], taken: Any, refused: Any, sentence: str) -> None:
    assert refusal(changed(values(), path, taken)) == ""
    assert sentence in refusal(changed(values(), path, refused))


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        (("pass_words",), "pass_words is "),
        (("word_bytes",), "word_bytes is lanes · bits / 8, "),
        (("weight_word_bytes",), "weight_word_bytes is "),
        (("input", "bytes"), "input.bytes is height · row_bytes"),
        (("input", "row_bytes"), "a row of a plane is whole words"),
        (("layers", 0, "output", "bytes"), ": bytes is "),
        (("layers", 1, "first_pass"), ": first_pass is "),
        (("passes",), "passes is "),
        (("maps_bytes",), "maps_bytes is "),
        (("layers", 0, "output", "value_bytes"), ": value_bytes is "),
        (("layers", 0, "output", "value_bits"), ": value_bits is 4, 8 or 16 and at least "),
    ],
)
def test_a_number_that_others_decide(path: tuple[Any, ...], sentence: str) -> None:
    """One more and one less are refused; where other words rely on it, for what they say."""
    assert refusal(values()) == ""
    more, less = (refusal(edited(path, lambda value, step=step: value + step)) for step in (1, -1))  # type: ignore[misc]
    assert more
    assert less
    assert sentence in more + less


def test_a_clock_is_a_number_whole_or_not() -> None:
    for clock, wanted in ((250, 250.0), (0.5, 0.5), (1999, 1999.0)):
        found = read(changed(values(), ("clock_mhz",), clock)).clock_mhz
        assert (type(found), found) == (float, wanted)
    assert "clock_mhz is a finite number, not " in refusal(changed(values(), ("clock_mhz",), 1 << 1000))


def test_a_start_is_one_frame_unless_it_says_another() -> None:
    assert "batch" not in values()
    assert read(values()).batch == 1


def test_what_the_passes_take_is_what_their_layers_take() -> None:
    """Fetching is shared by all passes, a layer's cycles by its own."""
    content = values()
    manifest = read(content)
    cycles, fetch = manifest.pass_cycles, content["program_cycles"] / manifest.passes
    assert len(cycles) == manifest.passes
    for layer in manifest.layers:
        own = cycles[layer.first_pass : layer.last_pass + 1]
        assert sum(own) - len(own) * fetch == pytest.approx(layer.modelled_cycles)
        assert len(set(own)) == 1
        assert all(manifest.layer_of_pass(number) == layer for number in range(layer.first_pass, layer.last_pass + 1))


def test_without_heads_the_last_layer_is_read() -> None:
    manifest = read({**values(), "heads": []})
    assert manifest.output_layers == (len(manifest.layers) - 1,)


@pytest.mark.parametrize(("network", "is_one"), [("classifier", True), ("pools", False), ("one position", True)])
def test_a_classifier_ends_with_one_position_of_several_values(network: str, is_one: bool) -> None:
    manifest = read(values(network=network))
    output = manifest.layers[manifest.output_layers[0]].output
    assert manifest.is_classifier == is_one == (output.channels > 1 and (output.height, output.width) == (1, 1))
