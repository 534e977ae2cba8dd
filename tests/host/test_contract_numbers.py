"""Numbers of the contract at the last that is taken and at the first that is not, and what is worked out of them."""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from boards.errors import HostError
from host.contract.codec import OneOf, Range, from_json, parse_json, read_bounded, read_json
from host.contract.manifest import MANIFESTS, is_design, manifest_in, of_style, parse_manifest, read_manifest
from host.contract.parts import Image, NetworkHead, read_image
from host.contract.simulation_library import find_library, kept_in, sources, sources_key
from host.contract.streaming import Packet, StreamingManifest
from host.contract.systolic import SystolicManifest, _check_on_chip, _check_region
from host.contract.tensors import check_input, fill_pixels, planes_of, to_floats
from host.contract.uploads import _whole, read_streaming
from tests.host.manifests import changed, refusal

GOLDEN = Path(__file__).parents[1] / "golden"


@cache
def text(style: str) -> str:
    return (GOLDEN / style / "design" / "manifest.json").read_text("utf-8")


def values(style: str = "systolic") -> dict[str, Any]:
    """A small design's: two layers of 8 × 8 behind 16 × 16 pixels on six rows of 8 × 8; or three of a pipeline."""
    loaded: dict[str, Any] = json.loads(text(style))
    return loaded


def read(content: dict[str, Any]) -> SystolicManifest:
    return of_style(SystolicManifest, parse_manifest(content, "manifest.json"))


# --- each number by itself --------------------------------------------------------------------------------------------

MOST_BYTES, COUNTED = 1 << 31, 1 << 48
LIMITS: dict[str, list[tuple[tuple[Any, ...], int, int]]] = {
    "systolic": [
        (("burst_words",), 1, 256),
        (("outstanding",), 1, 256),
        (("passes",), 1, 1 << 20),
        (("batch",), 1, 64),
        (("estimate", "dsp"), 0, COUNTED),
        (("estimate", "lutram"), 0, COUNTED),
        (("word_bytes",), 1, 512),
        (("weight_word_bytes",), 1, 512),
        (("maps_bytes",), 1, MOST_BYTES),
        (("pass_words",), 1, 1024),
        (("program_cycles",), 0, COUNTED),
        (("pass_fields", "in_base"), 0, 1023),
        (("pass_fields", "out_buffer"), 0, 1023),
        (("input", "offset"), -MOST_BYTES, MOST_BYTES),
        (("input", "row_bytes"), -MOST_BYTES, MOST_BYTES),
        (("layers", 0, "node"), 0, 1 << 20),
        (("layers", 0, "input_node"), 0, 1 << 20),
        (("layers", 0, "macs"), 0, COUNTED),
        (("layers", 0, "compute_cycles"), 0, COUNTED),
        (("layers", 0, "output", "turn"), 0, 1024),
        (("layers", 0, "output", "map_buffer"), 1, 2),
        (("layers", 0, "output", "place"), 0, 1 << 30),
        (("array", "rows"), 1, 1024),
        (("array", "columns"), 1, 1024),
        (("array", "lanes"), 1, 256),
        (("array", "save_rows"), 1, 1024),
        (("array", "weight_ports"), 1, 64),
        (("array", "weight_words"), 1, 64),
        (("array", "row_depth"), 0, 1 << 24),
        (("array", "map_depth"), 0, 1 << 24),
        (("array", "sum_bits"), 9, 32),
        (("images", "program", "crc32"), 0, (1 << 32) - 1),
    ],
    "streaming": [
        (("packet_in", "bytes"), 1, (1 << 26) - 1),
        (("frames_per_start",), 1, (1 << 31) - 1),
        (("fifos", 0, "depth"), 1, 1 << 31),
        (("fifos", 0, "bits"), 1, 1 << 20),
        (("layers", 0, "pixels"), 1, 1 << 17),
        (("layers", 0, "stream_channels"), 1, 1 << 17),
        (("outputs", 0, "layer"), 0, 1 << 20),
        (("blocks", 0, "macs_per_cycle"), 0, COUNTED),
    ],
}


