"""Modules of the engine against the golden arithmetic, with random gaps on every valid and ready."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cnn.datatype import DataType
from cnn.requantise import Requantiser, requantise
from tests.support.cases import cases
from tests.support.rtl.bench import CHAIN, COLUMNS, LANES, ROWS, SAVE_ROWS, Bench, packed, pass_of, unpacked
from tests.support.rtl.streams import PATIENCE, Sink, Stream, drive, pulse


@pytest.mark.parametrize("form", ["instantiated", "inferred"])
def test_chain_random_operands_give_sum_of_products(bench: Bench, form: str) -> None:
    """Check both forms of the DSPs with a new sum in every cycle, including the extremes of weights and values."""
    shift = {"instantiated": 18, "inferred": 17}[form]  # a DSP48E1 takes a bit or two less
    dice = np.random.default_rng(7)
    steps = 200
    w0, w1 = dice.integers(-127, 128, (2, steps, CHAIN))
    values = dice.integers(-128, 128, (steps, CHAIN))
    w0[0], w1[0], values[0] = -127, 127, -128
    w0[1], w1[1], values[1] = 127, 127, -128
    sums = []
    for cycle in range(steps + CHAIN + 3):
        at = [min(max(cycle - lane, 0), steps - 1) for lane in range(CHAIN)]
        bench.put(
            form,
            {
                "high": packed([int(w1[step, lane]) << shift for lane, step in enumerate(at)], 27),
                "low": packed([int(w0[step, lane]) for lane, step in enumerate(at)], 27),
                "value": packed([int(values[step, lane]) for lane, step in enumerate(at)], 18),
            },
        )
        bench.settle()
        sums.append(unpacked(bench.get(form, "sum"), 48, 1)[0])
        bench.edge()
    expected = ((w1 << shift) + w0) * values
    assert sums[CHAIN + 3 :] == expected.sum(axis=1).tolist()


@pytest.mark.parametrize("instance", ["short", "odd"])
def test_fifo_random_gaps_keep_words_in_order(bench: Bench, instance: str) -> None:
    words = random.Random(1).sample(range(1 << 16), 300)
    source = Stream(bench, instance, ("in_valid", "in_ready", "in_data"), words)
    sink = Sink(bench, instance, ("out_valid", "out_ready", "out_data"))
    assert drive(bench, [source], sink, len(words), 2) == words


def test_fifo_with_slack_loses_no_word(bench: Bench) -> None:
    """Use a producer whose pipeline has 3 stages and cannot stall, and a FIFO with 3 words of slack."""
    dice, words, pipeline, taken = random.Random(3), list(range(1, 301)), [0, 0, 0], []
    expected = list(words)
    for _ in range(PATIENCE):
        ready = dice.random() < 0.4
        bench.put("slack", {"in_valid": int(pipeline[-1] > 0), "in_data": pipeline[-1], "out_ready": int(ready)})
        bench.settle()
        issued = words.pop(0) if words and bench.get("slack", "in_ready") else 0
        if ready and bench.get("slack", "out_valid"):
            taken.append(bench.get("slack", "out_data"))
        bench.edge()
        pipeline = [issued, *pipeline[:-1]]
        if len(taken) == len(expected):
            break
    assert taken == expected


@pytest.mark.parametrize("base", [0x10000000, 0x2_0000_0FF0])
def test_bursts_of_commands_cross_no_page(bench: Bench, base: int) -> None:
    dice = random.Random(base)
    bench.put("bursts", {"base": base, "burst_ready": 1})
    for address, words in [
        (0, 1),
        (255, 2),
        (3, 1000),
        *((dice.randrange(5000), dice.randrange(1, 700)) for _ in "12345"),
    ]:
        bench.put("bursts", {"command_valid": 1, "command_address": address, "command_words": words})
        bench.settle()
        assert bench.get("bursts", "command_ready")
        bench.edge()
        bench.put("bursts", {"command_valid": 0})
        bench.settle()
        first = base + 16 * address
        while bench.get("bursts", "burst_valid"):
            at, beats = bench.get("bursts", "burst_address"), bench.get("bursts", "burst_length") + 1
            assert at == first
            assert beats <= 64
            assert at // 4096 == (at + 16 * beats - 1) // 4096
            first += 16 * beats
            bench.edge()
            bench.settle()
        assert first == base + 16 * (address + words)


@pytest.mark.parametrize(("steps", "positions"), [(1, 60), (3, 25), (9, 8)])
def test_array_random_gaps_gives_exact_sums(bench: Bench, steps: int, positions: int) -> None:
    dice = np.random.default_rng(steps)
    total = steps * positions
    activations = dice.integers(-128, 128, (total, ROWS, LANES))
    weights = dice.integers(-127, 128, (total, LANES, COLUMNS))
    activations[0], weights[0] = -128, 127
    expected = np.einsum("tml,tln->tmn", activations, weights).reshape(positions, steps, ROWS, COLUMNS).sum(axis=1)
    bench.put("array", {"steps": steps})
    pulse(bench, "array")
    steps_in = [packed(step.reshape(-1).tolist(), 8) for step in activations]
    weights_in = [packed(step.reshape(-1).tolist(), 8) for step in weights]
    streams = [
        Stream(bench, "array", ("activations_valid", "activations_ready", "activations"), steps_in),
        Stream(bench, "array", ("weights_valid", "weights_ready", "weights"), weights_in),
    ]
    sink = Sink(bench, "array", ("sums_valid", "sums_ready", "sums"))
    words = drive(bench, streams, sink, positions, 11)
    actual = [np.array(unpacked(word, 32, ROWS * COLUMNS)).reshape(ROWS, COLUMNS) for word in words]
    assert np.array_equal(actual, expected)


def test_requantise_extremes_equal_the_contract(bench: Bench) -> None:
    """Use two channel tiles, with some sums and shifts at their extremes."""
    dice = np.random.default_rng(5)
    channels, groups = 2 * COLUMNS, 60
    multiplier, negative = dice.integers(0, 1 << 16, (2, channels))
    multiplier[0] = negative[0] = 65535
    shift = dice.integers(1, 48, channels)
    shift[:4] = 1, 47, 16, 31
    by = Requantiser(dice.integers(-(1 << 30), 1 << 30, channels), multiplier, negative, shift)
    constants = [
        packed([int(by.bias[c]), int(multiplier[c] | (negative[c] << 16)), int(shift[c]), 0], 32)
        for c in range(channels)
    ]
    sums = dice.integers(-(1 << 30), 1 << 30, (groups, SAVE_ROWS, COLUMNS))
    sums[:20] >>= 20
    tiles = np.arange(groups) % 2
    least, greatest = -128, 127
    bench.put(
        "requantise",
        {"pass": pass_of(channels=channels, limits=(greatest << 16) + (least & 0xFFFF)), "command_ready": 1},
    )
    pulse(bench, "requantise")
    words = [
        (packed(group.reshape(-1).tolist(), 32) << 33) | (int(tile) << 1) | int(number == groups - 1)
        for number, (group, tile) in enumerate(zip(sums, tiles, strict=True))
    ]
    streams = [
        Stream(bench, "requantise", ("constant_valid", "constant_ready", "constant"), constants),
        Stream(bench, "requantise", ("group_valid", "group_ready", "group"), words),
    ]
    sink = Sink(bench, "requantise", ("result_valid", "result_ready", "result"))
    results = drive(bench, streams, sink, groups, 6)
    for word, group, tile in zip(results, sums, tiles, strict=True):
        own = slice(int(tile) * COLUMNS, (int(tile) + 1) * COLUMNS)
        part = Requantiser(by.bias[own], multiplier[own], negative[own], shift[own])
        expected = requantise(group.T.astype(np.int64), part, DataType(8, True)).T
        assert np.array_equal(np.array(unpacked(word, 16, SAVE_ROWS * COLUMNS)).reshape(SAVE_ROWS, COLUMNS), expected)
    assert bench.get("requantise", "done")


@cases("size, stride", [(1, 1), (2, 2), (2, 1)])
@cases("height, width, channel_tiles", [(7, 5, 2), (3, 4, 2), (1, 1, 2), (7, 1, 1)])
@cases("pauses", [0.3, 0.0])
def test_pool_windows_give_their_maximum(
    bench: Bench, size: int, stride: int, height: int, width: int, channel_tiles: int, pauses: float
) -> None:
    """Use tiles with an odd number of rows, so that windows cross two tiles.

    No position beyond the right and the bottom edge is the largest. Without pauses, a tile of one column reads the row
    that the tile above kept a cycle before.
    """
    dice = np.random.default_rng(size * height)
    row_tiles = -(-height // ROWS)
    sums = dice.integers(-(1 << 31), 1 << 31, (channel_tiles, row_tiles * ROWS, width, COLUMNS))
    saved_width = -(-width // stride)
    one_pass = pass_of(
        pool_size=size, pool_stride=stride, out_height=height, out_width=width, row_tiles=row_tiles,
        channel_tiles=channel_tiles, save_width=saved_width,
    )  # fmt: skip
    for instance in ("tiles", "pool"):
        bench.put(instance, {"pass": one_pass})
    words = [
        packed(sums[channel, tile * ROWS : (tile + 1) * ROWS, x].reshape(-1).tolist(), 32)
        for tile in range(row_tiles)
        for channel in range(channel_tiles)
        for x in range(width)
    ]
    pulse(bench, "tiles")
    pulse(bench, "pool")
    source = Stream(bench, "pool", ("sums_valid", "sums_ready", "sums"), words)
    sink, dice_of_gaps, groups = Sink(bench, "pool", ("group_valid", "group_ready", "group")), random.Random(9), []
    for _ in range(PATIENCE):
        source.offer(dice_of_gaps, pauses)
        ready = dice_of_gaps.random() >= pauses
        bench.put("pool", {"group_ready": int(ready)})
        bench.settle()
        # The planner's output is the pool's input, in the same cycle.
        bench.put("pool", {"tile_valid": bench.get("tiles", "tile_valid"), "tile": bench.get("tiles", "tile")})
        bench.settle()
        bench.put("tiles", {"tile_ready": bench.get("pool", "tile_ready")})
        bench.settle()
        source.move()
        sink.move(ready)
        bench.edge()
        groups = sink.words
        if groups and groups[-1] & 1:
            break
    assert groups[-1] & 1, "the last group must be marked"
    pooled = np.full((channel_tiles, height + size, width + size, COLUMNS), -(1 << 31))
    pooled[:, :height, :width] = sums[:, :height]
    windows = [
        pooled[:, dy : dy + height : stride, dx : dx + width : stride] for dy in range(size) for dx in range(size)
    ]
    expected = np.max(windows, axis=0)
    seen = {}
    order = iter(groups)
    above = [0] * channel_tiles
    for tile in range(row_tiles):
        for channel in range(channel_tiles):
            rows = saved_rows(size, stride, height, tile, row_tiles)
            for x in range(saved_width):
                for first in range(0, rows, SAVE_ROWS):
                    word = next(order)
                    assert (word >> 1) & 0xFFFFFFFF == channel
                    values = np.array(unpacked(word >> 33, 32, SAVE_ROWS * COLUMNS)).reshape(SAVE_ROWS, COLUMNS)
                    for row in range(first, min(first + SAVE_ROWS, rows)):
                        seen[channel, above[channel] + row, x] = values[row - first]
            above[channel] += rows
    assert next(order, None) is None
    assert above == [expected.shape[1]] * channel_tiles
    for (channel, row, x), values in seen.items():
        assert np.array_equal(values, expected[channel, row, x]), (channel, row, x)


def saved_rows(size: int, stride: int, height: int, tile: int, row_tiles: int) -> int:
    """Return the number of rows that a tile saves: rows with complete windows, and in the last tile all that remain."""
    before, through = tile * ROWS, min((tile + 1) * ROWS, height)
    if size == 1:
        return through - before
    last = tile + 1 == row_tiles
    if stride == 2:
        return (-(-through // 2) if last else through // 2) - before // 2
    return through - before - int(not last) + int(tile > 0)
