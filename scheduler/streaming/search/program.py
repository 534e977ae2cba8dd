"""The search for a folding as a 0-1 program, which minimises the area.

column   One choice of a block, with its resources. On a stream, a pair of written words and read words, with the
         resources of the converters and FIFOs between them.
row      For a block: exactly one of its choices is taken. For each kind of words at an end of a stream: the number of
         taken pairs with these words equals the number of taken choices with them. Pairs are tied to choices as in a
         transport problem, so that the solution of the linear relaxation is nearly integer.
limit    For a resource: the maximum of the sum over the taken columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np

from scheduler.streaming import graph as g
from scheduler.streaming.area.budget import limits
from scheduler.streaming.result import Goal, ddr_limit
from scheduler.streaming.search.prune import Numbers, Vectors
from scheduler.streaming.search.space import RESOURCES, Space, vector


@dataclass(frozen=True, eq=False)
class Row:
    """One linear equation of the 0-1 program: Σ factors · columns = right.

    Attributes:
        columns: The indices of the columns.
        factors: One factor per entry of ``columns``.
        right: The right side.
    """

    columns: Numbers
    factors: Numbers
    right: int


@dataclass(frozen=True, eq=False)
class Program:
    """The 0-1 program of a folding search for one target of cycles per frame. Its variables (columns) are candidate
    folds and word pairs.

    Attributes:
        space: The candidate folds of all blocks.
        choices: The candidate folds of each block that have a column, as indices.
        first: The column of the first candidate fold of each block.
        usage: The resources of each column, [column, resource].
        rows: The equations.
        limits: The maximum of each resource, [resource].
    """

    space: Space
    choices: tuple[Numbers, ...]
    first: tuple[int, ...]
    usage: Vectors
    rows: tuple[Row, ...]
    limits: Vectors

    @property
    def columns(self) -> int:
        """The number of 0-1 variables of the program."""
        return len(self.usage)

    @cached_property
    def area(self) -> Vectors:
        """The area that each 0-1 variable adds if it is 1, in 10⁻⁹ boards, [column]."""
        return np.asarray(self.usage @ self.space.unit_areas, np.float64)

    def folds(self, chosen: Numbers) -> tuple[g.Fold, ...]:
        """Return the fold of each block in the solution ``chosen``, which has 0 or 1 for each variable."""
        by_block = (
            choices[np.flatnonzero(chosen[first : first + len(choices)])[0]]
            for first, choices in zip(self.first, self.choices, strict=True)
        )
        return tuple(block.folds[int(choice)] for block, choice in zip(self.space.blocks, by_block, strict=True))


def program_of(space: Space, goal: Goal, cycles: int) -> Program | None:
    """Return the 0-1 program of all foldings within the goal's budget that take at most ``cycles`` per frame.

    Return None if a block has no choice that is so fast.
    """
    choices = space.candidates_within(cycles)
    if not all(len(block) for block in choices):
        return None
    first = list(accumulate((len(block) for block in choices), initial=0))
    rows = [_one_of(start, len(block)) for start, block in zip(first, choices, strict=False)]
    usage = [block.usage[chosen].astype(np.float64) for block, chosen in zip(space.blocks, choices, strict=True)]
    start = first.pop()
    for number in range(len(space.streams)):
        pairs = _pairs(space, choices, number, cycles)
        for end in (pairs.writer, pairs.reader):
            rows += _tied(end, first[end.block], start)
        usage.append(pairs.usage)
        start += len(pairs.usage)
    return Program(
        space, tuple(choices), tuple(first), np.concatenate(usage), tuple(rows), resource_limits(space, goal, cycles)
    )


def resource_limits(space: Space, goal: Goal, cycles: int) -> Vectors:
    """Return the maximum of each board resource for a folding of ``cycles`` per frame, [resource]."""
    most_of_each = np.array(vector(limits(space.board, goal.budget)), np.float64)
    most_of_each[RESOURCES.index("ddr_bits")] = ddr_limit(space.board, goal, cycles)
    return most_of_each


def _one_of(start: int, count: int) -> Row:
    """Return the equation that exactly one of ``count`` 0-1 variables from ``start`` on is 1."""
    return Row(start + np.arange(count), np.ones(count, np.int64), 1)


@dataclass(frozen=True, eq=False)
class _End:
    """One end of a stream in the 0-1 program: the word formats of a block's candidate folds there.

    Attributes:
        block: The block at this end.
        words: The numbers of the different word formats at this end.
        of_choices: The word format of each candidate fold of the block, [choice].
        of_pairs: The index in ``words`` of the word format of each pair, [pair].
    """

    block: int
    words: Numbers
    of_choices: Numbers
    of_pairs: Numbers


@dataclass(frozen=True, eq=False)
class _Pairs:
    """The pairs of written and read word formats of a stream that converters can connect.

    Attributes:
        usage: The resources of the converters and FIFOs between the two formats of each pair, [pair, resource].
        writer: The end at the block that writes the stream.
        reader: The end at the block that reads the stream.
    """

    usage: Vectors
    writer: _End
    reader: _End


def _pairs(space: Space, choices: list[Numbers], number: int, cycles: int) -> _Pairs:
    """Return the pairs of word formats of stream ``number`` whose converters take at most ``cycles`` per frame."""
    stream = space.streams[number]
    written = space.words(number, True)[choices[stream.writer]]
    read = space.words(number, False)[choices[stream.reader]]
    written_words, read_words = np.unique(written), np.unique(read)
    between = space.stream_costs(number, cycles)[np.ix_(written_words, read_words)]
    writers, readers = np.nonzero(np.isfinite(between).all(axis=2))
    return _Pairs(
        between[writers, readers],
        _End(stream.writer, written_words, written, writers),
        _End(stream.reader, read_words, read, readers),
    )


def _tied(end: _End, first_choice: int, first_pair: int) -> Iterator[Row]:
    """Yield an equation per word format at a stream's end: the selected pairs with it = the selected folds with it.

    Args:
        end: The end of the stream.
        first_choice: The column of the block's first choice.
        first_pair: The column of the stream's first pair.
    """
    for place, words in enumerate(end.words):
        pairs = first_pair + np.flatnonzero(end.of_pairs == place)
        choices = first_choice + np.flatnonzero(end.of_choices == words)
        factors = np.concatenate([np.ones(len(pairs), np.int64), -np.ones(len(choices), np.int64)])
        yield Row(np.concatenate([pairs, choices]), factors, 0)