@pytest.mark.parametrize(("style", "case"), [(style, case) for style, cases in LIMITS.items() for case in cases])
def test_a_whole_number_has_a_least_and_a_greatest(style: str, case: tuple[tuple[Any, ...], int, int]) -> None:
    """By itself: whether it goes with the others is another question."""
    path, low, high = case
    kind: Any = MANIFESTS[style]
    for taken in (low, high):
        from_json(kind, changed(values(style), path, taken))
    for beyond in (low - 1, high + 1):
        with pytest.raises(HostError) as refused:
            from_json(kind, changed(values(style), path, beyond))
        assert f"{path[-1]} is " in str(refused.value)


CHOICES: list[tuple[str, tuple[Any, ...], set[Any]]] = [
    ("systolic", ("array", "map_ports"), {1, 2, 4}),
    ("systolic", ("array", "bits"), {4, 8, 16}),
    ("systolic", ("array", "upscale"), {1, 2}),
    ("systolic", ("array", "table_depth"), {0, 256}),
    ("systolic", ("array", "table_slopes"), {0, 1}),
    ("systolic", ("array", "windows"), {0, 1}),
    ("systolic", ("array", "late_offsets"), {0, 1}),
    ("systolic", ("array", "map_products"), {0, 1}),
    ("systolic", ("array", "added_maps"), {0, 1}),
    ("systolic", ("array", "dsp_clock"), {1, 2}),
    ("systolic", ("array", "dsp_products"), {0, 6}),
    ("systolic", ("array", "dsp_registers"), {0, 1}),
    ("streaming", ("packet_out", "beat"), {1, 2, 4, 8, 16, 32, 64, 128}),
    ("streaming", ("outputs", 0, "value_bytes"), {1, 2, 4}),
]


@pytest.mark.parametrize(("style", "path", "choices"), CHOICES)
def test_a_choice_is_one_of_a_few(style: str, path: tuple[Any, ...], choices: set[int]) -> None:
    kind: Any = MANIFESTS[style]
    for number in (*range(-1, 20), 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257):
        content = changed(values(style), path, number)
        if number in choices:
            from_json(kind, content)
        else:
            with pytest.raises(HostError, match=f"{path[-1]} is one of "):
                from_json(kind, content)


def test_what_an_array_does_not_say_it_has_not() -> None:
    array = read(values()).array
    assert (array.upscale, array.table_depth, array.table_slopes, array.windows, array.late_offsets) == (1, 0, 0, 0, 0)
    assert (array.map_products, array.added_maps) == (0, 0)
    assert (array.dsp_clock, array.dsp_products, array.dsp_registers) == (1, 0, 0)
    assert array.sum_bits == 32
    content = values()
    del content["program_cycles"]
    whole = read(content)
    assert (whole.program_cycles, whole.outputs, whole.batch, whole.layers[0].last_input_node) == (0, (), 1, None)
    assert whole.input.zero_point == 0
    assert whole.cycles == 784 + 345
    assert read(values()).cycles == 174 + 784 + 345
    assert read(values()).pass_cycles == (87 + 784, 87 + 345)


