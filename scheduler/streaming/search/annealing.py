"""A folding search by annealing (scipy's dual_annealing), as proposed for FINN, a few blocks at a time.

The folds of every block are put in a row, and a point of the search is an index into each row. A network has too many
blocks for a single search, so it is divided into partitions of a few neighbouring blocks. The partitions are annealed
one after the other while all other blocks stay unchanged. This first decides the lanes, and then, in larger partitions,
the memories and multipliers. The search starts from the greedy folding.

The result depends on the partitions and on the effort, and nothing is proven. The search exists for comparisons with
exact.py, and uses the same candidates, area and constraints.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from boards.board import Board
from boards.errors import MissingToolError, MissingValueError, RangeError
from scheduler.streaming import graph as g
from scheduler.streaming.area.budget import BOARD
from scheduler.streaming.result import FoldingResult, Goal, evaluate
from scheduler.streaming.search import greedy
from scheduler.streaming.search.candidates import Options
from scheduler.streaming.search.program import resource_limits
from scheduler.streaming.search.prune import Numbers, Vectors
from scheduler.streaming.search.space import RESOURCES, Space, space_of

BLOCKS_TOGETHER, KINDS_TOGETHER = 3, 8
"""The blocks per partition, for the search for lanes and for the search for memories and multipliers."""

ACCEPT, VISIT = -5.0, 2.0
"""Parameters of dual_annealing: the acceptance of worse points, and the distance of jumps."""

PENALTY, APART = 1e6, 1e12
"""Penalties in boards: per board of resources above the limits, and per stream whose words no converter connects.
They exceed the area of any folding, so that a legal folding always wins."""


@dataclass(frozen=True)
class Effort:
    """The effort of an annealing search: its number of evaluations and sweeps, and its seed.

    Attributes:
        evaluations: The cost evaluations per block of a partition.
        attempts: The number of sweeps over all partitions.
        seed: The random seed.
    """

    evaluations: int = 200
    attempts: int = 2
    seed: int = 0


def fold(
    graph: g.StreamGraph,
    board: Board,
    goal: Goal,
    options: Options | None = None,
    effort: Effort | None = None,
    space: Space | None = None,
) -> FoldingResult:
    """Return a folding of at most ``goal.cycles`` cycles per frame that annealing found.

    Args:
        graph: The graph.
        board: The board.
        goal: The goal. It must have ``cycles``.
        options: The folds that the search may use.
        effort: The effort of the search.
        space: The result of ``space_of`` for the same graph, board and options, if it exists already.

    Raises:
        MissingValueError: The goal has no ``cycles``.
        RangeError: A block has no fold of so few cycles.
        MissingToolError: scipy is not installed.
    """
    if goal.cycles is None:
        remedy = "give --fps RATE, or fold exactly for the highest rate"
        raise MissingValueError("the frame rate", "annealing folds for a rate", remedy=remedy)
    start = time.perf_counter()
    options, effort = options or Options(), effort or Effort()
    search = _Annealing(space or space_of(graph, board, options), goal, goal.cycles, effort, options.external)
    for _ in range(effort.attempts):
        search.anneal_partitions(search.rows_of_lanes(), BLOCKS_TOGETHER)
        search.anneal_partitions(search.rows_of_kinds(), KINDS_TOGETHER)
    result = evaluate(graph, search.folds(), board, goal)
    return replace(result, state="heuristic", seconds=time.perf_counter() - start)


Lanes = tuple[int, str, int, int, int, int, int]
Rows = list[Numbers]
"""For each block, the choices in the order in which the search indexes them."""


@dataclass(eq=False)
class _Annealing:
    """A running annealing search over the folds of all blocks. The attribute ``chosen`` has the present choice of every
    block."""

    space: Space
    goal: Goal
    cycles: int
    effort: Effort
    external: tuple[str, ...]

    def __post_init__(self) -> None:
        space = self.space
        self.fast = [np.flatnonzero(block.cycles <= self.cycles) for block in space.blocks]
        for block, choices, fast in zip(space.graph.blocks, space.blocks, self.fast, strict=True):
            if not len(fast):
                where, least = f"{space.graph.name}: {block.name}", int(choices.cycles.min())
                raise RangeError("the number of cycles per frame", self.cycles, least, where=where)
        self.unit_areas = space.unit_areas.astype(np.float64)
        self.limits = resource_limits(space, self.goal, self.cycles)
        self.tables = [space.stream_costs(number, self.cycles) for number in range(len(space.streams))]
        self.chosen = self._start()

    def _start(self) -> Numbers:
        """Return the start of the search: for each block the candidate fold most similar to the greedy search's."""
        goal = replace(self.goal, cycles=self.cycles)
        greedily = greedy.fold(self.space.graph, self.space.board, goal, strict=False, external=self.external)
        nearest = [
            sorted(fast.tolist(), key=lambda choice: _distance(block.folds[choice], fold))
            for block, fast, fold in zip(self.space.blocks, self.fast, greedily.folding.folds, strict=True)
        ]
        chosen = np.array([choices[0] for choices in nearest], np.int64)
        for number, stream in enumerate(self.space.streams):
            if isinstance(self.space.graph.blocks[stream.writer].op, g.Window):
                self._meet(number, chosen, nearest)
        return chosen

    def _meet(self, number: int, chosen: Numbers, nearest: list[list[int]]) -> None:
        """Change the folds of a window block and its reader to the most similar ones whose stream words are compatible.

        Args:
            number: The stream from the window to its reader.
            chosen: The choices, which are changed.
            nearest: The choices of each block, the most similar to the greedy folding first.
        """
        space, stream = self.space, self.space.streams[number]
        meets = np.isfinite(self.tables[number][:, :, 0])
        for choice in nearest[stream.reader]:
            writers = meets[:, space.words(number, False)[choice]]
            met = [c for c in nearest[stream.writer] if writers[space.words(number, True)[c]]]
            if met:
                chosen[stream.reader], chosen[stream.writer] = choice, met[0]
                return

    def folds(self) -> list[g.Fold]:
        """Return the folds of all blocks in the present state of the search."""
        return [block.folds[int(choice)] for block, choice in zip(self.space.blocks, self.chosen, strict=True)]

    def rows_of_lanes(self) -> Rows:
        """Return for each block the candidates with different parallelism or padding, the one of least area for
        each."""
        rows = []
        for block, fast in zip(self.space.blocks, self.fast, strict=True):
            best: dict[Lanes, int] = {}
            area = block.usage @ self.unit_areas
            for choice in fast.tolist():
                key = _lanes(block.folds[choice])
                if key not in best or area[choice] < area[best[key]]:
                    best[key] = choice
            rows.append(np.array([best[key] for key in sorted(best)], np.int64))
        return rows

    def rows_of_kinds(self) -> Rows:
        """Return for each block the candidates that differ from its present fold only in memories and multipliers."""
        rows = []
        for block, fast, fold in zip(self.space.blocks, self.fast, self.folds(), strict=True):
            alike = [choice for choice in fast.tolist() if _lanes(block.folds[choice]) == _lanes(fold)]
            rows.append(np.array(alike, np.int64))
        return rows

    def anneal_partitions(self, rows: Rows, size: int) -> None:
        """Anneal all blocks, in partitions of ``size`` neighbouring blocks. Blocks with one candidate fold are
        skipped."""
        for first in range(0, len(rows), size):
            part = [i for i in range(first, min(first + size, len(rows))) if len(rows[i]) > 1]
            if part:
                self._anneal(part, rows)

    def _anneal(self, part: list[int], rows: Rows) -> None:
        """Anneal the folds of the blocks in ``part`` and keep the best folds that were found."""
        best, lowest = self.chosen.copy(), self.energy(self.chosen)

        def energy(point: Vectors) -> float:
            nonlocal best, lowest
            candidate = self.chosen.copy()
            for place, index in zip(point, part, strict=True):
                candidate[index] = rows[index][min(max(round(float(place)), 0), len(rows[index]) - 1)]
            value = self.energy(candidate)
            if value < lowest:
                best, lowest = candidate, value
            return value

        bounds = [(-0.499, len(rows[i]) - 0.501) for i in part]
        start = [float(np.abs(rows[i] - self.chosen[i]).argmin()) for i in part]
        _dual_annealing()(
            energy,
            bounds,
            x0=np.array(start),
            maxfun=self.effort.evaluations * len(part),
            visit=VISIT,
            accept=ACCEPT,
            no_local_search=True,
            seed=self.effort.seed,
        )
        self.chosen = best

    def energy(self, chosen: Numbers) -> float:
        """Return the cost of the folds ``chosen``: their area in boards, plus penalties for violated limits."""
        space = self.space
        total = np.zeros(len(RESOURCES))
        for block, choice in zip(space.blocks, chosen, strict=True):
            total += block.usage[choice]
        apart = 0
        for number, stream in enumerate(space.streams):
            between = self.tables[number][
                space.words(number, True)[chosen[stream.writer]], space.words(number, False)[chosen[stream.reader]]
            ]
            if np.isfinite(between[0]):
                total += between
            else:
                apart += 1
        excess = np.maximum(total - self.limits, 0) / np.maximum(self.limits, 1)
        return float(total @ self.unit_areas) / BOARD + PENALTY * float(excess.sum()) + APART * apart


def _lanes(fold: g.Fold) -> Lanes:
    return fold.m, fold.style, fold.pad_in, fold.pad_out, fold.pixels, fold.pe, fold.simd


def _distance(fold: g.Fold, other: g.Fold) -> tuple[object, ...]:
    """Return a sort key: how much ``fold`` differs from ``other``. Of equally similar folds, the one with less
    parallelism is first."""
    return (
        fold.pad_in + fold.pad_out,
        fold.m != other.m,
        fold.pixels != other.pixels,
        fold.style != other.style,
        abs(fold.pe - other.pe) + abs(fold.simd - other.simd),
        fold.pe * fold.simd,
        fold.multiplier != other.multiplier,
        fold.memory != other.memory,
        fold.ram,
    )


def _dual_annealing() -> Any:
    try:
        from scipy.optimize import dual_annealing
    except ImportError as error:
        remedy = "pip install -e '.[solver]', or fold greedily (--folding greedy)"
        raise MissingToolError("scipy", "fold by annealing", remedy=remedy) from error
    return dual_annealing
