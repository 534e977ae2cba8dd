"""The choices of small networks and their 0-1 programs, compared with the evaluation of every combination of folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from boards.board import load
from scheduler.hardware.budget import Budget
from scheduler.hardware.ddr import DdrRate
from scheduler.streaming import graph as g
from scheduler.streaming.lower import lower
from scheduler.streaming.model.converters import edge_of
from scheduler.streaming.model.cycles import block_cycles
from scheduler.streaming.model.waiting import TracedStreams
from scheduler.streaming.result import FoldingResult, Goal, evaluate
from scheduler.streaming.rules import violations
from scheduler.streaming.search.candidates import Options, candidates
from scheduler.streaming.search.program import Program, program_of, resource_limits
from scheduler.streaming.search.prune import Numbers
from scheduler.streaming.search.space import RESOURCES, Between, BlockChoices, Space, Stream, least_area, space_of
from tests.support.low_bit import Layers

ULTRA96 = load("ultra96-v2")
LEAST = Options(max_pixels=1, uram_weights=False)
PAIRS = Options(max_pixels=2, uram_weights=False)


def pointwise() -> g.StreamGraph:
    return lower(Layers(2, 2, 4, "BIPOLAR").conv(2, 1).network())


def gathered() -> g.StreamGraph:
    return lower(Layers(2, 3, 3, "BIPOLAR").conv(1, 2).network())


def depthwise() -> g.StreamGraph:
    return lower(Layers(2, 3, 3, "BIPOLAR").depthwise(2).network())


def joined() -> g.StreamGraph:
    """Return a graph whose first map has two readers and is added to itself."""
    made = Layers(1, 2, 2, "BIPOLAR").conv(2, 1)
    return lower(made.sum(1, 1).network())


def padded() -> g.StreamGraph:
    """Return a graph with a map of three channels, which one padding channel extends to four."""
    return lower(Layers(1, 1, 2, "TERNARY").conv(3, 1).conv(1, 1).network())


GRAPHS = [
    (padded, Options(1, max_pixels=1, uram_weights=False)),
    (pointwise, PAIRS),
    (gathered, LEAST),
    (depthwise, LEAST),
    (joined, LEAST),
]


@dataclass(frozen=True)
class Combination:
    """One candidate per block.

    Attributes:
        numbers: The number of each block's candidate.
        result: The folding's result, or None if the combination is not legal.
    """

    numbers: tuple[int, ...]
    result: FoldingResult | None


@lru_cache
def space_and_all(number: int) -> tuple[Space, tuple[Combination, ...]]:
    made, options = GRAPHS[number]
    graph = made()
    each = [candidates(graph, index, ULTRA96, options) for index in range(len(graph.blocks))]
    combinations = []
    for numbers in product(*(range(len(folds)) for folds in each)):
        folds = [each[index][number] for index, number in enumerate(numbers)]
        legal = not list(violations(graph, folds))
        combinations.append(Combination(numbers, evaluate(graph, folds, ULTRA96, Goal(None)) if legal else None))
    return space_of(graph, ULTRA96, options), tuple(combinations)


NUMBERS = pytest.mark.parametrize("number", range(len(GRAPHS)), ids=[made.__name__ for made, _ in GRAPHS])


def used(result: FoldingResult) -> list[int]:
    """Return the amount of each resource, in the order of RESOURCES."""
    return [int(getattr(result.usage, name)) for name in RESOURCES]


def taken(program: Program, numbers: Sequence[int]) -> Numbers | None:
    """Return the program's columns for a combination, or None if it is not a solution or a choice has no column.

    The combination does not list the pairs of words. A pair is set if both of its ends have its words.
    """
    columns = np.zeros(program.columns, np.int64)
    for choices, first, choice in zip(program.choices, program.first, numbers, strict=True):
        if choice not in choices:
            return None
        columns[first + choices.tolist().index(choice)] = 1
    of_choices = sum(len(choices) for choices in program.choices)
    for pair in range(of_choices, program.columns):
        ends = [row for row in program.rows if pair in row.columns]
        assert len(ends) == 2
        columns[pair] = all(columns[row.columns[row.factors < 0]].any() for row in ends)
    holds = all(int(row.factors @ columns[row.columns]) == row.right for row in program.rows)
    return columns if holds else None


@NUMBERS
def test_cycle_counts_are_those_of_blocks_and_converters(number: int) -> None:
    """The counts are the cycles of any block and of any converter, from the slowest block's least cycles upwards."""
    space, combinations = space_and_all(number)
    graph, counts, slowest = space.graph, set(), 0
    for index, block in enumerate(space.blocks):
        cycles = [block_cycles(graph, index, fold) for fold in block.folds]
        counts.update(cycles)
        slowest = max(slowest, min(cycles))
    for combination in combinations:
        folds = [block.folds[choice] for block, choice in zip(space.blocks, combination.numbers, strict=True)]
        for index, reader in enumerate(graph.blocks if combination.result else ()):
            for port in range(len(reader.inputs)):
                between = edge_of(graph, folds, index, port).converters
                counts.add(max((converter.cycles for converter in between), default=0))
    assert space.cycle_counts() == sorted(count for count in counts if count >= slowest)