# --- numbers that go with each other ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "taken", "refused", "sentence"),
    [
        (("pass_words",), [64], [63, 65], "pass_words is 64"),
        (("word_bytes",), [8], [4, 16], "word_bytes is lanes · bits / 8, 8"),
        (("weight_word_bytes",), [8], [4, 16], "weight_word_bytes is 8"),
        (("array", "weight_ports"), [1], [2], "each weight port has an image"),
        (("array", "columns"), [8, 16], [4, 12], "columns is a multiple of lanes"),
        (("array", "row_depth"), [2, 1024], [0, 1023], "depths are at least 1, and row_depth even"),
        (("array", "weight_depth"), [1], [0], "depths are at least 1"),
        (("array", "kept_depth"), [1], [0], "depths are at least 1"),
        (("array", "chunk"), [1], [0], "depths are at least 1"),
        (("array", "channel_tiles"), [1], [0], "depths are at least 1"),
        (("array", "map_depth"), [32], [31], "conv1: a bank's rows take 32 words of map_depth"),
        (("input", "pixel_bytes"), [4], [3], "a pixel has 4 bytes"),
        (("input", "blocks"), [1], [2], "1 planes hold the channels of the input"),
        (("input", "bytes"), [1024], [1016], "input.bytes is height · row_bytes"),
        (("input", "value_bits"), [8, 16], [4, 12], "input: value_bits is 4, 8 or 16 and at least 8"),
        (("input", "value_bytes"), [1], [2], "input: value_bytes is 1"),
        (("layers", 0, "output", "turn"), [0, 5], [6], "conv1: a map_buffer has a turn below 6"),
        (("layers", 0, "output", "bytes"), [1024], [1016, 1032], "conv1: bytes is 1024, the size of its rows"),
        (("layers", 0, "output", "channels"), [1, 16], [17], "conv1: blocks hold all channels"),
        (("layers", 0, "output", "channels"), [1], [0], "channels, height, width are 1…65536"),
        (
            ("layers", 0, "output", "datatype"),
            ["INT8", "UINT8", "INT1"],
            ["INT0", "INT08"],
            "INT1…INT16 or UINT1…UINT16",
        ),
        (("layers", 0, "output", "scale"), [1e-30, 1e30], [0.0, -1.0], "conv1: scale is above 0"),
        (("layers", 0, "output", "offset"), [1024, 2048], [1028], "conv1: offset is whole words"),
        (("layers", 0, "output", "offset"), [0, 3072], [3080], "conv1: the map lies within maps_bytes"),
        (("layers", 0, "first_pass"), [0], [1, -1], "conv1: first_pass is 0"),
        (("layers", 1, "first_pass"), [1], [0, 2], "conv2: first_pass is 1"),
        (("layers", 1, "last_pass"), [1], [0], "conv2: last_pass is at least 1"),
        (("layers", 1, "input_node"), [0, 2], [1, 3], "conv2: input_node is of the input or a layer before"),
        (("layers", 1, "last_input_node"), [0, 2], [1, 3], "conv2: last_input_node is of the input or a layer before"),
        (("layers", 1, "added_node"), [], [0, 2], "conv2: where a map is added, added_maps is 1"),
        (("layers", 1, "output", "pitch"), [256], [248], "conv2: pitch is whole words, at least 256 bytes"),
        (("layers", 1, "output", "pitch"), [256], [260], "conv2: pitch is whole words, at least 256 bytes"),
        (("layers", 1, "output", "turn"), [], [0], "conv2: without a map_buffer there is no turn"),
        (("passes",), [2], [1, 3], "passes is 2"),
        (("maps_bytes",), [4096], [4104], "maps_bytes is 4096, where the last map ends"),
        (("outputs",), [[0], [1], [0, 1]], [[2]], "outputs are layers"),
        (("heads", 0, "layer"), [1], [0], "a head of 16 channels"),
        (("heads", 0, "layer"), [1], [2], "a head reads one of the layers"),
        (("heads", 0, "layer"), [1], [4096, -1, True], "heads[0].layer is the index of a layer"),
        (("clock_mhz",), [1e-9, 1999.9], [0, 2000], "clock_mhz is 0…2000"),
        (("ddr", "gbps"), [1e-3, 1e4], [9e-4, 10001.0], "ddr.gbps is 0.001…10000.0"),
        (("ddr", "efficiency"), [1e-3, 1.0], [9e-4, 1.001], "ddr.efficiency is 0.001…1"),
    ],
)
def test_a_number_goes_with_the_others(
    path: tuple[Any, ...], taken: list[Any], refused: list[Any], sentence: str
) -> None:
    for value in taken:
        assert refusal(changed(values(), path, value)) == ""
    for value in refused:
        assert sentence in refusal(changed(values(), path, value))


