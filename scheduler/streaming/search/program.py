"""A folding as a 0-1 program: columns that are taken or not, and rows that say which go together.

column   a choice of a block; on a stream a pair of (words that leave, words that are taken), with what the converters
         and the FIFO between them take
row      of a block: exactly one of its choices. Of the words at one end of a stream: as many pairs with these words as
         choices with them. So pairs are tied to choices as in a transport problem, and the linear relaxation is nearly
         whole
limit    of a resource: what the columns that are taken use together

What is made least is the area, a sum over the columns that are taken.
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
    """Σ factors · columns = right."""

    columns: Numbers
    factors: Numbers
    right: int


@dataclass(frozen=True, eq=False)
class Program:
    """The program of one target.

    choices: of every block those that have a column; first: the column of the first of these. usage: [column,
    resource]. limits: [resource].
    """

    space: Space
    choices: tuple[Numbers, ...]
    first: tuple[int, ...]
    usage: Vectors
    rows: tuple[Row, ...]
    limits: Vectors

    @property
    def columns(self) -> int:
        return len(self.usage)

    @cached_property
    def area(self) -> Vectors:
        """[column], in 10⁻⁹ boards."""
        return np.asarray(self.usage @ self.space.unit_areas, np.float64)

    def folds(self, chosen: Numbers) -> tuple[g.Fold, ...]:
        """The folds of the columns that are 1 in ``chosen``."""
        by_block = (
            choices[np.flatnonzero(chosen[first : first + len(choices)])[0]]
            for first, choices in zip(self.first, self.choices, strict=True)
        )
        return tuple(block.folds[int(choice)] for block, choice in zip(self.space.blocks, by_block, strict=True))


def program_of(space: Space, goal: Goal, cycles: int) -> Program | None:
    """The foldings of ``cycles`` a frame or less within the goal's budget; None where a block has no fold so fast."""
    choices = space.within(cycles)
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
    """The most of every resource that a folding of ``cycles`` a frame may take."""
    most_of_each = np.array(vector(limits(space.board, goal.budget)), np.float64)
    most_of_each[RESOURCES.index("ddr_bits")] = ddr_limit(space.board, goal, cycles)
    return most_of_each


def _one_of(start: int, count: int) -> Row:
    return Row(start + np.arange(count), np.ones(count, np.int64), 1)


@dataclass(frozen=True, eq=False)
class _End:
    """One end of a stream. words: the different ones there; of_choices: those of the block's choices [choice];
    of_pairs: of every pair the place of its words in ``words``."""

    block: int
    words: Numbers
    of_choices: Numbers
    of_pairs: Numbers


@dataclass(frozen=True, eq=False)
class _Pairs:
    """The words that can meet on a stream. usage: [pair, resource]."""

    usage: Vectors
    writer: _End
    reader: _End


def _pairs(space: Space, choices: list[Numbers], number: int, cycles: int) -> _Pairs:
    stream = space.streams[number]
    written = space.words(number, True)[choices[stream.writer]]
    read = space.words(number, False)[choices[stream.reader]]
    leaving, arriving = np.unique(written), np.unique(read)
    between = space.between(number, cycles)[np.ix_(leaving, arriving)]
    writers, readers = np.nonzero(np.isfinite(between).all(axis=2))
    return _Pairs(
        between[writers, readers],
        _End(stream.writer, leaving, written, writers),
        _End(stream.reader, arriving, read, readers),
    )


def _tied(end: _End, first_choice: int, first_pair: int) -> Iterator[Row]:
    """As many pairs with each words of an end as choices."""
    for place, words in enumerate(end.words):
        pairs = first_pair + np.flatnonzero(end.of_pairs == place)
        choices = first_choice + np.flatnonzero(end.of_choices == words)
        factors = np.concatenate([np.ones(len(pairs), np.int64), -np.ones(len(choices), np.int64)])
        yield Row(np.concatenate([pairs, choices]), factors, 0)
