"""Shares of the DDR: the slowdown of a port while other ports are busy (hls_templates/simulation/memory.cpp).

The DDR serves the busy ports in turn, one chunk each:

    DDR     rows 0 │ rows 1 │ weights 0 │ weights 1 │ rows 0 │ …        chunks of 64 bytes, or the rest of a burst
            └──────────────── one turn ─────────────┘

A port with short bursts moves fewer bytes per turn. If the ports request more than the DDR can move, a turn takes the
time of all its chunks. A port whose own chunk takes longer than a turn is not slowed down. ``milli_cycles`` in
scheduler/hardware/ddr.py counts this for one set of ports. This module calls it once for each distinct set of ports on
a grid of arrays and tilings.
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
"""Chunks per burst from which on a smaller last chunk is neglected."""

ROWS, WEIGHTS, SAVES = "rows", "weights", "saves"
"""Kinds of ports. They read rows, read weights, and write results."""


@dataclass(frozen=True, eq=False)
class Ports:
    """The AXI ports of one kind (that read rows, read weights, or write results): their number, width and burst length.

    Attributes:
        number: The number of ports.
        width: Bytes per word.
        burst: Words per burst. The DDR serves a burst in chunks.
    """

    number: Numbers
    width: Numbers
    burst: Numbers

    @cached_property
    def ranked(self) -> tuple[list[tuple[int, int, int]], Numbers]:
        """The distinct port settings (number, width, burst), and the index of the setting for each array and tiling."""
        numbers = (self.number, self.width, self.burst)
        _, firsts, ranks = np.unique(_keys(numbers), return_index=True, return_inverse=True)
        grid = np.broadcast_arrays(*numbers)
        cases = np.stack([values.ravel()[firsts] for values in grid], axis=1).tolist()
        return [(number, width, burst) for number, width, burst in cases], ranks.reshape(grid[0].shape)


def save_ports(grid: PassGrid) -> Numbers:
    """Return the number of DDR ports that the results of a layer keep busy.

    These are the map ports. A layer with a residual add uses a single port instead. Its write side and its read side
    count as two ports if it both writes its map to DDR and reads the other map from there.
    """
    shape = grid.shape
    sides = max(1, int(not shape.to_chip) + int(adds_from_ddr(shape)))
    return np.full_like(grid.arrays.map_ports, sides) if shape.added else grid.arrays.map_ports


@dataclass(frozen=True, eq=False)
class Shares:
    """The cycles per word of each kind of DDR port in one pass of a layer, depending on which other ports are busy."""

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
        """Return the cycles per word of each kind of port in ``busy``, while exactly these kinds access the DDR."""
        key = frozenset(busy)
        if key not in self._paces:
            self._paces[key] = self._simulated(busy)
        return self._paces[key]

    def _simulated(self, busy: tuple[str, ...]) -> dict[str, Times]:
        """Return the simulated cycles per word of each busy kind of port, for all arrays and tilings."""
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

    def lost_cycles(self, kind: str, words: Times, rivals: dict[str, Times]) -> Times:
        """Return the cycles that each port of ``kind`` loses because other ports access the DDR at the same time.

        At first both rivals are busy, then only the rival with more bytes to move, then neither. The ports of
        ``kind`` can lose cycles alone too, if they request more than the DDR can move:

            rival a    ├───────────────┤
            rival b    ├────────┤
            pace       │  both  │ a    │ alone

        Args:
            kind: The kind of the ports.
            words: Words that each of these ports moves.
            rivals: The bytes that each of two other kinds of ports moves meanwhile.
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
    """Return the ``Shares`` of a pass, the port slowdowns by shared DDR, from a cache."""
    return Shares(grid)


def _keys(numbers: Sequence[Numbers]) -> Numbers:
    """Return one integer per array and tiling that stands for its combination of ``numbers``. Integers sort much faster
    than tuples."""
    key = np.zeros((), np.int64)
    for number in numbers:
        values, ranks = np.unique(number, return_inverse=True)
        key = key * len(values) + ranks.reshape(np.shape(number))
    return np.asarray(key, np.int64)


def _ports(number: Numbers, width: Numbers, burst: Numbers) -> Ports:
    """Return the ports of one kind, with burst lengths rounded so that few DDR simulations are needed.

    Bursts of many chunks, and bursts of whole chunks, all get the length BURST_WORDS, because they share alike.
    """
    words = np.minimum(burst, BURST_WORDS)
    whole_chunks = (words * width % DDR_CHUNK == 0) | (words * width > MANY_CHUNKS * DDR_CHUNK)
    return Ports(number, width, np.asarray(np.where(whole_chunks, BURST_WORDS, words), np.int64))