def test_batches_of_maps_end_with_the_last_frame() -> None:
    """Two frames behind each other: the second layer's maps end at 2048 + 2 · 2048."""
    content = {**values(), "batch": 2, "maps_bytes": 6144}
    assert refusal(content) == ""
    assert "maps_bytes is 6144, where the last map ends" in refusal({**content, "maps_bytes": 6152})
    assert "the maps of 2 frames lie within maps_bytes" in refusal({**content, "maps_bytes": 6136})


def test_layers_that_the_host_reads() -> None:
    """Those of the heads, each once, then those that are named; the last where neither is."""
    for heads, outputs, wanted in (
        ([], [], (1,)),
        ([], [0], (0,)),
        ([], [1, 0, 1], (1, 0)),
        (values()["heads"], [0], (1, 0)),
        (values()["heads"], [], (1,)),
    ):
        assert read({**values(), "heads": heads, "outputs": outputs}).output_layers == wanted
    manifest = read(values())
    layers: list[Any] = [None, *manifest.layers, None]
    assert [manifest.layer_of_pass(index) for index in (-1, 0, 1, 2)] == layers
    assert [image.path for image in manifest.files] == [
        *("data/weights_0.bin", "data/requantisers.bin", "data/program.bin", "data/maps.bin", "data/layers.bin")
    ]


def test_a_classifier_reads_one_place_of_several_values_and_has_no_head() -> None:
    def ending(channels: int, height: int, width: int, **others: Any) -> SystolicManifest:
        content = values()
        sides = {"channels": channels, "height": height, "width": width, "bytes": 32 * height * width}
        content["layers"][1]["output"] |= sides
        content |= {"heads": [], "maps_bytes": 2048 + sides["bytes"], **others}
        return read(content)

    for sides, is_one in (
        ((14, 1, 1), True),
        ((2, 1, 1), True),
        ((1, 1, 1), False),
        ((14, 2, 1), False),
        ((14, 1, 2), False),
    ):
        assert ending(*sides).is_classifier is is_one
    assert not ending(14, 1, 1, outputs=[0, 1]).is_classifier
    assert not ending(14, 1, 1, heads=values()["heads"]).is_classifier
    assert not read(values()).is_classifier


def test_a_head_reads_up_to_8_maps() -> None:
    head = values()["heads"][0]
    bare = {key: value for key, value in head.items() if key != "layer"}
    assert NetworkHead.from_values(head, "heads[0]").layers == (1,)
    for count in (1, 8):
        several = NetworkHead.from_values({**bare, "layers": list(range(count))}, "heads[0]")
        assert several.layers == tuple(range(count))
        assert NetworkHead.from_values(several.to_values(), "heads[0]") == several
    for count in (0, 9):
        with pytest.raises(HostError, match=r"heads\[0\].layers are 1…8 indices of layers"):
            NetworkHead.from_values({**bare, "layers": list(range(count))}, "heads[0]")
    for index in (4095, 4096):
        if index < 4096:
            NetworkHead.from_values({**bare, "layer": index}, "heads[0]")
        else:
            with pytest.raises(HostError, match=r"heads\[0\].layer is the index of a layer, not 4096"):
                NetworkHead.from_values({**bare, "layer": index}, "heads[0]")


def region(**numbers: Any) -> Any:
    usual = {"channels": 3, "height": 7, "width": 4, "datatype": "INT4", "scale": 1.0, "shape": (3, 7, 4), "blocks": 2}
    usual |= {"value_bytes": 1, "value_bits": 4, "offset": 0, "bytes": 448, "map_buffer": 1, "turn": 0, "place": None}
    return SimpleNamespace(**{**usual, **numbers})


