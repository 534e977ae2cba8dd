"""Manifests are untrusted: each is read, or refused with the place and the name of the wrong value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest

from boards.errors import (
    ChoiceError,
    DamagedFileError,
    DoesNotFitError,
    FileAccessError,
    InvalidValueError,
    MismatchError,
    MissingValueError,
    RangeError,
    ShapeError,
    SystolicError,
)
from host.contract.codec import Range, from_json
from host.contract.manifest import MANIFESTS, MAX_MANIFEST_BYTES, of_style, parse_manifest, read_manifest
from host.contract.parts import Manifest, NetworkHead
from host.contract.streaming import StreamingManifest
from host.contract.systolic import SystolicManifest, _check_on_chip, _check_region
from systolic.files import write
from tests.support.accelerators import GEOMETRIES, design_of, networks
from tests.support.errors import raises
from tests.support.host.manifests import (
    changed,
    check_rows,
    golden_values,
    manifest_fields,
    places,
    read_systolic_manifest,
    refusal,
    subject_of,
)

VALUE = "the value"

# --- every field of the schema ----------------------------------------------------------------------------------------

BUFFER, COUNTED = 1 << 31, 1 << 48
RANGES: dict[str, dict[str, tuple[float, float]]] = {
    "systolic": {
        **{
            "burst_words": (1, 256),
            "outstanding": (1, 256),
            "passes": (1, 1 << 20),
            "batch": (1, 64),
            "ddr.gbps": (1e-3, 1e4),
            "ddr.efficiency": (1e-3, 1),
            "word_bytes": (1, 512),
            "weight_word_bytes": (1, 512),
            "maps_bytes": (1, BUFFER),
            "pass_words": (1, 1024),
            "program_cycles": (0, COUNTED),
            "outputs.0": (0, 4095),
            "images.program.crc32": (0, (1 << 32) - 1),
        },
        **{f"estimate.{name}": (0, COUNTED) for name in ("dsp", "bram36", "uram", "lut", "lutram")},
        **{f"pass_fields.{side}_{name}": (0, 1023) for side in ("in", "out", "added") for name in ("base", "buffer")},
        **{f"input.{name}": (-BUFFER, BUFFER) for name in ("offset", "bytes", "row_bytes", "pitch")},
        **{f"layers.0.{name}": (0, 1 << 20) for name in ("node", "input_node", "last_input_node", "added_node")},
        **{f"layers.0.{name}": (0, COUNTED) for name in ("macs", "modelled_cycles", "compute_cycles")},
        **{"layers.0.output.turn": (0, 1024), "layers.0.output.place": (0, 1 << 30)},
        **{"layers.0.output.zero_point": (-(1 << 15), (1 << 15) - 1)},
        **{f"array.{name}": (1, 1024) for name in ("rows", "columns", "save_rows")},
        **{f"array.{name}": (1, 64) for name in ("weight_ports", "weight_words")},
        **{f"array.{name}_depth": (1, 1 << 24) for name in ("row", "weight", "kept")},
        "array.map_depth": (0, 1 << 24),
        **{"array.lanes": (1, 256), "array.sum_bits": (9, 32), "array.map_stride": (1, 7)},
        **{"array.chunk": (1, 1 << 24), "array.channel_tiles": (1, 1 << 24)},
    },
    "streaming": {
        "packet_in.bytes": (1, (1 << 26) - 1),
        "frames_per_start": (1, (1 << 31) - 1),
        "fifos.0.depth": (1, 1 << 31),
        "fifos.0.bits": (1, 1 << 20),
        "layers.0.pixels": (1, 1 << 17),
        "layers.0.lanes": (1, 1 << 17),
        "layers.0.stream_channels": (1, 1 << 17),
        "outputs.0.layer": (0, 1 << 20),
        "blocks.0.macs": (0, COUNTED),
        "blocks.0.macs_per_cycle": (0, COUNTED),
        "images.0.word_bytes": (1, BUFFER),
    },
}
"""The limits of numbers that users, engines and files rely on, by path."""

CHOICES: dict[str, dict[str, tuple[object, ...]]] = {
    "systolic": {
        "fit": ("plain", "letterbox", "smooth"),
        "layers.0.bound_by": ("fill", "compute", "rows", "weights", "saver", "ddr", "drain", "program"),
        "layers.0.output.map_buffer": (1, 2),
        "array.map_ports": (1, 2, 4),
        "array.bits": (4, 8, 16),
        "array.late_offsets": (0, 1, 2),
        "array.table_depth": (0, 256, 512, 1024, 2048, 4096),
        "array.dsp_products": (0, 6),
        "array.engine": ("hls", "rtl"),
        **{f"array.{name}": (1, 2) for name in ("upscale", "dsp_clock")},
        **{
            f"array.{name}": (0, 1)
            for name in ("table_slopes", "windows", "map_products", "added_maps", "dsp_registers")
        },
    },
    "streaming": {
        "packet_out.beat": (1, 2, 4, 8, 16, 32, 64, 128),
        "outputs.0.value_bytes": (1, 2, 4),
    },
}
"""The allowed values of fields that have only a few, by path."""


def schema(kind: Any, path: str = "") -> Iterator[tuple[str, Any, bool]]:
    """Yield the path of every value, its type, and whether it may be left out; the first element stands for a list."""
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        optional = bool(field.metadata.get("optional"))
        yield from _values_of(hints[field.name], f"{path}.{field.name}".lstrip("."), optional)


def _values_of(kind: Any, path: str, optional: bool) -> Iterator[tuple[str, Any, bool]]:
    if get_origin(kind) is UnionType or type(None) in get_args(kind):
        kind = get_args(kind)[0]
    if get_origin(kind) is tuple:
        yield path, list, optional
        yield from _values_of(get_args(kind)[0], f"{path}.0", True)
    elif is_dataclass(kind):
        yield path, dict, optional
        if kind is not NetworkHead:
            yield from schema(kind, path)
    else:
        yield path, kind, optional


def full(style: str) -> dict[str, Any]:
    """Return a manifest that has every optional object and list, so that each path of its schema exists."""
    tensor = {"name": "prob", "layers": [0], "steps": [{"kind": "map", "numbers": [0]}]}
    content = golden_values(style) | {"tensors": [tensor]}
    if style == "systolic":
        return content | {"outputs": [0]}
    images = [{"path": "w.bin", "crc32": 0, "word_bytes": 1, "port": "w"}]
    return content | {"images": images, "fifos": content["fifos"] or [{"name": "x", "depth": 2, "bits": 8}]}


def where_of(path: str) -> str:
    """Return the place that an error names: ``layers[0].node`` for ``layers.0.node``."""
    parts = path.split(".")
    return parts[0] + "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in parts[1:])


def check_number(style: str, path: str, plain: type, limits: Range) -> None:
    """Check that both ends are read by the codec, and that nothing beyond them or of another type is."""
    kind: Any = MANIFESTS[style]
    for taken in (plain(limits.low), plain(limits.high)):
        from_json(kind, changed(full(style), path, taken))
    others: list[Any] = ["x", True, None, []] + ([1.5] if plain is int else [])
    step = 1 if plain is int else limits.low / 2
    for wrong in (plain(limits.low) - step, plain(limits.high) + step, *others):
        integer = plain is int
        with raises(RangeError, where=where_of(path), low=limits.low, high=limits.high, integer=integer, got=wrong):
            from_json(kind, changed(full(style), path, wrong))


def check_plain(style: str, path: str, plain: type) -> None:
    kind: Any = MANIFESTS[style]
    wrong: tuple[Any, ...] = (None, 1 if plain in (str, list, dict, bool) else "x", [] if plain is not list else {})
    for value in wrong:
        with raises(InvalidValueError, where=where_of(path), got=value):
            from_json(kind, changed(full(style), path, value))


@pytest.mark.parametrize("style", MANIFESTS)
def test_manifest_field_of_a_wrong_type_or_range_is_refused(style: str) -> None:
    kind: Any = MANIFESTS[style]
    seen: dict[str, Any] = {}
    for path, declared, optional in schema(kind):
        if get_origin(declared) is Annotated:
            plain, condition = get_args(declared)
            seen[path] = condition
            if isinstance(condition, Range):
                check_number(style, path, plain, condition)
                continue
            for choice in condition.values:
                from_json(kind, changed(full(style), path, choice))
            for wrong in (3, "squeeze", None, 7.5, "1"):
                with raises(ChoiceError, where=where_of(path), got=wrong, choices=condition.values):
                    from_json(kind, changed(full(style), path, wrong))
        elif declared in (int, float, str, bool, list, dict):
            check_plain(style, path, declared)
        name = path.rpartition(".")[2]
        if not optional:
            with raises(MissingValueError, what=repr(name), where=where_of(path).removesuffix(name).rstrip(".")):
                from_json(kind, changed(full(style), path, ...))
    assert len(seen) > 12
    ranges = {path: (seen[path].low, seen[path].high) for path in RANGES[style]}
    assert ranges == RANGES[style]
    assert {path: seen[path].values for path in CHOICES[style]} == CHOICES[style]


@pytest.mark.parametrize("style", MANIFESTS)
def test_manifest_with_any_value_changed_is_read_or_refused(style: str) -> None:
    values = golden_values(style)
    news: tuple[Any, ...] = (..., None, -1, 1 << 70, 1e400, float("nan"), "x", "../../etc/passwd", [], {}, True)
    for new in news:
        refused = [error for error in (refusal(changed(values, path, new)) for path in places(values)) if error]
        assert len(refused) > 20, new
        assert [error for error in refused if not str(error).startswith("manifest.json")] == [], new


# --- the file ---------------------------------------------------------------------------------------------------------


def test_manifest_of_another_format_version_or_style_is_refused() -> None:
    contents: tuple[Any, ...] = ([], {**golden_values(), "format": "other"})
    for content in contents:
        with raises(DamagedFileError, path="manifest.json", remedy="run systolic generate first"):
            parse_manifest(content, "manifest.json")
    for version in (1, 4, "2", True, None):
        with raises(ChoiceError, what="the version", got=version, choices=(2, 3), where="manifest.json"):
            parse_manifest({**golden_values(), "version": version}, "manifest.json")
    styles: tuple[Any, ...] = ("other", 3, [])
    for style in styles:
        with raises(ChoiceError, what="the style", got=style, choices=("systolic", "streaming")):
            parse_manifest({**golden_values(), "style": style}, "manifest.json")
    with raises(MismatchError, what="the style of tiny", got="systolic", expected="streaming"):
        of_style(StreamingManifest, read_systolic_manifest(golden_values()))


def test_manifest_file_that_is_damaged_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    with raises(FileAccessError, path=str(tmp_path), what="folder"):
        read_manifest(tmp_path)
    for text in ("[" * 100_000, "{", '{"format": NaN}', "9" * 5000, "{}"):
        path.write_text(text)
        with raises(DamagedFileError, path=str(path)):
            read_manifest(tmp_path)
    with path.open("wb") as file:
        file.truncate(MAX_MANIFEST_BYTES + 1)
    with raises(RangeError, where=str(path), got=MAX_MANIFEST_BYTES + 1, high=16 << 20):
        read_manifest(tmp_path)


def test_manifest_error_names_file_and_remedy() -> None:
    error = refusal(changed(golden_values(), "labels", ...))
    assert error is not None
    assert (error.where, error.remedy) == ("manifest.json", "generate the design again")


# --- values of a systolic manifest that go with each other ------------------------------------------------------------


def test_systolic_manifest_with_values_that_disagree_is_refused() -> None:
    array, output, second = "array: ", "layers.0.output.", "layers.1.output."
    check_rows(
        golden_values(),
        [
            ("clock_mhz", [1e-9, 1, 1999.9], [0, 2000, -1], InvalidValueError, "clock_mhz"),
            ("layers", [], [[]], RangeError, "the number of layers"),
            ("batch", [], [64], RangeError, "input: the end of the map"),
            ("outputs", [[0], [1], [0, 1]], [[2]], RangeError, "outputs: the index of a layer"),
            ("heads.0.layer", [1], [2, 7], RangeError, "the index of a layer that a head reads"),
            ("heads.0.layer", [], [0], MismatchError, "the channels of a head"),
            ("heads.0.layer", [], [4096, -1, True, "1"], RangeError, "heads[0].layer: the value"),
            ("heads.0.classes", [], ["x"], InvalidValueError, "heads[0]: classes of a head"),
            ("images.program.path", ["a/b.bin"], ["../x", "/a", "a\\b", "a\nb"], InvalidValueError, _IMAGE),
            ("array.weight_ports", [1], [2], MismatchError, "the number of weight images"),
            ("pass_words", [64], [63, 65], MismatchError, "pass_words"),
            ("pass_fields.out_base", [54], [53, 55], MismatchError, "pass_fields.out_base"),
            ("pass_fields.added_base", [], [64], MismatchError, "pass_fields.added_base"),
            ("word_bytes", [8], [4, 16], MismatchError, "word_bytes"),
            ("weight_word_bytes", [8], [4, 16], MismatchError, "weight_word_bytes"),
            ("array.columns", [8, 16], [4, 12], InvalidValueError, array + "columns"),
            ("array.row_depth", [2, 1024], [1023], InvalidValueError, array + "row_depth"),
            ("array.map_depth", [32], [31], DoesNotFitError, "the map of conv1"),
            ("input.channels", [3], [0, 65537], RangeError, "input: channels"),
            ("input.pixel_bytes", [4], [2, 3], MismatchError, "input: pixel_bytes"),
            ("input.blocks", [1], [2], MismatchError, "input: blocks"),
            ("input.row_bytes", [64], [63], RangeError, "input: row_bytes"),
            ("input.row_bytes", [], [68], InvalidValueError, "input: row_bytes"),
            ("input.row_bytes", [], [72], MismatchError, "input: bytes"),
            ("input.bytes", [1024], [1016], MismatchError, "input: bytes"),
            ("input.bytes", [], [0], RangeError, "input: bytes"),
            ("input.offset", [], [-8], RangeError, "input: offset"),
            ("input.offset", [0], [4], InvalidValueError, "input: offset"),
            ("input.datatype", ["UINT8", "INT1"], ["INT17", "INT0", "INT08"], InvalidValueError, "input: datatype"),
            ("input.scale", [1e-30, 1e30], [0, -1.0], InvalidValueError, "input: scale"),
            ("input.value_bits", [8, 16], [4, 12], InvalidValueError, "input: value_bits"),
            ("input.value_bytes", [1], [2], MismatchError, "input: value_bytes"),
            (output + "turn", [0, 5], [6], InvalidValueError, "conv1: turn"),
            (output + "bytes", [1024], [1016, 1032], MismatchError, "conv1: bytes"),
            (output + "channels", [1, 16], [17], RangeError, "conv1: blocks"),
            (output + "channels", [], [0], RangeError, "conv1: channels"),
            (output + "height", [], [1 << 17], RangeError, "conv1: height"),
            (output + "offset", [1024, 2048], [1028], InvalidValueError, "conv1: offset"),
            (output + "offset", [0, 3072], [3080, 1 << 30], RangeError, "conv1: the end of the map"),
            ("layers.0.first_pass", [0], [1, -1], MismatchError, "conv1: first_pass"),
            ("layers.0.last_pass", [0], [-1], RangeError, "conv1: last_pass"),
            ("layers.1.first_pass", [1], [0, 2], MismatchError, "conv2: first_pass"),
            ("layers.1.last_pass", [1], [0], RangeError, "conv2: last_pass"),
            ("layers.1.input_node", [0, 2], [1, 3], InvalidValueError, "conv2: input_node"),
            ("layers.1.last_input_node", [0, 2], [1, 3], InvalidValueError, "conv2: last_input_node"),
            ("layers.1.added_node", [], [0, 2], MismatchError, f"conv2: {_ADDED}"),
            (second + "pitch", [256], [248], RangeError, "conv2: pitch"),
            (second + "pitch", [], [260], InvalidValueError, "conv2: pitch"),
            (second + "turn", [], [0], InvalidValueError, "conv2: turn"),
            ("passes", [2], [1, 3], MismatchError, "passes"),
            ("maps_bytes", [4096], [4104], MismatchError, "maps_bytes"),
            ("batch", [], [2], RangeError, "conv2: the end of the map"),
        ],
    )


def test_manifest_columns_with_six_products_are_multiples_of_half_the_lanes() -> None:
    """Use eight lanes: the columns are multiples of 4. With two products per DSP they are multiples of 8."""
    rows = [("array.columns", [4, 8, 12], [2, 6], InvalidValueError, "array: columns")]
    check_rows(changed(golden_values(), "array.dsp_products", 6), rows)


_IMAGE = "images.program: the path of a data file"
_ADDED = "added_maps of an array for a layer with added_node"


def test_added_node_is_that_of_an_earlier_layer() -> None:
    values = golden_values()
    added = {"added_base": 65, "added_buffer": 67}
    content = changed(values, "array.added_maps", 1) | {"pass_words": 73}
    content["pass_fields"] = read_systolic_manifest(values).pass_fields.__dict__ | added
    for node in (0, 3):
        error = refusal(changed(content, "layers.1.added_node", node))
        assert error is not None
        assert (type(error), subject_of(error)) in (
            (InvalidValueError, "conv2: added_node"),
            (MismatchError, "pass_fields.added_base"),
        )


def test_maps_of_a_batch_follow_each_other() -> None:
    """Check that the second layer's maps of two frames end at byte 2048 + 2 · 2048."""
    content = {**golden_values(), "batch": 2, "maps_bytes": 6144}
    assert refusal(content) is None
    for size, kind, subject in (
        (6152, MismatchError, "maps_bytes"),
        (6136, RangeError, "conv2: the end of the map"),
    ):
        error = refusal({**content, "maps_bytes": size})
        assert error is not None
        assert (type(error), subject_of(error)) == (kind, subject)