@NUMBERS
def test_program_solutions_are_the_legal_combinations(number: int) -> None:
    """Among the combinations of the remaining choices, the solutions are those that are legal and fast enough.

    Each solution has the usage and the area of its folding.
    """
    space, combinations = space_and_all(number)
    counts = space.cycle_counts()
    solutions = 0
    for cycles in (counts[len(counts) // 2], counts[-1]):
        program = program_of(space, Goal(None), cycles)
        assert program is not None
        for combination in combinations:
            columns, result = taken(program, combination.numbers), combination.result
            if not all(choice in left for choice, left in zip(combination.numbers, program.choices, strict=True)):
                continue
            assert (columns is not None) == (result is not None and result.cycles <= cycles)
            if columns is not None and result is not None:
                assert (columns @ program.usage).tolist() == used(result)
                assert int(columns @ program.area) == result.area
                assert program.folds(columns) == result.folding.folds
                solutions += 1
    assert solutions > 4


@NUMBERS
def test_remaining_choices_include_one_as_good_as_each_removed(number: int) -> None:
    """For every legal combination, one of the remaining choices is as fast and uses no more of any resource."""
    space, combinations = space_and_all(number)
    counts = space.cycle_counts()
    for cycles in counts[:: max(1, len(counts) // 4)]:
        left = space.candidates_within(cycles)
        legal = [c for c in combinations if c.result is not None and c.result.cycles <= cycles]
        staying = [c for c in legal if all(n in some for n, some in zip(c.numbers, left, strict=True))]
        amounts = np.array([used(c.result) for c in staying if c.result])
        for combination in legal:
            assert combination.result is not None
            assert (amounts <= used(combination.result)).all(axis=1).any()
        for block, choices in zip(space.blocks, left, strict=True):
            assert (block.cycles[choices] <= cycles).all()
            for one, other in product(choices, choices):
                alike = one != other and all(words[one] == words[other] for words in block.words)
                assert not alike or not (block.usage[one] <= block.usage[other]).all()


@NUMBERS
def test_least_area_of_a_block_is_its_cheapest_fold(number: int) -> None:
    space, _ = space_and_all(number)
    _, options = GRAPHS[number]
    for index, block in enumerate(space.blocks):
        for cycles in {*block.cycles.tolist(), int(block.cycles.min()) - 1}:
            areas = [
                sum(amount * unit for amount, unit in zip(row, space.unit_areas, strict=True))
                for row, count in zip(block.usage.tolist(), block.cycles, strict=True)
                if count <= cycles
            ]
            wanted = min(areas, default=np.inf)
            assert least_area(space.graph, index, ULTRA96, options, cycles) == wanted


def test_program_of_a_block_without_a_fast_fold_is_none() -> None:
    space, _ = space_and_all(0)
    fastest = max(int(block.cycles.min()) for block in space.blocks)
    assert program_of(space, Goal(None), fastest) is not None
    assert program_of(space, Goal(None), fastest - 1) is None


def test_resource_limits_follow_the_budget_and_the_ddr_rate() -> None:
    """The limits are fractions of 70,560 LUTs, 28,800 of them as memory, 360 DSPs, 216 BRAM36 and no URAM.

    The DDR transfers 8 bytes per cycle at 200 MHz. Half of this rate is planned.
    """
    space, _ = space_and_all(0)
    goal = Goal(None, 200.0, Budget(0.5, 0.25, 0.75, 1.0, 0.5), rate=DdrRate(1.6, 1.0))
    assert resource_limits(space, goal, 1000).tolist() == [35_280, 14_400, 90, 2 * 162, 0, 1000 * 8 * 8 // 2]


def test_program_counts_fifos_as_traced() -> None:
    made, options = GRAPHS[4]
    graph = made()
    add = next(i for i, block in enumerate(graph.blocks) if isinstance(block.op, g.Add))
    traced = TracedStreams({(add, 1): ((1, 700),)})
    goal = Goal(None, traced=traced)
    space = space_of(graph, ULTRA96, options, traced)
    program = program_of(space, goal, space.cycle_counts()[-1])
    assert program is not None
    numbers = [int(choices[0]) for choices in program.choices]
    folds = [block.folds[number] for block, number in zip(space.blocks, numbers, strict=True)]
    columns = taken(program, numbers)
    assert columns is not None
    result = evaluate(graph, folds, ULTRA96, goal)
    assert (columns @ program.usage).tolist() == used(result)
    assert result.area > evaluate(graph, folds, ULTRA96, Goal(None)).area


# --- choices that are removed, by hand --------------------------------------------------------------------------------


def by_hand(between: int, slow: int = 0) -> Space:
    """Return the space of a writer and a reader.

    The writer has the words 0 for 10 LUTs and the words 1 for 4 LUTs. The reader needs the words 0.

    Args:
        between: The LUTs of the converter from the words 1 to the words 0.
        slow: The cycles of this converter.
    """
    writer: Any = SimpleNamespace(inputs=[])
    reader: Any = SimpleNamespace(inputs=[0])
    usage = np.zeros((2, len(RESOURCES)), np.int64)
    usage[:, 0] = 10, 4
    table = np.zeros((2, 1, len(RESOURCES)))
    table[1, 0, 0] = between
    cycles = np.array([[0.0], [slow]])
    blocks = [
        BlockChoices([], np.array([5, 5]), usage, [np.array([0, 1])]),
        BlockChoices([], np.array([5]), np.zeros((1, len(RESOURCES)), np.int64), [np.array([0])]),
    ]
    graph: Any = SimpleNamespace(blocks=[writer, reader])
    return Space(graph, ULTRA96, blocks, [Stream(0, 0, 1, 0)], [Between(table, cycles)])


@pytest.mark.parametrize(("between", "left"), [(5, [1]), (6, [1]), (7, [0, 1])])
def test_within_removes_words_dearer_than_a_converter(between: int, left: list[int]) -> None:
    """4 LUTs and a converter of up to 6 are at most 10, so that the words 0 are removed.

    With a converter of 7 LUTs, either choice may be the better one, depending on the reader.
    """
    assert [choices.tolist() for choices in by_hand(between).candidates_within(5)] == [left, [0]]


def test_within_excludes_a_converter_above_the_target_cycles() -> None:
    assert [choices.tolist() for choices in by_hand(2, 6).candidates_within(5)] == [[0, 1], [0]]
    assert [choices.tolist() for choices in by_hand(2, 5).candidates_within(5)] == [[1], [0]]
    assert [choices.tolist() for choices in by_hand(2).candidates_within(4)] == [[], []]
    assert by_hand(2, 8).cycle_counts() == [5, 8]