def whole(**numbers: Any) -> Any:
    usual = {"lanes": 8, "word_bytes": 8, "batch": 1, "maps_bytes": 448, "array": SimpleNamespace(rows=3, map_depth=24)}
    return SimpleNamespace(**{**usual, **numbers})


def test_a_bank_holds_a_group_s_rows() -> None:
    """Seven rows of eight words on three banks: three rows each at the most."""
    _check_on_chip("it", region(value_bits=8), whole())
    for array in (SimpleNamespace(rows=3, map_depth=23), SimpleNamespace(rows=2, map_depth=24)):
        with pytest.raises(HostError, match=r"it: a bank's rows take (24|32) words of map_depth, not 2[34]"):
            _check_on_chip("it", region(value_bits=8), whole(array=array))
    with pytest.raises(HostError, match="it: a map_buffer has a turn below 3, not None"):
        _check_on_chip("it", region(turn=None), whole())
    _check_on_chip("it", region(map_buffer=None, turn=None), whole())
    with pytest.raises(HostError, match="it: without a map_buffer there is no place, not 3"):
        _check_on_chip("it", region(map_buffer=None, turn=None, place=3), whole())


@pytest.mark.parametrize(("place", "depth"), [(None, 32), (0, 32), (5, 37)])
def test_of_maps_side_by_side_a_bank_holds_the_last_row_alone(place: int | None, depth: int) -> None:
    """Rows of eight words that lie twelve apart, three of them in a bank."""
    beside = region(bytes=7 * 96, value_bits=8, place=place)
    _check_on_chip("it", beside, whole(array=SimpleNamespace(rows=3, map_depth=depth)))
    with pytest.raises(HostError, match=rf"it: a bank's rows take {depth} words of map_depth, not {depth - 1}"):
        _check_on_chip("it", beside, whole(array=SimpleNamespace(rows=3, map_depth=depth - 1)))


@pytest.mark.parametrize(
    ("numbers", "manifest", "sentence"),
    [
        ({}, {}, ""),
        ({}, {"lanes": 7}, "two 4-bit lanes are a byte"),
        ({"value_bits": 8}, {"lanes": 7}, ""),
        ({"datatype": "INT5"}, {}, "value_bits is 4, 8 or 16 and at least 5"),
        ({"datatype": "INT9", "value_bits": 16}, {}, "value_bytes is 2"),
        ({"datatype": "UINT16", "value_bits": 16, "value_bytes": 2}, {}, ""),
        ({"datatype": "INT17", "value_bits": 16, "value_bytes": 2}, {}, "datatype is INT1…INT16 or UINT1…UINT16"),
        ({"blocks": 0}, {}, "blocks are 1…65536"),
        ({"blocks": 65536}, {}, ""),
        ({"blocks": 65537}, {}, "blocks are 1…65536"),
        ({"bytes": 0}, {}, "the map lies within maps_bytes"),
        ({"offset": -8}, {"maps_bytes": 9999}, "the map lies within maps_bytes"),
        ({}, {"batch": 2, "maps_bytes": 896}, ""),
        ({}, {"batch": 2, "maps_bytes": 895}, "the maps of 2 frames lie within maps_bytes"),
        ({"shape": (65536, 1, 1)}, {}, ""),
        ({"shape": (65537, 1, 1)}, {}, "channels, height, width are 1…65536"),
        ({"shape": (1, 0, 1)}, {}, "channels, height, width are 1…65536"),
        ({"scale": float("inf")}, {}, "scale is above 0"),
    ],
)
def test_a_region_by_itself(numbers: dict[str, Any], manifest: dict[str, Any], sentence: str) -> None:
    if not sentence:
        _check_region("it", region(**numbers), whole(**manifest))
        return
    with pytest.raises(HostError) as refused:
        _check_region("it", region(**numbers), whole(**manifest))
    assert f"it: {sentence}" in str(refused.value)