def region(**numbers: Any) -> Any:
    usual = {"channels": 3, "height": 7, "width": 4, "datatype": "INT4", "scale": 1.0, "blocks": 2}
    usual |= {"value_bytes": 1, "value_bits": 4, "offset": 0, "bytes": 448, "map_buffer": 1, "turn": 0, "place": None}
    return SimpleNamespace(**{**usual, **numbers})


def whole(**numbers: Any) -> Any:
    usual = {"lanes": 8, "word_bytes": 8, "batch": 1, "maps_bytes": 448, "array": SimpleNamespace(rows=3, map_depth=24)}
    return SimpleNamespace(**{**usual, **numbers})


def test_map_on_chip_fits_the_banks() -> None:
    """Use seven rows of eight words on three banks, so that a bank holds up to three rows."""
    _check_on_chip("it", region(value_bits=8), whole())
    for rows, depth, need in ((3, 23, 24), (2, 24, 32)):
        with raises(DoesNotFitError, subject="the map of it", need=need, have=depth):
            _check_on_chip("it", region(value_bits=8), whole(array=SimpleNamespace(rows=rows, map_depth=depth)))
    with raises(InvalidValueError, where="it", what="turn", got=None):
        _check_on_chip("it", region(turn=None), whole())
    _check_on_chip("it", region(map_buffer=None, turn=None), whole())
    for name in ("turn", "place"):
        with raises(InvalidValueError, where="it", what=name, got=3):
            _check_on_chip("it", region(**{"map_buffer": None, "turn": None, name: 3}), whole())
    # Rows of eight words begin every twelve words, next to another map. The last row needs only its own eight words.
    for place, depth in ((None, 32), (0, 32), (5, 37)):
        apart = region(bytes=7 * 96, value_bits=8, place=place)
        _check_on_chip("it", apart, whole(array=SimpleNamespace(rows=3, map_depth=depth)))
        with raises(DoesNotFitError, need=depth, have=depth - 1):
            _check_on_chip("it", apart, whole(array=SimpleNamespace(rows=3, map_depth=depth - 1)))


