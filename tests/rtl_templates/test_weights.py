"""Weights in the weight buffer: each tile is fed as often as it is used, while other tiles are loaded."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.support.cases import cases
from tests.support.rtl.bench import COLUMNS, LANES, NUMBERS, Bench, packed, pass_of
from tests.support.rtl.streams import PATIENCE, Sink, Stream, pulse

TURNS = COLUMNS  # beats per step: one port gives one word per beat
DEPTH = NUMBERS["WEIGHT_DEPTH"]


@dataclass(frozen=True)
class Tiles:
    """A pass and its channel tiles.

    Attributes:
        steps: Steps per channel tile.
        count: The number of channel tiles.
        positions: Positions for which each use feeds the steps of its tile.
        rounds: Uses of each channel tile.
        stay: Whether a tile is loaded once for all its uses.
    """

    steps: int
    count: int
    positions: int
    rounds: int = 1
    stay: bool = False

    @property
    def loads(self) -> int:
        return self.count * (1 if self.stay else self.rounds)

    def words(self, first_step: int) -> int:
        uses, beats = self.count * self.rounds, self.steps * TURNS
        return pass_of(
            steps=self.steps, channel_tiles=self.count, tile_uses=uses, tile_loads=self.loads, tile_beats=beats,
            load_beats=self.loads * beats, resident=int(self.stay), weight_feeds=self.steps * self.positions,
            first_step=first_step,
        )  # fmt: skip


def feed(bench: Bench, passes: list[Tiles], gaps: float) -> tuple[list[int], list[int], list[int]]:
    """Return the weights fed in all passes, the expected weights, and the cycles of each pass."""
    dice, first_step = random.Random(3), 5
    loaded = [[dice.getrandbits(LANES * COLUMNS * 8) for _ in range(p.loads * p.steps)] for p in passes]
    beats = [word >> (LANES * 8 * turn) for steps in loaded for word in steps for turn in range(TURNS)]
    source = Stream(bench, "feed", ("beats_valid", "beats_ready", "beats"), beats)
    sink, expected, cycles = Sink(bench, "feed", ("weights_valid", "weights_ready", "weights")), [], []
    for index, tiles in enumerate(passes):
        for use in range(tiles.count * tiles.rounds):
            begin = (use % tiles.count if tiles.stay else use) * tiles.steps
            expected += loaded[index][begin : begin + tiles.steps] * tiles.positions
        following = passes[index + 1].steps * TURNS if index + 1 < len(passes) else 0
        plan = packed([0, following, tiles.loads - 1], 32) | int(index == 0) << 96
        bench.put("feed", {"pass": tiles.words(first_step), "plan": plan})
        pulse(bench, "feed")
        cycles.append(0)
        while not (bench.get("feed", "done") and len(sink.words) == len(expected)):
            cycles[-1] += 1
            assert cycles[-1] < PATIENCE
            source.offer(dice, gaps)
            ready = dice.random() >= gaps
            bench.put("feed", {"weights_ready": int(ready)})
            bench.settle()
            source.move()
            sink.move(ready)
            bench.edge()
            bench.settle()
        first_step = (first_step + tiles.loads * tiles.steps) % DEPTH
    assert not source.words
    return sink.words, expected, cycles


@cases("gaps", [0, 0.4])
@cases(
    "passes",
    [
        [Tiles(32, 3, 8), Tiles(32, 2, 9)],  # two tiles fill the buffer, and arrive faster than they are fed
        [Tiles(7, 5, 4), Tiles(40, 2, 2), Tiles(24, 1, 5)],
        [Tiles(7, 3, 2, rounds=3, stay=True), Tiles(20, 2, 2, rounds=2, stay=True), Tiles(1, 9, 3, rounds=2)],
        [Tiles(6, 1, 3, rounds=4), Tiles(9, 7, 1, stay=True)],
    ],
)
def test_feed_weights_tiles_are_fed_for_each_use(bench: Bench, passes: list[Tiles], gaps: float) -> None:
    actual, expected, _ = feed(bench, passes, gaps)
    assert actual == expected


def test_feed_weights_long_next_tile_is_loaded_during_feeds(bench: Bench) -> None:
    """Check the cycles of a pass whose six tiles are fed for 56 cycles each, 336 in all.

    Its loads take 5 · 28 + 160 beats; 160 beats are the next pass's first tile.
    """
    tiles, following = Tiles(7, 6, 8), Tiles(40, 1, 2)
    actual, expected, cycles = feed(bench, [tiles, following], 0)
    assert actual == expected
    first, between, through = 7 * TURNS, 2 * tiles.count, 8
    assert cycles[0] <= first + tiles.count * 56 + between + through
    assert cycles[1] <= 80 + through