@pytest.mark.parametrize(("size", "beat", "beats"), [(1, 8, 8), (8, 8, 8), (9, 8, 16), (9, 1, 9), (1000, 128, 1024)])
def test_a_packet_is_whole_beats(size: int, beat: int, beats: int) -> None:
    assert Packet(bytes=size, beat=beat).beat_bytes == beats


@pytest.mark.parametrize(
    ("path", "taken", "refused", "sentence"),
    [
        (("passes",), [1], [2], "a frame is one pass and a batch"),
        (("batch",), [1], [2], "a frame is one pass and a batch"),
        (("blocks",), [], [[]], "there is at least one block"),
        (("outputs",), [], [[]], "at least one output leaves"),
        (("packet_in", "bytes"), [1536], [1535, 1537], "packet_in.bytes is 1536, a byte a value"),
        (("packet_out", "bytes"), [9216, 9217], [9215], "lies within packet_out"),
        (("outputs", 0, "offset"), [0], [-2], "offset is at least 0"),
        (("outputs", 0, "offset"), [0], [1, 3], "offset is whole values"),
        (("outputs", 0, "stream_channels"), [36], [35], "stream_channels holds its channels"),
        (("layers", 0, "pixels"), [1], [2], "words and rows hold whole pixels"),
        (("layers", 0, "lanes"), [1, 2, 8], [3, 16], "first: "),
        (("input", "datatype"), ["UINT8"], ["INT8"], "input: datatype is UINT8"),
        (
            ("layers", 0, "output", "datatype"),
            ["INT32", "UINT1", "BIPOLAR"],
            ["INT33", "INT0", "TERNARY2"],
            "INT1…INT32",
        ),
    ],
)
def test_a_pipeline_s_numbers_go_together(
    path: tuple[Any, ...], taken: list[Any], refused: list[Any], sentence: str
) -> None:
    for value in taken:
        assert refusal(changed(values("streaming"), path, value)) == ""
    for value in refused:
        assert sentence in refusal(changed(values("streaming"), path, value))


def test_the_slowest_block_takes_some_cycles() -> None:
    blocks = values("streaming")["blocks"]
    for cycles, fits in ((0, False), (1, True), ((1 << 48) - 1, True), (1 << 48, False)):
        said = refusal({**values("streaming"), "blocks": [{**block, "modelled_cycles": cycles} for block in blocks]})
        assert ("the slowest block takes 1…2^48 cycles" in said) is not fits
    manifest = of_style(StreamingManifest, parse_manifest(values("streaming"), "m"))
    assert manifest.cycles == max(block["modelled_cycles"] for block in blocks)
    assert [image.path for image in manifest.files] == ["data/in.bin", "data/expected.bin"]
    assert [image.path for image in replace(manifest, check=None).files] == []


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_file_is_read_up_to_its_largest_size(tmp_path: Path) -> None:
    path = tmp_path / "it.json"
    path.write_bytes(b"[1, 2]")
    assert read_bounded(path, 6) == b"[1, 2]"
    assert read_json(path, 6) == [1, 2]
    with pytest.raises(HostError, match="has 6 bytes, at most 5 are read; generate the design again"):
        read_bounded(path, 5)
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(HostError, match="is no file; generate the design again"):
            read_bounded(tmp_path / name, 99)
    for data, why in ((b"{", "it is no JSON"), (b"[NaN]", "NaN is no number"), (b"[" * 100_000, "nested too deeply")):
        with pytest.raises(HostError, match=why):
            parse_json(data, "it")


def test_an_image_has_its_checksum_and_stays_inside(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"abcdef")
    image = Image("a.bin", zlib.crc32(b"abcdef"))
    assert read_image(tmp_path, image) == b"abcdef"
    with pytest.raises(HostError, match=rf"has checksum {zlib.crc32(b'abcdef'):08x}, manifest.json says 00000001"):
        read_image(tmp_path, Image("a.bin", 1))
    with pytest.raises(HostError, match=r"cannot be read \(No such file or directory\); copy the whole folder"):
        read_image(tmp_path, Image("b.bin", 1))
    for path in ("/a.bin", "../a.bin", "x/../a.bin", "a\\b", "a\nb"):
        with pytest.raises(HostError, match="an image stays inside the folder"):
            Image(path, 0)