def test_region_with_values_that_disagree_is_refused() -> None:
    rows: list[tuple[dict[str, Any], dict[str, Any], type[SystolicError] | None, str]] = [
        ({}, {}, None, ""),
        ({}, {"lanes": 7}, InvalidValueError, "lanes"),
        ({"value_bits": 8}, {"lanes": 7}, None, ""),
        ({"datatype": "INT5"}, {}, InvalidValueError, "value_bits"),
        ({"datatype": "INT9", "value_bits": 16}, {}, MismatchError, "value_bytes"),
        ({"datatype": "UINT16", "value_bits": 16, "value_bytes": 2}, {}, None, ""),
        ({"datatype": "INT17", "value_bits": 16, "value_bytes": 2}, {}, InvalidValueError, "datatype"),
        ({"blocks": 0}, {}, RangeError, "blocks"),
        ({"blocks": 65536}, {}, None, ""),
        ({"blocks": 65537}, {}, RangeError, "blocks"),
        ({"bytes": 0}, {}, RangeError, "bytes"),
        ({"offset": -8}, {"maps_bytes": 9999}, RangeError, "offset"),
        ({}, {"batch": 2, "maps_bytes": 896}, None, ""),
        ({}, {"batch": 2, "maps_bytes": 895}, RangeError, "the end of the map"),
        ({"channels": 65536}, {}, None, ""),
        ({"channels": 65537}, {}, RangeError, "channels"),
        ({"height": 0}, {}, RangeError, "height"),
        ({"scale": float("inf")}, {}, InvalidValueError, "scale"),
    ]
    for numbers, manifest, kind, what in rows:
        if kind is None:
            _check_region("it", region(**numbers), whole(**manifest))
        else:
            with raises(kind, where="it", what=what):
                _check_region("it", region(**numbers), whole(**manifest))


