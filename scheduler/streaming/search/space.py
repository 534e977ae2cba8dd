"""All choices of folds for a network on a board, with the resources of blocks and of converters between them.

At each of its streams, the different words of a block's choices are numbered. Tables between two neighbouring blocks
are indexed by these numbers, because many choices have the same words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from boards.board import Board
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from scheduler.streaming.area.budget import area, unit_areas
from scheduler.streaming.area.parts import block_usage
from scheduler.streaming.area.total import edge_usage
from scheduler.streaming.area.usage import StreamingUsage
from scheduler.streaming.model.converters import Edge
from scheduler.streaming.model.cycles import block_cycles
from scheduler.streaming.model.waiting import UNTRACED, TracedStreams
from scheduler.streaming.search.candidates import Options, candidates
from scheduler.streaming.search.prune import Numbers, Side, Vectors, needed

Key = tuple[int, ...]
"""The properties of a fold that matter to the neighbour at one stream: the words, with channel padding."""

RESOURCES = ("lut", "lutram", "dsp", "bram18", "uram", "ddr_bits")


@dataclass(frozen=True, eq=False)
class BlockChoices:
    """The candidate folds of one block, with the cycles, the resources and the stream words of each.

    Attributes:
        folds: The fold of each choice.
        cycles: The cycles per frame, [choice].
        usage: The resources without converters and FIFOs, [choice, resource].
        words: For each stream of the block (inputs, then outputs) the number of the word format of each choice,
            [choice].
    """

    folds: list[g.Fold]
    cycles: Numbers
    usage: Numbers
    words: list[Numbers]


@dataclass(frozen=True)
class Stream:
    """A stream of the graph, from output ``output`` of block ``writer`` to input ``port`` of block ``reader``."""

    writer: int
    output: int
    reader: int
    port: int


@dataclass(frozen=True, eq=False)
class Between:
    """The cost of the converters and FIFOs of one stream, as a table over the word formats at its two ends.

    Values are infinite for words that are not compatible.

    Attributes:
        usage: The resources, [written words, read words, resource].
        cycles: The cycles per frame of the slowest converter, [written words, read words].
    """

    usage: Vectors
    cycles: Vectors


@dataclass(frozen=True, eq=False)
class Space:
    """All candidate folds of a network's blocks on a board, with the costs between neighbouring blocks.

    Attributes:
        graph: The graph.
        board: The board.
        blocks: The candidate folds of each block, in the graph's order.
        streams: The streams of the graph.
        tables: One table of converter and FIFO costs per stream.
    """

    graph: g.StreamGraph
    board: Board
    blocks: list[BlockChoices]
    streams: list[Stream]
    tables: list[Between]

    @property
    def unit_areas(self) -> Numbers:
        """The area of one LUT, DSP, BRAM18 and so on, in 10⁻⁹ boards, [resource]."""
        return np.array(vector(unit_areas(self.board)), np.int64)

    def words(self, stream: int, writes: bool) -> Numbers:
        """Return the number of the word format at ``stream`` for each candidate of its writer or, without ``writes``,
        of its reader."""
        s = self.streams[stream]
        if not writes:
            return self.blocks[s.reader].words[s.port]
        return self.blocks[s.writer].words[len(self.graph.blocks[s.writer].inputs) + s.output]

    def cycle_counts(self) -> list[int]:
        """Return all cycles per frame that a folding can have, in ascending order.

        The slowest block or converter determines a frame's cycles, so these are the cycles of all choices and
        converters. Counts that some block cannot reach are left out.
        """
        counts = [block.cycles for block in self.blocks]
        counts += [table.cycles[np.isfinite(table.cycles)].astype(np.int64) for table in self.tables]
        fastest = max(int(block.cycles.min()) for block in self.blocks)
        return [int(count) for count in np.unique(np.concatenate(counts)) if count >= fastest]

    def candidates_within(self, cycles: int) -> list[Numbers]:
        """Return for each block the candidates of at most ``cycles`` per frame, without those that prune.py removes."""
        choices = [np.flatnonzero(block.cycles <= cycles) for block in self.blocks]
        if all(len(block) for block in choices):
            for index in range(len(choices)):
                choices[index] = self._undominated(choices, index)
            for index in range(len(choices)):
                choices[index] = self._needed(choices, index, cycles)
        return choices

    def _undominated(self, choices: list[Numbers], index: int) -> Numbers:
        """Return a block's candidates without those that another candidate with the same word formats beats in every
        resource.

        This needs no tables, and removes most of the choices.
        """
        block = self.blocks[index]
        alike: dict[tuple[int, ...], list[int]] = {}
        for choice in choices[index]:
            alike.setdefault(tuple(int(words[choice]) for words in block.words), []).append(int(choice))
        staying: list[int] = []
        for group in alike.values():
            usage = block.usage[group]
            staying += [group[i] for i in needed(usage.astype(np.float64), usage @ self.unit_areas, [])]
        return np.array(sorted(staying), np.int64)

    def _needed(self, choices: list[Numbers], index: int, cycles: int) -> Numbers:
        """Return a block's candidates without those that another candidate replaces at no cost, for any folds of the
        neighbours."""
        sides = [
            self._side(choices, number, index, cycles)
            for number, stream in enumerate(self.streams)
            if index in (stream.writer, stream.reader)
        ]
        usage = self.blocks[index].usage[choices[index]]
        return choices[index][needed(usage.astype(np.float64), usage @ self.unit_areas, sides)]

    def _side(self, choices: list[Numbers], stream: int, index: int, cycles: int) -> Side:
        """Return the table of ``stream`` as seen from block ``index``, with only the word formats of the remaining
        ``choices``."""
        writes = self.streams[stream].writer == index
        neighbour = self.streams[stream].reader if writes else self.streams[stream].writer
        ours, numbered = np.unique(self.words(stream, writes)[choices[index]], return_inverse=True)
        theirs = np.unique(self.words(stream, not writes)[choices[neighbour]])
        between = self.stream_costs(stream, cycles)
        if writes:
            return Side(numbered, between[np.ix_(ours, theirs)])
        return Side(numbered, between[np.ix_(theirs, ours)].transpose(1, 0, 2))

    def stream_costs(self, stream: int, cycles: int) -> Vectors:
        """Return the converter and FIFO resources of ``stream`` per pair of word formats, infinite above ``cycles`` per
        frame."""
        table = self.tables[stream]
        return np.where((table.cycles <= cycles)[:, :, None], table.usage, np.inf)


def vector(usage: StreamingUsage) -> tuple[int, ...]:
    """Return the resource amounts ``usage`` as a tuple in the order of RESOURCES."""
    return tuple(int(getattr(usage, name)) for name in RESOURCES)


def space_of(graph: g.StreamGraph, board: Board, options: Options, traced: TracedStreams = UNTRACED) -> Space:
    """Return all candidate folds of ``graph`` on ``board``, with their cycles and resources.

    Args:
        graph: The graph.
        board: The board.
        options: The folds that the search may use.
        traced: The FIFOs of an earlier trace. FIFOs that it does not contain have estimated depths.
    """
    streams = [
        Stream(source.block, source.output, index, port)
        for index, block in enumerate(graph.blocks)
        for port, source in enumerate(block.inputs)
    ]
    folds = [candidates(graph, index, board, options) for index in range(len(graph.blocks))]
    keys = [_keys(graph, index, folds[index]) for index in range(len(graph.blocks))]
    blocks = [
        BlockChoices(
            folds[index],
            np.array([block_cycles(graph, index, fold) for fold in folds[index]], np.int64),
            np.array([vector(block_usage(graph, index, fold, board)) for fold in folds[index]], np.int64),
            [numbers for numbers, _ in keys[index]],
        )
        for index in range(len(graph.blocks))
    ]
    tables = []
    for stream in streams:
        first_written = keys[stream.writer][len(graph.blocks[stream.writer].inputs) + stream.output][1]
        first_read = keys[stream.reader][stream.port][1]
        writer_folds = [folds[stream.writer][choice] for choice in first_written]
        reader_folds = [folds[stream.reader][choice] for choice in first_read]
        tables.append(_between(Space(graph, board, blocks, streams, []), traced, stream, writer_folds, reader_folds))
    return Space(graph, board, blocks, streams, tables)


Keys = tuple[Numbers, list[int]]
"""The number of the words of each choice at a stream, [choice], and the first choice with each number."""


def _keys(graph: g.StreamGraph, index: int, folds: Sequence[g.Fold]) -> list[Keys]:
    """Return the numbered word formats of ``folds`` at each stream of block ``index``: the inputs, then the outputs."""
    block = graph.blocks[index]
    reading = [_numbered([in_key(graph, index, port, fold) for fold in folds]) for port in range(len(block.inputs))]
    writing = [
        _numbered([out_key(graph, index, output, fold) for fold in folds]) for output in range(len(block.outputs))
    ]
    return reading + writing


def _numbered(keys: list[Key]) -> Keys:
    """Return a number per key, equal for equal keys and counted in the order of first use, and the first index of each
    number."""
    numbers: dict[Key, int] = {}
    first: list[int] = []
    for choice, key in enumerate(keys):
        if key not in numbers:
            numbers[key] = len(numbers)
            first.append(choice)
    return np.array([numbers[key] for key in keys], np.int64), first


def in_key(graph: g.StreamGraph, index: int, port: int, fold: g.Fold) -> Key:
    """Return the word format of ``fold`` at input ``port``: the properties that matter to the block that writes it."""
    block = graph.blocks[index]
    group = fold.pe if isinstance(block.op, g.VectorVector) else 0
    return lanes.in_lanes(block, fold, port), fold.m, lanes.in_values(graph, index, fold, port), group


def out_key(graph: g.StreamGraph, index: int, output: int, fold: g.Fold) -> Key:
    """Return the word format of ``fold`` at ``output``: the properties that matter to the block that reads it."""
    block = graph.blocks[index]
    depthwise = isinstance(block.op, g.Window) and block.op.depthwise
    values = lanes.out_values(graph, index, fold, output)
    return lanes.out_lanes(block, fold, output), lanes.out_pixels(block, fold), values, fold.simd if depthwise else 0


def _between(
    space: Space, traced: TracedStreams, stream: Stream, writer_folds: list[g.Fold], reader_folds: list[g.Fold]
) -> Between:
    """Return the converter and FIFO costs of ``stream`` for each pair of word formats.

    Args:
        space: The space, whose tables may still be empty.
        traced: The FIFOs of an earlier trace.
        stream: The stream.
        writer_folds: One fold of the writer for each of its different words.
        reader_folds: One fold of the reader for each of its different words.
    """
    graph = space.graph
    usage = np.full((len(writer_folds), len(reader_folds), len(RESOURCES)), np.inf)
    cycles = np.full((len(writer_folds), len(reader_folds)), np.inf)
    gathered = isinstance(graph.blocks[stream.writer].op, g.Window)
    for i, writer in enumerate(writer_folds):
        written = out_key(graph, stream.writer, stream.output, writer)
        for j, reader in enumerate(reader_folds):
            if gathered and written[2:] != in_key(graph, stream.reader, stream.port, reader)[2:]:
                continue  # a window and its reader must have the same channel padding and channel groups
            edge = Edge(graph, stream.reader, stream.port, writer, reader)
            cycles[i, j] = max((converter.cycles for converter in edge.converters), default=0)
            usage[i, j] = vector(edge_usage(edge, space.board, traced))
    return Between(usage, cycles)


def least_area(graph: g.StreamGraph, index: int, board: Board, options: Options, cycles: int) -> float:
    """Return the least area of block ``index`` among its folds that take at most ``cycles``, in 10⁻⁹ boards.

    The result is infinite if no fold is so fast. Converters and FIFOs are not counted, because this function compares
    single blocks, and not whole foldings.
    """
    folds = (fold for fold in candidates(graph, index, board, options) if block_cycles(graph, index, fold) <= cycles)
    return min((float(area(block_usage(graph, index, fold, board), board)) for fold in folds), default=np.inf)
