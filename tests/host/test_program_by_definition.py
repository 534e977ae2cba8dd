"""Each rule of a pass against the same in whole numbers, step by step, on passes that are drawn near its edges."""

from __future__ import annotations

from functools import partial
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from boards.errors import InvalidValueError, MismatchError, RangeError
from host.contract import program
from host.contract.program import ImageWords
from host.contract.streaming import _check_layer
from host.contract.systolic import _check_input
from tests.support.errors import raises
from tests.support.host.passes import ARRAYS, MOST, array_of, drawn, region, scalar, times


def test_every_word_has_its_limits() -> None:
    for array in ARRAYS:
        from_0 = ("in_base", "in_block_pitch", "weights_base", "requantiser_base", "out_base")
        from_1 = (
            *("in_row_pitch", "out_row_pitch", "out_block_pitch", "burst_words", "bursts", "block_words", "in_blocks"),
            *("in_width", "in_height", "kernel_groups", "out_height", "out_width", "save_width", "out_blocks"),
        )
        lowest = -1 if array.map_products else 0 if array.windows else 1
        assert program._ranges(array) == {
            **dict.fromkeys(from_0, (0, MOST)),
            **dict.fromkeys(from_1, (1, MOST)),
            **dict.fromkeys(("pixel_input", "depthwise", "overlap", "inputs_resident", "resident"), (0, 1)),
            **dict.fromkeys(("in_buffer", "out_buffer"), (0, 2) if array.map_depth > 0 else (0, 0)),
            **{"kernel_height": (1, 4095), "stride": (0, 127), "advance": (0, 127), "pad_top": (0, 255)},
            **{
                "pad_left": (-64, 4095),
                "group_pixels": (1, 4095),
                "last_slot": (0, 511),
                "steps": (1, 256),
                "channel_tiles": (1, 7),
            },
            **{"pool_size": (1, 2), "pool_stride": (lowest, 2), "upscale": (1, array.upscale)},
            **{"out_turn": (0, array.rows - 1), "value_words": (1, {4: 4, 8: 2, 16: 1}[array.bits])},
            "limits": (0, MOST),
        }


def test_padding_is_a_pixel_or_a_value() -> None:
    for bits, low, high in ((4, -8, 7), (8, -128, 127), (16, -32768, 32767)):
        passes = SimpleNamespace(pixel_input=np.array([1, 0, 1, 0]))
        lowest, highest = program._padding(passes, array_of(bits=bits))
        assert lowest.tolist() == [0, low, 0, low]
        assert highest.tolist() == [255, high, 255, high]


def _few(array: Any, **numbers: int) -> bool:
    fields = {"pool_stride": 1, "kernel_height": 3, "kernel_groups": 2, "out_height": 1, "steps": 1, "out_width": 1}
    fields |= {"channel_tiles": 1, "burst_words": 1, "bursts": 1, "pool_size": 1, "upscale": 1, **numbers}
    fields = {"save_width": fields["out_width"], "in_blocks": 3, "depthwise": 0, **fields}
    passes = SimpleNamespace(**{name: np.array([value], np.int64) for name, value in fields.items()})
    return bool(program._few_steps(passes, array)[0])