def test_head_reads_up_to_8_maps() -> None:
    head = golden_values()["heads"][0]
    bare = {key: value for key, value in head.items() if key != "layer"}
    assert NetworkHead.from_values(head, "heads[0]").layers == (1,)
    for count in (1, 8):
        several = NetworkHead.from_values({**bare, "layers": list(range(count))}, "heads[0]")
        assert several.layers == tuple(range(count))
        assert NetworkHead.from_values(several.to_values(), "heads[0]") == several
    for wrong in ([], list(range(9)), 3, None):
        with raises(InvalidValueError, where="heads[0].layers", got=wrong):
            NetworkHead.from_values({**bare, "layers": wrong}, "heads[0]")
    assert NetworkHead.from_values({**bare, "layer": 4095}, "heads[0]").layers == (4095,)
    with raises(RangeError, where="heads[0].layer", got=4096, low=0, high=4095):
        NetworkHead.from_values({**bare, "layer": 4096}, "heads[0]")


def test_head_reads_maps_of_one_size_and_all_their_channels() -> None:
    """Use two outputs, one of six channels and one of one channel."""
    shapes = {0: (6, 4, 5), 1: (1, 4, 5), 2: (1, 4, 4), 3: (1, 5, 5)}
    layers = [SimpleNamespace(output=SimpleNamespace(channels=shape[0], shape=shape)) for shape in shapes.values()]

    def check(*indices: int) -> None:
        head = SimpleNamespace(layers=indices, head=SimpleNamespace(channels=7))
        one: Any = SimpleNamespace(clock_mhz=1, layers=layers, heads=[head], tensors=(), output_layers=(0, 1, 2, 3))
        Manifest.validate(one)

    check(0, 1)
    for other in (2, 3):
        with raises(ShapeError, what="the maps that a head reads"):
            check(0, other)
    with raises(MismatchError, what="the channels of a head", got=7, expected=8):
        check(0, 1, 1)
    with raises(ChoiceError, what="the index of a layer that a head reads", got=4, choices=(0, 1, 2, 3)):
        check(0, 4)


