"""The manifest is untrusted: whatever is in it, it is read or refused in a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from boards.errors import HostError
from host.contract.manifest import LARGEST_MANIFEST, of_style, parse_manifest, read_manifest
from host.contract.parts import LARGEST_BUFFER, read_image
from host.contract.systolic import SystolicManifest
from tests.host.manifests import changed, places, refusal


@pytest.fixture(scope="module")
def values(tiny: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((tiny / "manifest.json").read_text("utf-8"))
    return loaded


def test_reads_what_the_generator_writes(tiny: Path, values: dict[str, Any]) -> None:
    found = of_style(SystolicManifest, read_manifest(tiny))
    assert found.vlnv == "systolic:cnn:systolic_top:1.0"
    assert found.labels == ("circle", "square", "star")
    assert found.output_layers == (len(values["layers"]) - 1,)
    assert found.layer_of_pass(0) == found.layers[0]
    assert found.layer_of_pass(found.passes) is None
    layers = sum(layer["modelled_cycles"] for layer in values["layers"])
    assert found.cycles == layers + values["program_cycles"] == pytest.approx(sum(found.pass_cycles))
    assert values["program_cycles"] > 0


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
            1,
            "has version 1, version 2 is read here; generate the design again with the systolic package",
        ),
        (("maps_bytes",), 1 << 40, "maps_bytes is 1…2147483648, not 1099511627776"),
        (("layers", 0, "output", "offset"), 1 << 30, "the map lies within maps_bytes, not (1073741824,"),
        (("layers", 1, "first_pass"), 0, "first_pass is 1, not 0"),
        (("images", "program", "path"), "../x", "an image stays inside the folder, '../x' does not"),
        (("fit",), "squeeze", "fit is one of plain, letterbox, smooth, not 'squeeze'"),
        (("heads", 0, "layer"), 7, "a head reads one of the layers, not 7"),
        (("heads", 0, "classes"), 4, "a head of 16 channels, not 18"),
        (("format",), "other", "is no manifest of a generated design; run systolic generate first"),
        (("style",), "dataflow", "style is 'systolic' or 'streaming', not 'dataflow'"),
        (("clock_mhz",), 0, "clock_mhz is 0…2000, not 0.0"),
        (("array", "map_ports"), 3, "array.map_ports is one of 1, 2, 4, not 3"),
        (("array", "weight_ports"), 2, "each weight port has an image, not 1"),
        (("array", "lanes"), 0, "array.lanes is 1…256, not 0"),
        (("word_bytes",), 0, "word_bytes is 1…512, not 0"),
        (("weight_word_bytes",), 0, "weight_word_bytes is 1…512, not 0"),
        (("images", "program", "crc32"), 1 << 32, "images.program.crc32 is 0…4294967295, not 4294967296"),
        (("layers",), [], "there are 1…4096 layers, not 0"),
        (
            ("pass_fields", "out_base"),
            64,
            "pass_fields are {'in_base': 0, 'in_buffer': 10, 'out_base': 54, 'out_buffer': 59}, not {",
        ),
        (("pass_fields", "in_buffer"), -1, "pass_fields.in_buffer is 0…1023, not -1"),
        (("pass_words",), 2000, "pass_words is 1…1024, not 2000"),
        (("input", "pixel_bytes"), 2, "a pixel has 4 bytes, not 2"),
        (("input", "row_bytes"), 71, "a row holds its pixels, not 71"),
        (("input", "row_bytes"), 96, "input.bytes is height · row_bytes, not 1120"),
        (("input", "bytes"), 0, "input: the map lies within maps_bytes, not (0, 0)"),
        (("input", "offset"), -16, "input: the map lies within maps_bytes, not (-16,"),
        (("input", "offset"), 8, "input: offset is whole words, not 8"),
        (("input", "datatype"), "INT17", "input: datatype is INT1…INT16 or UINT1…UINT16, not 'INT17'"),
        (("input", "value_bytes"), 2, "input: value_bytes is 1, not 2"),
        (("input", "value_bits"), 4, "input: value_bits is 4, 8 or 16 and at least 8, not 4"),
        (("input", "value_bits"), 12, "input: value_bits is 4, 8 or 16 and at least 8, not 12"),
        (("input", "scale"), 0, "input: scale is above 0, not 0.0"),
        (("input", "scale"), float("inf"), "input.scale is a finite number, not inf"),
        (("input", "channels"), 0, "input: channels, height, width are 1…65536, not (0,"),
        (
            ("layers", 0, "output", "height"),
            1 << 17,
            "conv1: channels, height, width are 1…65536, not (8, 131072",
        ),
        (("layers", 0, "output", "bytes"), 1024, "conv1: bytes is 1008, the size of its rows, not 1024"),
        (("layers", 0, "output", "channels"), 17, "conv1: blocks hold all channels, not 1"),
        (("layers", 0, "last_pass"), -1, "conv1: last_pass is at least 0, not -1"),
        (("passes",), 3, "passes is 2, not 3"),
        (("batch",), 0, "batch is 1…64 frames, not 0"),
        (("batch",), 65, "batch is 1…64 frames, not 65"),
        (("batch",), "3", "batch is 1…64 frames, not '3'"),
        (("batch",), True, "batch is 1…64 frames, not True"),
        (("batch",), 64, "input: the maps of 64 frames lie within maps_bytes, not (0, 1120)"),
        (("images", "program", "path"), "/etc/passwd", "an image stays inside the folder, '/etc/passwd' does not"),
        (("images", "program", "path"), "a\\b", r"an image stays inside the folder, 'a\\b' does not"),
        (("labels",), ..., "lacks 'labels'; generate the design again"),
    ],
)
def test_says_what_is_wrong(values: dict[str, Any], path: tuple[Any, ...], new: Any, sentence: str) -> None:
    with pytest.raises(HostError) as caught:
        parse_manifest(changed(values, path, new), "manifest.json")
    assert sentence in str(caught.value)


def test_four_bits_want_an_even_number_of_lanes(values: dict[str, Any]) -> None:
    array = values["array"] | {"lanes": 15, "columns": 30, "weight_ports": 1, "weight_words": 2}
    images = values["images"] | {"weights": values["images"]["weights"][:1]}
    odd = values | {"array": array, "images": images, "word_bytes": 15, "weight_word_bytes": 30}
    said = refusal(changed(changed(odd, ("input", "datatype"), "UINT4"), ("input", "value_bits"), 4))
    assert "input: two 4-bit lanes are a byte, not 15" in said


def test_without_a_head_the_last_map_is_read_back(values: dict[str, Any]) -> None:
    found = of_style(SystolicManifest, parse_manifest(changed(values, ("heads",), []), "manifest.json"))
    assert found.output_layers == (1,)
    assert found.layer_of_pass(1) == found.layers[1]


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"is not a generated design, manifest.json cannot be read"):
        read_manifest(tmp_path)
    (tmp_path / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(HostError, match="is damaged: it is nested too deeply; copy or generate the design again"):
        read_manifest(tmp_path)
    for text in ("{", '{"format": NaN}', "9" * 5000):
        (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(HostError, match="is damaged, it is no JSON"):
            read_manifest(tmp_path)
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(HostError, match="is no manifest of a generated design; run systolic generate first"):
        read_manifest(tmp_path)
    with (tmp_path / "manifest.json").open("wb") as file:
        file.truncate(LARGEST_MANIFEST + 1)
    with pytest.raises(HostError, match=r"has \d+ bytes, at most 16777216 are read; generate the design again"):
        read_manifest(tmp_path)


def test_an_image_that_is_not_the_designs(tiny: Path, tmp_path: Path) -> None:
    found = of_style(SystolicManifest, read_manifest(tiny)).images
    assert read_image(tiny, found.program)
    with pytest.raises(HostError, match=r"program.bin cannot be read .*; copy the whole folder to the board"):
        read_image(tmp_path, found.program)
    program = tmp_path / found.program.path
    program.parent.mkdir()
    program.write_bytes(b"of another design")
    with pytest.raises(
        HostError, match=r"program.bin has checksum \w+, manifest.json says \w+: the folder holds files of"
    ):
        read_image(tmp_path, found.program)
    with program.open("wb") as file:
        file.truncate(LARGEST_BUFFER + 1)
    with pytest.raises(
        HostError, match=r"program.bin has \d+ bytes, at most 2147483648 are read; generate the design again"
    ):
        read_image(tmp_path, found.program)
