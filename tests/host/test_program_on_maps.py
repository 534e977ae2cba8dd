"""Places of maps, weights and requantisers of a pass: each rule against integer arithmetic, word by word."""

from __future__ import annotations

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


def test_rules_of_images_accept_the_last_word_and_none_beyond() -> None:
    """Check images with one word less, with exactly the needed words, and with one more.

    A table of 256 values may follow the last requantiser.
    """
    for offset in (-1, 0, 1):
        array = ARRAYS[0]
        passes = drawn(array, 5, 1)
        passes.requantiser_base[:] = 3
        weights = int((passes.weights_base + passes.channel_tiles * passes.tile_beats)[0])
        channels = int(passes.channels[0]) + 3
        for table in (0, 256):
            tables = np.full(100, table, np.uint32)
            images = ImageWords(weights + offset, channels + table + offset, tables)
            rules = program._images(passes, array.table_depth, images)
            holds = {rule.field: bool(np.all(rule.holds)) for rule in rules}  # the last rule of a field
            assert holds["weights_base"] == (offset >= 0)
            assert holds["requantiser_base"] == (offset >= 0)


# --- maps ------------------------------------------------------------------------------------------------------------


def maps(batch: int, depth: int = 300) -> Any:
    """Return two layers of 100 passes each. The second layer reads the input and the first layer's map.

    Words have 8 bytes.
    """
    first, second = region(160, 400), region(0, 320, 2, 7, 3)
    layers = [
        SimpleNamespace(node=1, output=first, input_node=0, last_input_node=None, first_pass=0, last_pass=99),
        SimpleNamespace(node=2, output=second, input_node=0, last_input_node=1, first_pass=100, last_pass=199),
    ]
    array = array_of(map_depth=depth)
    return SimpleNamespace(input=region(80, 80), layers=layers, batch=batch, word_bytes=8, array=array)


def test_rules_of_maps_equal_the_addresses_of_all_words() -> None:
    """Compare with the addresses of all words. On chip, five rows share an address, one row in each bank."""
    for batch, depth in ((1, 300), (3, 300), (1, 45)):
        manifest, passes = maps(batch, depth), drawn(ARRAYS[0], 7, 200)
        rules: dict[str, Any] = {rule.field: (rule.holds, rule.required) for rule in program._on_maps(manifest, passes)}
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


def test_rules_of_maps_limit_addresses_to_31_bits() -> None:
    for side, pieces in (("in", "bursts"), ("out", "out_blocks")):
        height = "in_height" if side == "in" else "out_height"
        for value, pitch, beyond in ((height, "row_pitch", 5), (pieces, "block_pitch", 2)):
            passes = drawn(ARRAYS[0], 8, 200)
            passes.pool_stride[:], passes.upscale[:] = 1, 1
            getattr(passes, value)[:] = 11
            limit = MOST // (11 + beyond)
            for number, fits in ((limit, True), (limit + 1, False)):
                getattr(passes, f"{side}_{pitch}")[:] = number
                rules = {rule.field: rule.holds for rule in program._on_maps(maps(1), passes)}
                assert bool(np.all(rules[f"{side}_{pitch}"])) == fits


# --- streams ---------------------------------------------------------------------------------------------------------


def test_streaming_layer_with_partial_pixels_or_words_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_systolic_input_of_wrong_planes_or_rows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
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