# --- what a systolic manifest tells -----------------------------------------------------------------------------------


def test_manifest_without_optional_keys_has_their_defaults() -> None:
    array = read_systolic_manifest(golden_values()).array
    assert (array.upscale, array.table_depth, array.table_slopes, array.windows, array.late_offsets) == (1, 0, 0, 0, 0)
    assert (array.map_products, array.added_maps, array.dsp_clock, array.dsp_products) == (0, 0, 1, 0)
    assert (array.dsp_registers, array.sum_bits, array.engine, array.map_stride) == (0, 32, "hls", 1)
    content = golden_values()
    del content["program_cycles"]
    bare = read_systolic_manifest(content)
    assert (bare.program_cycles, bare.outputs, bare.batch, bare.layers[0].last_input_node) == (0, (), 1, None)
    assert bare.input.zero_point == 0
    assert bare.cycles == 784 + 345
    assert read_systolic_manifest(golden_values()).cycles == 174 + 784 + 345
    assert read_systolic_manifest(golden_values()).pass_cycles == (87 + 784, 87 + 345)
    for clock, wanted in ((250, 250.0), (0.5, 0.5)):
        found = read_systolic_manifest({**golden_values(), "clock_mhz": clock}).clock_mhz
        assert (type(found), found) == (float, wanted)