@pytest.mark.parametrize(("size", "word", "rows"), [(6, 2, 3), (6, 6, 1), (6, 1, 6), (6, 4, 0), (0, 2, 0)])
def test_an_image_is_whole_words(size: int, word: int, rows: int, tmp_path: Path) -> None:
    data = bytes(range(size))
    (tmp_path / "a.bin").write_bytes(data)
    image = Image("a.bin", zlib.crc32(data))
    manifest: Any = SimpleNamespace(images=[SimpleNamespace(path="a.bin", crc32=image.crc32, word_bytes=word)])
    if rows:
        assert _whole(tmp_path, image, word).tolist() == [list(data[i : i + word]) for i in range(0, size, word)]
        assert read_streaming(tmp_path, manifest)[0].shape == (rows, word)
    else:
        with pytest.raises(HostError, match=f"a.bin holds {size} bytes, and not whole words of {word}; copy it again"):
            _whole(tmp_path, image, word)


def test_a_manifest_names_its_format_version_and_style(tmp_path: Path) -> None:
    for content, sentence in (
        ([], "is no manifest of a generated design"),
        ({**values(), "format": "other"}, "is no manifest of a generated design"),
        ({**values(), "version": 1}, "has version 1, version 2 is read here"),
        ({**values(), "version": 3}, "has version 3, version 2 is read here"),
        ({**values(), "style": "other"}, "style is 'systolic' or 'streaming', not 'other'"),
        ({**values(), "style": 3}, "style is 'systolic' or 'streaming', not 3"),
    ):
        with pytest.raises(HostError) as refused:
            parse_manifest(content, "manifest.json")
        assert sentence in str(refused.value)
    assert manifest_in({"manifest.json": text("systolic").encode()}) == read(values())
    with pytest.raises(HostError, match=r"is not a generated design, manifest\.json cannot be read"):
        read_manifest(tmp_path)
    with pytest.raises(HostError, match="a design of the streaming style is wanted, tiny is of the systolic style"):
        of_style(StreamingManifest, read(values()))


@pytest.mark.parametrize(
    ("content", "is_one"),
    [(None, False), ("[]", False), ("{", False), ('{"format": "systolic-manifest"}', True), ('{"format": "x"}', False)],
)
def test_a_folder_is_a_design_by_its_format_alone(content: str | None, is_one: bool, tmp_path: Path) -> None:
    """Of any version, whole or not."""
    if content is not None:
        (tmp_path / "manifest.json").write_text(content)
    assert is_design(tmp_path) is is_one


def test_ranges_and_choices_say_what_they_are() -> None:
    assert [Range(1, 3).holds(value) for value in (0, 1, 3, 4)] == [False, True, True, False]
    assert (str(Range(1, 3)), str(Range(0, 9, "frames")), str(OneOf((1, 2)))) == ("1…3", "0…9 frames", "one of 1, 2")


# --- libraries --------------------------------------------------------------------------------------------------------


