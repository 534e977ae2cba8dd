"""All choices of a network on a board: what each takes, and what stands between any two neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from boards.board import Board
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from scheduler.streaming.area.cost import between_usage, weights_of
from scheduler.streaming.area.memory import Usage
from scheduler.streaming.area.parts import block_usage
from scheduler.streaming.search.candidates import Options, candidates
from scheduler.streaming.search.prune import Numbers, Side, Vectors, needed

Key = tuple[int, ...]
"""What a neighbour sees of a fold at one stream: its words, padding included."""

RESOURCES = ("lut", "lutram", "dsp", "bram18", "uram", "ddr_bits")


@dataclass(frozen=True, eq=False)
class Block:
    """The choices of a block: folds, cycles a frame [choice], resources [choice, resource], and of each of its streams
    (inputs, then outputs) which words a choice has there."""

    folds: list[g.Fold]
    cycles: Numbers
    taken: Numbers
    words: list[Numbers]


@dataclass(frozen=True)
class Stream:
    """From block ``writer`` to input ``port`` of block ``reader``."""

    writer: int
    output: int
    reader: int
    port: int


@dataclass(frozen=True, eq=False)
class Table:
    """Between words that leave and words that are taken: resources [leaves, takes, resource], cycles [leaves, takes];
    infinite where they cannot meet."""

    taken: Vectors
    cycles: Vectors


@dataclass(frozen=True, eq=False)
class Space:
    graph: g.StreamGraph
    board: Board
    blocks: list[Block]
    streams: list[Stream]
    tables: list[Table]

    @property
    def weights(self) -> Numbers:
        """Price of one of each resource."""
        return np.array(vector(weights_of(self.board)), np.int64)

    def words(self, stream: int, writes: bool) -> Numbers:
        """Of every choice of the writer or the reader of ``stream``."""
        s = self.streams[stream]
        if not writes:
            return self.blocks[s.reader].words[s.port]
        return self.blocks[s.writer].words[len(self.graph.blocks[s.writer].inputs) + s.output]

    def cycle_counts(self, most: int | None = None) -> list[int]:
        """Every number of cycles that a block or a converter can take, ascending: a frame takes one of them."""
        found = [block.cycles for block in self.blocks]
        for table in self.tables:
            found.append(table.cycles[np.isfinite(table.cycles)].astype(np.int64))
        least = max(int(block.cycles.min()) for block in self.blocks)
        return [int(c) for c in np.unique(np.concatenate(found)) if c >= least and (most is None or c <= most)]

    def within(self, cycles: int) -> list[Numbers]:
        """Of every block the choices that keep ``cycles`` and that no other is better than, whatever stands beside."""
        kept = [np.flatnonzero(block.cycles <= cycles) for block in self.blocks]
        if all(len(some) for some in kept):
            for index in range(len(kept)):
                kept[index] = self._undominated(kept, index)
            for index in range(len(kept)):
                kept[index] = self._needed(kept, index, cycles)
        return kept

    def _undominated(self, kept: list[Numbers], index: int) -> Numbers:
        """Of choices with the same words those that no other is at least as good as: cheap, and most of the work."""
        block, mine = self.blocks[index], kept[index]
        alike: dict[tuple[int, ...], list[int]] = {}
        for choice in mine:
            alike.setdefault(tuple(int(w[choice]) for w in block.words), []).append(int(choice))
        found: list[int] = []
        for group in alike.values():
            rows = block.taken[group].astype(np.float64)
            found += [group[i] for i in needed(rows, block.taken[group] @ self.weights, [])]
        return np.array(sorted(found), np.int64)

    def _needed(self, kept: list[Numbers], index: int, cycles: int) -> Numbers:
        block, mine = self.blocks[index], kept[index]
        sides = [
            self._side(kept, number, index, cycles)
            for number, stream in enumerate(self.streams)
            if index in (stream.writer, stream.reader)
        ]
        rows = block.taken[mine]
        return mine[needed(rows.astype(np.float64), rows @ self.weights, sides)]

    def _side(self, kept: list[Numbers], stream: int, index: int, cycles: int) -> Side:
        """``stream`` as block ``index`` sees it, over the words that are left on both ends."""
        writes = self.streams[stream].writer == index
        other = self.streams[stream].reader if writes else self.streams[stream].writer
        ours, numbered = np.unique(self.words(stream, writes)[kept[index]], return_inverse=True)
        theirs = np.unique(self.words(stream, not writes)[kept[other]])
        between = self.between(stream, cycles)
        found = between[np.ix_(ours, theirs)] if writes else between[np.ix_(theirs, ours)].transpose(1, 0, 2)
        return Side(numbered, found)

    def between(self, stream: int, cycles: int) -> Vectors:
        """The table of ``stream`` where what is too slow cannot meet either."""
        table = self.tables[stream]
        return np.where((table.cycles <= cycles)[:, :, None], table.taken, np.inf)


def vector(usage: Usage) -> tuple[int, ...]:
    return tuple(int(getattr(usage, name)) for name in RESOURCES)


def space_of(graph: g.StreamGraph, board: Board, options: Options) -> Space:
    """Everything that there is to choose, counted once."""
    streams = [
        Stream(source.block, source.output, index, port)
        for index, block in enumerate(graph.blocks)
        for port, source in enumerate(block.inputs)
    ]
    folds = [candidates(graph, index, board, options) for index in range(len(graph.blocks))]
    keys = [_keys(graph, index, folds[index]) for index in range(len(graph.blocks))]
    blocks = [
        Block(
            folds[index],
            np.array([lanes.cycles(graph, index, fold) for fold in folds[index]], np.int64),
            np.array([vector(block_usage(graph, index, fold, board)) for fold in folds[index]], np.int64),
            [numbers for numbers, _ in keys[index]],
        )
        for index in range(len(graph.blocks))
    ]
    tables = [_table(graph, board, stream, folds, keys) for stream in streams]
    return Space(graph, board, blocks, streams, tables)


Keys = tuple[Numbers, list[int]]
"""The number of the words of every choice at a stream, and of every such number the first choice."""


def _keys(graph: g.StreamGraph, index: int, folds: Sequence[g.Fold]) -> list[Keys]:
    block = graph.blocks[index]
    found = [_numbered([in_key(graph, index, port, fold) for fold in folds]) for port in range(len(block.inputs))]
    return found + [
        _numbered([out_key(graph, index, out, fold) for fold in folds]) for out in range(len(block.outputs))
    ]


def _numbered(keys: list[Key]) -> Keys:
    numbers: dict[Key, int] = {}
    first: list[int] = []
    for at, key in enumerate(keys):
        if key not in numbers:
            numbers[key] = len(numbers)
            first.append(at)
    return np.array([numbers[key] for key in keys], np.int64), first


def in_key(graph: g.StreamGraph, index: int, port: int, fold: g.Fold) -> Key:
    block = graph.blocks[index]
    group = fold.pe if isinstance(block.op, g.VectorVector) else 0
    return lanes.in_lanes(block, fold, port), fold.m, lanes.in_values(graph, index, fold, port), group


def out_key(graph: g.StreamGraph, index: int, output: int, fold: g.Fold) -> Key:
    block = graph.blocks[index]
    depthwise = isinstance(block.op, g.Window) and block.op.depthwise
    values = lanes.out_values(graph, index, fold, output)
    return lanes.out_lanes(block, fold, output), lanes.out_pixels(block, fold), values, fold.simd if depthwise else 0


def _table(
    graph: g.StreamGraph, board: Board, stream: Stream, folds: list[list[g.Fold]], keys: list[list[Keys]]
) -> Table:
    s = stream
    leaves = keys[s.writer][len(graph.blocks[s.writer].inputs) + s.output][1]
    takes = keys[s.reader][s.port][1]
    taken = np.full((len(leaves), len(takes), len(RESOURCES)), np.inf)
    cycles = np.full((len(leaves), len(takes)), np.inf)
    source = g.Port(s.writer, s.output)
    gathered = isinstance(graph.blocks[s.writer].op, g.Window)
    for i, a in enumerate(leaves):
        writer = folds[s.writer][a]
        given = out_key(graph, s.writer, s.output, writer)
        for j, b in enumerate(takes):
            reader = folds[s.reader][b]
            if gathered and given[2:] != in_key(graph, s.reader, s.port, reader)[2:]:
                continue  # padding and groups of a window are those of its reader
            chain = lanes.between(graph, source, writer, s.reader, s.port, reader)
            cycles[i, j] = max((one.cycles for one in chain), default=0)
            taken[i, j] = vector(between_usage(graph, source, writer, s.reader, s.port, reader, board))
    return Table(taken, cycles)