def test_layers_that_the_host_reads() -> None:
    """Check the order: each layer of the heads once, then the named outputs; the last layer if there are neither."""
    heads = golden_values()["heads"]
    for heads_read, outputs, wanted in (
        ([], [], (1,)),
        ([], [0], (0,)),
        ([], [1, 0, 1], (1, 0)),
        (heads, [0], (1, 0)),
        (heads, [], (1,)),
    ):
        content = {**golden_values(), "heads": heads_read, "outputs": outputs}
        assert read_systolic_manifest(content).output_layers == wanted
    manifest = read_systolic_manifest(golden_values())
    layers: list[Any] = [None, *manifest.layers, None]
    assert [manifest.layer_of_pass(index) for index in (-1, 0, 1, 2)] == layers
    assert [image.path for image in manifest.files] == [
        *("data/weights_0.bin", "data/requantisers.bin", "data/program.bin", "data/maps.bin", "data/layers.bin")
    ]


def test_classifier_ends_with_one_position_of_several_values() -> None:
    def ending(channels: int, height: int, width: int, **others: Any) -> SystolicManifest:
        content = golden_values()
        sides = {"channels": channels, "height": height, "width": width, "bytes": 32 * height * width}
        content["layers"][1]["output"] |= sides
        content |= {"heads": [], "maps_bytes": 2048 + sides["bytes"], **others}
        return read_systolic_manifest(content)

    for sides, is_one in (
        ((14, 1, 1), True),
        ((2, 1, 1), True),
        ((1, 1, 1), False),
        ((14, 2, 1), False),
        ((14, 1, 2), False),
    ):
        assert ending(*sides).is_classifier is is_one, sides
    assert not ending(14, 1, 1, outputs=[0, 1]).is_classifier
    assert not ending(14, 1, 1, heads=golden_values()["heads"]).is_classifier
    assert not read_systolic_manifest(golden_values()).is_classifier


