"""Shares of the DDR: how much slower ports are while others are busy too (hls_templates/simulation/memory.cpp).

Ports that are busy at the same time are served a chunk each, in turn:

    DDR     rows 0 │ rows 1 │ weights 0 │ weights 1 │ rows 0 │ …        chunks of 64 bytes, or what is left of a burst
            └──────────────── one turn ─────────────┘

Ports of short bursts get less in a turn. Where the ports ask for more than the DDR gives, a turn takes as long as all
its chunks; a port whose own chunk takes longer than that is not slowed down. ``milli_cycles`` of
scheduler/hardware/ddr.py counts it for one set of ports; here it is looked up for a grid of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod

import numpy as np

from scheduler.hardware.ddr import BURST_WORDS, DDR_CHUNK, milli_cycles
from scheduler.systolic.model.arrays import Numbers
from scheduler.systolic.model.grid import PassGrid, Times, latest
from scheduler.systolic.shape import adds_from_ddr

MANY_CHUNKS = 8
"""Chunks of a burst of which a last, smaller one does not matter."""

ROWS, WEIGHTS, SAVES = "rows", "weights", "saves"
"""Kinds of ports: those that read rows, read weights, write results."""


@dataclass(frozen=True, eq=False)
class Ports:
    """The ports of one kind. width: bytes a word; burst: words, which are served in chunks."""

    number: Numbers
    width: Numbers
    burst: Numbers

    @cached_property
    def ranked(self) -> tuple[list[tuple[int, int, int]], Numbers]:
        """The distinct (number, width, burst), and which of them each place of the grid has."""
        numbers = (self.number, self.width, self.burst)
        _, firsts, ranks = np.unique(_keys(numbers), return_index=True, return_inverse=True)
        grid = np.broadcast_arrays(*numbers)
        cases = np.stack([values.ravel()[firsts] for values in grid], axis=1).tolist()
        return [(number, width, burst) for number, width, burst in cases], ranks.reshape(grid[0].shape)


def save_ports(grid: PassGrid) -> Numbers:
    """Return how many ports results keep busy: those of maps, or the sides of the one that writes sums and reads a
    map."""
    shape = grid.shape
    sides = max(1, int(not shape.to_chip) + int(adds_from_ddr(shape)))
    return np.full_like(grid.arrays.map_ports, sides) if shape.added else grid.arrays.map_ports


@dataclass(frozen=True, eq=False)
class Shares:
    """Cycles a word of each kind of port in one pass, by who else is busy."""

    grid: PassGrid

    @cached_property
    def ports(self) -> dict[str, Ports]:
        grid, arrays, tilings = self.grid, self.grid.arrays, self.grid.tilings
        word = np.int64(arrays.word_bytes)
        saved = np.minimum(grid.columns, arrays.chunk).astype(np.int64) * grid.shape.value_words
        return {
            ROWS: _ports(arrays.map_ports, word, tilings.words // tilings.bursts),
            SAVES: _ports(save_ports(grid), word, saved),
            WEIGHTS: _ports(arrays.weight_ports, arrays.port_bytes, np.int64(BURST_WORDS)),
        }

    @cached_property
    def _paces(self) -> dict[frozenset[str], dict[str, Times]]:
        return {}

    def paces(self, *busy: str) -> dict[str, Times]:
        """Cycles a word of each of these kinds of ports, while exactly these are busy."""
        key = frozenset(busy)
        if key not in self._paces:
            self._paces[key] = self._simulated(busy)
        return self._paces[key]

    def _simulated(self, busy: tuple[str, ...]) -> dict[str, Times]:
        """Each distinct set of ports on the grid is simulated once."""
        ranked = [self.ports[kind].ranked for kind in busy]
        counts = [len(cases) for cases, _ in ranked]
        place = np.zeros((), np.int64)
        for count, (_, ranks) in zip(counts, ranked, strict=True):
            place = place * count + ranks
        paces = np.ones((prod(counts), len(busy)))
        for present in np.unique(place):
            sets = zip(np.unravel_index(present, counts), ranked, strict=True)
            paces[present] = milli_cycles(tuple(cases[rank] for rank, (cases, _) in sets), self.grid.ddr.milli_bytes)
        return {kind: paces[place, index] / 1000 for index, kind in enumerate(busy)}

    def lost(self, kind: str, words: Times, rivals: dict[str, Times]) -> Times:
        """Cycles that ports of ``kind`` lose on ``words`` each while two other kinds move so many bytes, and by
        themselves where they ask for more than the DDR gives.

        For a while both rivals are busy, then the one with more to move, then none:

            rival a    ├───────────────┤
            rival b    ├────────┤
            pace       │  both  │ a    │ alone
        """
        (kind_a, bytes_a), (kind_b, bytes_b) = rivals.items()
        words_a, words_b = self._words(kind_a, bytes_a), self._words(kind_b, bytes_b)
        both, with_a, with_b = self.paces(kind, kind_a, kind_b), self.paces(kind, kind_a), self.paces(kind, kind_b)
        together = np.minimum(words_a * both[kind_a], words_b * both[kind_b])
        alone_a = (words_a - together / both[kind_a]) * with_a[kind_a]
        alone_b = (words_b - together / both[kind_b]) * with_b[kind_b]
        one_rival = np.where(words_a > 0, with_a[kind], with_b[kind])
        limit = words * (np.where((words_a > 0) & (words_b > 0), both[kind], one_rival) - 1)
        phases = ((together, both), (alone_a, with_a), (alone_b, with_b))
        lost = sum(cycles * (1 - 1 / paces[kind]) for cycles, paces in phases)
        return latest(np.minimum(lost, limit), words * (self.paces(kind)[kind] - 1))

    def _words(self, kind: str, bytes_: Times) -> Times:
        ports = self.ports[kind]
        return np.asarray(bytes_ / (ports.number * ports.width), np.float64)


@lru_cache(maxsize=2)
def shares_of(grid: PassGrid) -> Shares:
    """The shares of a pass; what is looked up once is kept with them."""
    return Shares(grid)


def _keys(numbers: Sequence[Numbers]) -> Numbers:
    """One number for each combination on the grid: plain integers sort much faster than columns."""
    key = np.zeros((), np.int64)
    for number in numbers:
        values, ranks = np.unique(number, return_inverse=True)
        key = key * len(values) + ranks.reshape(np.shape(number))
    return np.asarray(key, np.int64)


def _ports(number: Numbers, width: Numbers, burst: Numbers) -> Ports:
    """Bursts of many chunks, and those of whole chunks, are one case."""
    words = np.minimum(burst, BURST_WORDS)
    whole_chunks = (words * width % DDR_CHUNK == 0) | (words * width > MANY_CHUNKS * DDR_CHUNK)
    return Ports(number, width, np.asarray(np.where(whole_chunks, BURST_WORDS, words), np.int64))