def test_a_library_is_the_newest_of_these_sources(tmp_path: Path) -> None:
    for name, content in (("src/a.h", "a" * 99_999), ("src/b.cpp", "b"), ("simulation/c.cpp", "c")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    (tmp_path / "src" / "folder").mkdir()
    files = sources(tmp_path)
    assert [path.name for path in files] == ["c.cpp", "a.h", "b.cpp"]
    key = sources_key(files)
    assert len(key) == 16
    folder = kept_in(tmp_path)
    assert folder == tmp_path / "build"
    with pytest.raises(HostError, match="holds no simulation library of this design to stand in for it: run systolic"):
        find_library(tmp_path, None)
    for age, name in enumerate(
        ("native-0000-x.so", f"native-{key}-old.so", f"native-{key}-new.so", f"traced-{key}-a.so")
    ):
        (folder / name).write_text("")
        os.utime(folder / name, (1000 + age, 1000 + age))
    assert find_library(tmp_path, None) == (folder / f"native-{key}-new.so").absolute()
    assert find_library(tmp_path, folder / "native-0000-x.so") == (folder / "native-0000-x.so").absolute()
    with pytest.raises(HostError, match="there is no such simulation library"):
        find_library(tmp_path, folder / "none.so")
    (tmp_path / "src" / "a.h").write_text("other")
    assert sources_key(files) != key
    with pytest.raises(HostError, match="only 3 of other sources or of another processor: run systolic simulate"):
        find_library(tmp_path, None)
    for path in files:
        path.unlink()
    with pytest.raises(HostError, match="there are no sources to build one of either"):
        find_library(tmp_path, None)


def test_a_key_is_of_names_and_contents(tmp_path: Path) -> None:
    keys = set()
    for names in (("a", "b"), ("b", "a"), ("ab", "")):
        paths = []
        for number, content in enumerate(names):
            path = tmp_path / f"{number}.h"
            path.write_text(content)
            paths.append(path)
        keys |= {sources_key(paths), sources_key(paths[:1])}
    assert len(keys) == 6


# --- tensors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("channels", "pixel_bytes"), [(1, 4), (3, 4), (4, 4), (5, 4), (9, 4), (2, 1)])
def test_pixels_lie_plane_behind_plane(channels: int, pixel_bytes: int) -> None:
    """Channel c of a pixel is byte c modulo so many, in plane c divided by them; what is beside is left."""
    picture = np.random.default_rng(channels).integers(1, 256, (channels, 2, 3), np.uint8)
    planes = -(-channels // pixel_bytes)
    plane = 3 * pixel_bytes + 5
    rows = np.zeros((2, planes * plane), np.uint8)
    fill_pixels(picture, rows, pixel_bytes)
    wanted = np.zeros_like(rows)
    for c, y, x in np.ndindex(picture.shape):
        wanted[y, c // pixel_bytes * plane + x * pixel_bytes + c % pixel_bytes] = picture[c, y, x]
    np.testing.assert_array_equal(rows, wanted)
    assert planes_of(rows, picture.shape, pixel_bytes).shape == (2, planes, 3, pixel_bytes)


def test_integers_are_floats_above_their_zero_point() -> None:
    tensor: Any = SimpleNamespace(scale=0.1, zero_point=-3)
    wanted = [np.float32((value + 3) * 0.1) for value in (-128, -3, 0, 127)]
    floats = to_floats(tensor, np.array([-128, -3, 0, 127], np.int8))
    assert floats.tolist() == wanted
    assert floats.dtype == np.float32
    far = to_floats(SimpleNamespace(scale=1.0, zero_point=1), np.array([(1 << 31) - 1], np.int64))  # type: ignore[arg-type]
    assert far.tolist() == [float(np.float32((1 << 31) - 2))]


def test_an_input_is_uint8_of_its_shape() -> None:
    tensor: Any = SimpleNamespace(shape=(3, 2, 2))
    check_input(np.zeros((3, 2, 2), np.uint8), tensor)
    others: list[Any] = [np.zeros((3, 2, 3), np.uint8), np.zeros((3, 2, 2), np.int8), np.zeros((12,), np.uint8), []]
    for wrong in others[:-1]:
        with pytest.raises(HostError, match=r"the input is uint8 of shape \(3, 2, 2\), not u?int8 of shape"):
            check_input(wrong, tensor)
    with pytest.raises(HostError, match=r"the input is an array, uint8 of shape \(3, 2, 2\), not \[\]"):
        check_input(others[-1], tensor)