def test_pass_cycles_of_a_generated_manifest_add_up_to_those_of_its_layers(tmp_path: Path) -> None:
    """Check that all passes share the cycles of fetching, and that a layer's passes share the layer's cycles."""
    write(design_of(networks()["pools"], GEOMETRIES["odd rows"], 1), tmp_path / "design")
    manifest = of_style(SystolicManifest, read_manifest(tmp_path / "design"))
    content = manifest_fields(tmp_path / "design")
    assert manifest.vlnv == "systolic:cnn:systolic_top:1.0"
    assert "batch" not in content
    assert manifest.batch == 1
    cycles, fetch = manifest.pass_cycles, content["program_cycles"] / manifest.passes
    assert len(cycles) == manifest.passes
    assert manifest.cycles == pytest.approx(sum(cycles))
    for layer in manifest.layers:
        own = cycles[layer.first_pass : layer.last_pass + 1]
        assert sum(own) - len(own) * fetch == pytest.approx(layer.modelled_cycles)
        assert len(set(own)) == 1
        assert all(manifest.layer_of_pass(number) == layer for number in range(layer.first_pass, layer.last_pass + 1))
    for path in ("input.row_bytes", "maps_bytes", "passes", "layers.0.output.bytes", "layers.1.first_pass"):
        at: Any = content
        for key in path.split("."):
            at = at[int(key) if key.isdigit() else key]
        for step in (1, -1):
            assert refusal(changed(content, path, at + step)), f"{path} {step:+}"