def test_a_pass_takes_no_more_steps_than_the_engine_counts() -> None:
    """At the last that it counts, and at the first that it does not; a comparison takes one a place of its window."""
    for array in ARRAYS:
        few = partial(_few, array)
        assert few(out_width=MOST)
        assert not few(out_width=MOST + 1)
        assert few(out_width=MOST, out_height=array.rows)
        assert not few(out_width=MOST, out_height=array.rows + 1)
        assert few(out_width=1 << 15, channel_tiles=1 << 14, steps=3)
        assert not few(out_width=1 << 15, channel_tiles=1 << 14, steps=4)
        assert few(out_width=MOST // 6, pool_stride=0)
        assert not few(out_width=MOST // 6 + 1, pool_stride=0)
        assert few(out_width=MOST // 2, pool_stride=-1, kernel_height=2, kernel_groups=1)
        assert not few(out_width=MOST // 2 + 1, pool_stride=-1, kernel_height=2, kernel_groups=1)
        assert few(save_width=MOST, out_width=MOST // 3, kernel_height=1, kernel_groups=1, steps=1)
        assert not few(save_width=MOST // 3 * 3 + 3, out_width=MOST // 3 + 1, kernel_height=1, kernel_groups=1)
        assert few(burst_words=256, bursts=2)
        assert not few(burst_words=171, bursts=3)
        assert not few(burst_words=513)


def spread_of(p: Any) -> int:
    """Columns that a position becomes: where it may become several, as many as the Saver has for it."""
    alone = (p.pool_size, p.pool_stride, p.upscale, p.kernel_height, p.kernel_groups, p.depthwise) == (1, 1, 1, 1, 1, 0)
    columns = p.save_width // p.out_width
    return columns if alone and columns > 1 and p.in_blocks % columns == 0 else 1


def follows(p: Any, array: Any) -> dict[str, int]:
    """Of one pass what other words decide, but for the place in the weight buffer."""
    compares = p.pool_stride in (-1, 0)
    stride = p.stride or 1
    places = sum(1 for _ in range(p.kernel_height) for _ in range(p.kernel_groups))
    tile_blocks = array.columns // array.lanes if p.depthwise else p.in_blocks
    spread = spread_of(p)
    positions = 2 if array.bits == 4 and p.stride == 1 and not compares and spread == 1 else 1
    row_tiles = times(p.out_height, array.rows)
    rows_read = min(stride, p.kernel_height)
    reached = max(row // stride for row in range(p.kernel_height))
    row_words = sum(p.burst_words for _ in range(p.bursts))
    width_steps = times(p.out_width, positions) * p.steps * (places if compares else 1) * spread
    uses = p.channel_tiles if p.inputs_resident else p.channel_tiles * row_tiles
    loads = p.channel_tiles if p.resident else uses
    beats = p.steps * array.columns // array.weight_ports // array.weight_words
    groups = array.rows + reached
    beyond = next(rows for rows in range(array.rows) if (p.pad_top + rows) % array.rows == p.in_turn)
    may_be = p.in_buffer > 0 and (p.stride != 2 or (p.kernel_height == 1 and beyond == 1))
    turned = p.pad_top + (beyond if may_be else 0)
    banks = {p.stride * row % array.rows for row in range(array.rows)} if p.stride > 1 else set(range(array.rows))
    moved = len(banks) if p.stride < 3 else min(4, len(banks))
    last = array.lanes * p.out_blocks
    tiles = {times(channels, array.columns) for channels in range(last - array.lanes + 1, last + 1)}
    return {
        "row_words": row_words,
        "block_words": row_words // p.in_blocks,
        "in_lap": turned // array.rows,
        "in_turn": turned - turned // array.rows * array.rows,
        "group_pixels": array.lanes // 4 // (2 if array.bits == 4 else 1) if p.pixel_input else p.group_pixels,
        "tile_blocks": tile_blocks,
        "steps": tile_blocks if compares else places * tile_blocks // spread,
        "row_tiles": row_tiles,
        "phases": rows_read,
        "row_strides": row_tiles * array.rows + reached,
        "ahead": reached,
        "positions": positions,
        "slot_words": rows_read * row_words,
        "first_loads": times(groups, array.map_ports) * rows_read * row_words,
        "first_moves": times(groups, moved) * rows_read * row_words,
        "row_feeds": width_steps if p.inputs_resident else width_steps * p.channel_tiles,
        "weight_feeds": width_steps * row_tiles if p.inputs_resident else width_steps,
        "array_steps": width_steps * row_tiles * p.channel_tiles,
        "tile_beats": beats,
        "tile_uses": uses,
        "tile_loads": loads,
        "load_beats": sum(beats for _ in range(loads)),
        "channels": sum(array.columns for _ in range(p.channel_tiles)),
        "channel_tiles": p.channel_tiles if p.channel_tiles in tiles else max(tiles),
        "save_width": p.upscale * spread * times(p.out_width, max(1, p.pool_stride)),
        "chunks": row_tiles * p.channel_tiles * times(p.save_width, array.chunk),
    }


def test_words_that_follow_are_those_of_the_loops() -> None:
    for array in ARRAYS:
        passes = drawn(array, 1)
        derived = {name: np.broadcast_to(values, 60) for name, values in program._derived(passes, array).items()}
        loaded = 0
        for index in range(60):
            p = scalar(passes, index)
            wanted = follows(p, array)
            wanted["first_step"] = loaded % array.weight_depth
            loaded += wanted["tile_loads"] * p.steps
            assert {name: int(values[index]) for name, values in derived.items()} == wanted
        assert loaded > array.weight_depth


def inside(p: Any, array: Any, images: ImageWords) -> dict[str, bool]:
    """Of one pass, by the sentence: whether each rule holds."""
    kept = p.save_width * (1 if p.inputs_resident else p.channel_tiles)
    waits = p.pool_size == 2 and p.row_tiles >= 2 and (p.pool_stride == 1 or array.rows % 2 != 0)
    usual = p.positions if p.stride == 1 else p.stride
    own_blocks = p.depthwise or array.columns % array.lanes
    by_row = own_blocks and p.kernel_height == p.stride and p.kernel_groups == 1 and p.advance == 1
    table = int(images.tables[p.requantiser_base])
    least = p.limits % (1 << 16)
    column_step = 1 if p.stride == 1 else p.advance
    farthest = (p.out_width - 1) * column_step - p.pad_left + sum(p.group_pixels for _ in range(p.kernel_groups - 1))
    lone = p.kernel_groups == 1 or p.pool_stride in (-1, 0)
    reaches = (p.in_width == 1 or farthest >= p.in_width - 1) and farthest - (p.in_width - 1) <= 4095
    return {
        "as many words for every channel block": p.block_words * p.in_blocks == p.row_words,
        "0 where pixels are read": not p.pixel_input or not p.depthwise,
        "at most 63 where pixels are read": not p.pixel_input or p.pad_left < 64,
        "at most 1 where no pool is fused": p.pool_size == 2 or p.pool_stride in (-1, 0, 1),
        "at least 1 where a pool is fused": p.pool_size == 1 or p.pool_stride in (1, 2),
        "at least 1 where pixels are read": not p.pixel_input or p.pool_stride in (1, 2),
        "at least 1, or 0 where one place": p.stride != 0 or p.in_height == p.in_width == p.kernel_height == 1,
        "of two places, multiplied": p.pool_stride != -1 or (p.kernel_height, p.kernel_groups) in ((1, 2), (2, 1)),
        "0 where the engine compares windows": p.pool_stride != 0 or array.windows == 1,
        "advance": p.advance == usual or bool(by_row) or (p.stride, p.advance) == (4, 2),
        "1 for a pool": p.upscale == 1 or p.pool_size == p.pool_stride == 1,
        "1 of a lone column, else to the last column that is read": p.pixel_input
        or (p.group_pixels == 1 if lone else reaches),
        "of a least value of 0 or less": least == 0 or least > 0x7FFF,
        "where a map buffer is read": not p.in_buffer or p.stride in range(1, array.map_stride + 1),
        "whole slots within": p.last_slot % p.slot_words == 0 and p.last_slot + p.slot_words <= array.row_depth,
        "of sums that fit": not waits or kept <= array.kept_depth,
        "of a tile within": p.weights_base + p.channel_tiles * p.tile_beats <= images.weights,
        "requantisers.": p.requantiser_base + p.channels <= images.requantisers,
        "of requantisers with a table": table in (0, array.table_depth)
        and p.requantiser_base + p.channels + table <= images.requantisers,
    }


def test_what_lies_in_buffers_and_images_is_held_rule_by_rule() -> None:
    for array, seed in product(ARRAYS, (2, 3)):
        passes = drawn(array, seed, 200)
        random = np.random.default_rng(seed)
        tables = random.choice([0, 0, array.table_depth, 5], 100).astype(np.uint32)
        images = ImageWords(int(np.median(passes.weights_base + passes.channel_tiles * passes.tile_beats)), 80, tables)
        rules = list(program._inside(passes, array, images))
        wanted = [list(inside(scalar(passes, index), array, images).values()) for index in range(200)]
        assert len(rules) == len(wanted[0])
        told = list(inside(scalar(passes, 0), array, images))
        for number, (field, holds, _) in enumerate(rules):
            ours = np.broadcast_to(holds, 200).tolist()
            assert ours == [row[number] for row in wanted], f"{field}: {told[number]}"
            assert True in ours


def test_one_place_is_read_for_all_where_there_is_one_alone() -> None:
    """A stride of 0: of a map and a kernel of one row, and of one column."""
    ways = list(product((0, 1), (1, 2), (1, 2), (1, 2)))
    passes = drawn(ARRAYS[0], 4, len(ways))
    passes.stride, passes.in_height, passes.in_width, passes.kernel_height = np.array(ways, np.int64).T
    images = ImageWords(1 << 20, 80, np.zeros(100, np.uint32))
    flags = next(holds for field, holds, _ in program._inside(passes, ARRAYS[0], images) if field == "stride")
    assert flags.tolist() == [stride == 1 or sides == (1, 1, 1) for stride, *rest in ways for sides in [tuple(rest)]]


def test_each_word_and_the_padding_lie_between_their_ends() -> None:
    """The first rules, each from its least number to its greatest."""
    for array in ARRAYS[:2]:
        limits = program._ranges(array)
        for shift in (-1, 0, 1):
            passes = drawn(array, 9, 4)
            passes.pixel_input[:] = (0, 1, 0, 1)
            ends = [program._padding(passes, array)[end] for end in (0, 1)]
            for end in (0, 1):
                for field, pair in limits.items():
                    setattr(passes, field, np.full(4, pair[end] + shift))
                passes.pixel_input = np.array((0, 1, 0, 1))
                passes.around = ends[end] + shift
                rules = program._rules(SimpleNamespace(array=array), passes, ImageWords(0, 0, np.zeros(1, np.uint32)))  # type: ignore[arg-type]
                inside = shift == 0 or (shift > 0) == (end == 0)
                for field, (low, high) in limits.items():
                    named, flags, required = next(rules)
                    assert (named, required) == (field, (low, high))
                    if field != "pixel_input" and (inside is False or high > low):
                        assert np.all(flags) == inside, field
                named, flags, _ = next(rules)
                assert named == "around"
                assert bool(np.all(flags)) is inside


def test_refusal_is_of_the_class_of_what_is_required() -> None:
    low, high = np.array([1, 2, 3]), np.array([7, 8, 9])
    for required, kind, fields in (
        ("even", InvalidValueError, {"required": "even"}),
        (low, MismatchError, {"expected": 2}),
        ((low, high), RangeError, {"low": 2, "high": 8}),
        ((0, high), RangeError, {"low": 0, "high": 8}),
    ):
        error = program._refusal("steps", 5, required, 1)
        assert (type(error), vars(error)) == (kind, {"what": "steps", "got": 5, **vars(error), **fields})


def test_the_last_word_of_images_is_taken_and_no_other() -> None:
    """Exactly as many as there are; 256 values of a table behind the last requantiser too."""
    for offset in (-1, 0, 1):
        array = ARRAYS[0]
        passes = drawn(array, 5, 1)
        passes.requantiser_base[:] = 3
        weights = int((passes.weights_base + passes.channel_tiles * passes.tile_beats)[0])
        channels = int(passes.channels[0]) + 3
        for table in (0, 256):
            tables = np.full(100, table, np.uint32)
            rules = list(
                program._inside(passes, array, ImageWords(weights + offset, channels + table + offset, tables))
            )
            holds = {field: bool(np.all(flags)) for field, flags, _ in rules}  # the last rule of a field
            assert holds["weights_base"] == (offset >= 0)
            assert holds["requantiser_base"] == (offset >= 0)


# --- maps ------------------------------------------------------------------------------------------------------------


def maps(batch: int, depth: int = 300) -> Any:
    """Two layers of 100 passes each: of the input, and of two maps side by side; words have 8 bytes."""
    first, second = region(160, 400), region(0, 320, 2, 7, 3)
    layers = [
        SimpleNamespace(node=1, output=first, input_node=0, last_input_node=None, first_pass=0, last_pass=99),
        SimpleNamespace(node=2, output=second, input_node=0, last_input_node=1, first_pass=100, last_pass=199),
    ]
    array = array_of(map_depth=depth)
    return SimpleNamespace(input=region(80, 80), layers=layers, batch=batch, word_bytes=8, array=array)


def test_every_word_of_a_pass_lies_in_its_map() -> None:
    """By going through the words: of a row in DDR behind the one before, of a row on chip in the bank of its group."""
    for batch, depth in ((1, 300), (3, 300), (1, 45)):
        manifest, passes = maps(batch, depth), drawn(ARRAYS[0], 7, 200)
        rules: dict[str, Any] = {
            field: (holds, required) for field, holds, required in program._on_maps(manifest, passes)
        }
        ends = [(10, 10 + batch * 10, 20, 20 + batch * 50), (10, 20 + batch * 50, 0, batch * 40)]
        counts = {"in": 0, "out": 0}
        for index in range(200):
            p, layer = scalar(passes, index), index // 100
            limits = ends[layer]
            saved = times(p.out_height, max(1, p.pool_stride)) * p.upscale
            for side, height, pieces, words, buffer, (first, end) in (
                ("in", p.in_height, p.bursts, p.burst_words, p.in_buffer, limits[:2]),
                ("out", saved, p.out_blocks, p.save_width * p.value_words, p.out_buffer, limits[2:]),
            ):
                base, pitch, block = (getattr(p, f"{side}_{name}") for name in ("base", "row_pitch", "block_pitch"))
                last = max(
                    base + (y // 5 if buffer else y) * pitch + piece * block + words - 1
                    for y in range(height)
                    for piece in range(pieces)
                )
                named, place, turn = ((0, 0, 0), (2, 7, 3))[layer] if side == "out" else (0, 0, 0)
                fits = base >= place and last < depth if buffer else base >= first and last < end
                flags, required = rules[f"{side}_base"]
                assert bool(flags[index]) == fits, f"{side} of pass {index}"
                limits_told = (place, depth) if buffer else (first, end)
                assert (int(required[0][index]), int(required[1][index])) == limits_told
                counts[side] += fits
                assert bool(rules[f"{side}_buffer"][0][index]) == (buffer == named)
                turned = getattr(p, f"{side}_turn")
                assert bool(rules[f"{side}_turn"][0][index]) == (not buffer or turned == turn)
            assert bool(rules["value_words"][0][index]) == (p.value_words == 1 or p.out_buffer == 0)
        assert all(0 < count < 200 for count in counts.values())


def test_a_map_is_below_two_to_the_31_words() -> None:
    for side, pieces in (("in", "bursts"), ("out", "out_blocks")):
        height = "in_height" if side == "in" else "out_height"
        for value, pitch, beyond in ((height, "row_pitch", 5), (pieces, "block_pitch", 2)):
            passes = drawn(ARRAYS[0], 8, 200)
            passes.pool_stride[:], passes.upscale[:] = 1, 1
            getattr(passes, value)[:] = 11
            limit = MOST // (11 + beyond)
            for number, fits in ((limit, True), (limit + 1, False)):
                getattr(passes, f"{side}_{pitch}")[:] = number
                rules = {field: holds for field, holds, _ in program._on_maps(maps(1), passes)}
                assert bool(np.all(rules[f"{side}_{pitch}"])) == fits


# --- streams ---------------------------------------------------------------------------------------------------------


def test_words_hold_whole_pixels_and_rows_whole_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("host.contract.streaming._check_map", lambda *_: None)
    for lanes, pixels, width, stream_channels, wrong in (
        (8, 4, 12, 8, ""),
        (8, 4, 12, 10, ""),
        (8, 1, 5, 8, ""),
        (8, 5, 10, 8, "pixels"),
        (8, 4, 10, 8, "pixels"),
        (9, 4, 12, 8, "pixels"),
        (8, 4, 12, 9, "stream_channels"),
        (8, 4, 12, 6, "stream_channels"),
    ):
        output = SimpleNamespace(width=width, channels=7)
        numbers = {"lanes": lanes, "pixels": pixels, "stream_channels": stream_channels}
        layer: Any = SimpleNamespace(name="conv", **numbers, output=output)
        if not wrong:
            _check_layer(layer)
            continue
        with raises(InvalidValueError, where="conv", what=wrong, got=numbers[wrong]):
            _check_layer(layer)


def test_planes_hold_four_channels_of_the_picture_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("host.contract.systolic._check_region", lambda *_: None)

    def whole(channels: int, pixel_bytes: int, planes: int, row: int) -> Any:
        sides = {"channels": channels, "height": 5, "width": 10, "pixel_bytes": pixel_bytes, "row_bytes": row}
        return SimpleNamespace(input=SimpleNamespace(**sides, blocks=planes, bytes=5 * row), word_bytes=8)

    for right in ((3, 4, 1, 40), (4, 4, 1, 48), (5, 4, 2, 80), (64, 4, 16, 640)):
        _check_input(whole(*right))
    with raises(MismatchError, where="input", what="pixel_bytes", got=3, expected=4):
        _check_input(whole(3, 3, 1, 32))
    for channels, planes, needed in ((5, 1, 2), (4, 2, 1)):
        with raises(MismatchError, where="input", what="blocks", got=planes, expected=needed):
            _check_input(whole(channels, 4, planes, 80))
    with raises(RangeError, where="input", what="row_bytes", got=64, low=80):
        _check_input(whole(5, 4, 2, 64))
    with raises(InvalidValueError, where="input", what="row_bytes", got=88):
        _check_input(whole(5, 4, 2, 88))
