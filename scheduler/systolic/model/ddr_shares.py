"""Shares of the DDR: ports that are busy at the same time are served a chunk each, in turn (simulation/memory.cpp).

A chunk is 64 bytes, or what is left of a burst: ports of short bursts get less. Where the ports ask for more than the
DDR gives, a turn takes as long as all their chunks; a port whose own chunk takes longer than that is not slowed down.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from scheduler.hardware.ddr import BURST_WORDS, DDR_CHUNK, milli_cycles
from scheduler.systolic.model.arrays import Numbers
from scheduler.systolic.model.grid import PassGrid, Times, most

MANY_CHUNKS = 8
"""Chunks of a burst of which a last, smaller one does not matter."""

ROWS, WEIGHTS, SAVES = "rows", "weights", "saves"


@dataclass(frozen=True, eq=False)
class Ports:
    """Of one kind. width: bytes a word; part: words of a burst, which is served in chunks."""

    number: Numbers
    width: Numbers
    part: Numbers


@dataclass(frozen=True, eq=False)
class Shares:
    """Cycles a word of each kind of port, by who else is busy."""

    grid: PassGrid

    @staticmethod
    @lru_cache(maxsize=2)
    def of(grid: PassGrid) -> Shares:
        return Shares(grid)

    @cached_property
    def ports(self) -> dict[str, Ports]:
        grid, arrays, tilings = self.grid, self.grid.arrays, self.grid.tilings
        word, wide, whole = np.int64(arrays.word_bytes), arrays.port_bytes, np.int64(BURST_WORDS)
        left = np.minimum(grid.columns, arrays.chunk).astype(np.int64) * grid.shape.value_words
        return {
            ROWS: _ports(arrays.map_ports, word, tilings.words // tilings.bursts),
            SAVES: _ports(arrays.map_ports, word, left),
            WEIGHTS: _ports(arrays.weight_ports, wide, whole),
        }

    @cached_property
    def _paces(self) -> dict[frozenset[str], dict[str, Times]]:
        return {}

    def paces(self, *busy: str) -> dict[str, Times]:
        """Of every busy kind of ports."""
        key = frozenset(busy)
        if key not in self._paces:
            self._paces[key] = self._simulated(busy)
        return self._paces[key]

    def _simulated(self, busy: tuple[str, ...]) -> dict[str, Times]:
        numbers = [n for kind in busy for n in (self.ports[kind].number, self.ports[kind].width, self.ports[kind].part)]
        grid = np.broadcast_arrays(*numbers)
        _, firsts, where = np.unique(_keys(numbers), return_index=True, return_inverse=True)
        cases = np.stack([n.ravel()[firsts] for n in grid], axis=1).tolist()
        milli = [
            milli_cycles(tuple(zip(case[0::3], case[1::3], case[2::3], strict=True)), self.grid.ddr.milli_bytes)
            for case in cases
        ]
        paces = np.asarray(milli, np.float64)[where.ravel()] / 1000
        return {kind: paces[:, at].reshape(grid[0].shape) for at, kind in enumerate(busy)}

    def lost(self, kind: str, words: Times, others: dict[str, Times]) -> Times:
        """Cycles that ports of ``kind`` lose on ``words`` each while two others move so many bytes, and by themselves
        where they ask for more than the DDR gives."""
        (first, its), (second, bytes_) = others.items()
        a, b = (self._words(first, its), self._words(second, bytes_))
        both, left, right = self.paces(kind, first, second), self.paces(kind, first), self.paces(kind, second)
        together = np.minimum(a * both[first], b * both[second])
        alone_a, alone_b = (a - together / both[first]) * left[first], (b - together / both[second]) * right[second]
        most_ = words * (np.where((a > 0) & (b > 0), both[kind], np.where(a > 0, left[kind], right[kind])) - 1)
        spent = sum(t * (1 - 1 / p[kind]) for t, p in ((together, both), (alone_a, left), (alone_b, right)))
        return most(np.minimum(spent, most_), words * (self.paces(kind)[kind] - 1))

    def _words(self, kind: str, bytes_: Times) -> Times:
        ports = self.ports[kind]
        return np.asarray(bytes_ / (ports.number * ports.width), np.float64)


def _keys(numbers: list[Numbers]) -> Numbers:
    """One number for each combination on the grid: plain integers sort much faster than columns."""
    key = np.zeros((), np.int64)
    for n in numbers:
        values, ranks = np.unique(n, return_inverse=True)
        key = key * len(values) + ranks.reshape(np.shape(n))
    return np.asarray(key, np.int64)


def _ports(number: Numbers, width: Numbers, burst: Numbers) -> Ports:
    """Bursts of many or of whole chunks are one case."""
    part = np.minimum(burst, BURST_WORDS)
    whole = (part * width % DDR_CHUNK == 0) | (part * width > MANY_CHUNKS * DDR_CHUNK)
    return Ports(number, width, np.asarray(np.where(whole, BURST_WORDS, part), np.int64))
