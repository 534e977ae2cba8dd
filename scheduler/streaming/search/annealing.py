"""The folder that has been proposed for FINN: annealing (scipy's dual_annealing), a few blocks at a time.

What it does: of every block the foldings are put in a row, and a point of the search is a place in each row. A network
has too many blocks for one search, so that it is cut into partitions of a few neighbours, which are annealed one after
the other with the rest as it is; then, in larger partitions, which memories and multipliers are taken. It starts from
the greedy folding. ``effort``: evaluations a block of a partition; ``attempts``: how often all partitions are gone
through. It needs the cuts and these numbers, and it proves nothing: it is here to be compared with exact.py, with the
same candidates, the same cost and the same constraints.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from boards.board import Board
from boards.errors import ScheduleError
from scheduler.streaming import graph as g
from scheduler.streaming.area.cost import limits
from scheduler.streaming.folded import Folded, Goal, ddr_limit, folded
from scheduler.streaming.search import greedy
from scheduler.streaming.search.candidates import Options
from scheduler.streaming.search.prune import Numbers, Vectors
from scheduler.streaming.search.space import RESOURCES, Space, space_of, vector

BLOCKS_TOGETHER, KINDS_TOGETHER = 3, 8
"""Blocks of a partition: while lanes are chosen, and while memories and multipliers are."""

ACCEPT, VISIT = -5.0, 2.0
"""Parameters of dual_annealing: how readily a worse point is accepted, how far is jumped."""

PENALTY = 1e6
"""Cost of words that cannot meet, and of a whole board of resources too many."""


def fold(
    graph: g.StreamGraph,
    board: Board,
    goal: Goal,
    options: Options | None = None,
    *,
    effort: int = 200,
    attempts: int = 2,
    seed: int = 0,
    space: Space | None = None,
) -> Folded:
    """A folding of ``goal.cycles`` or less. ScheduleError where a block cannot be so fast, or scipy is missing."""
    if goal.cycles is None:
        raise ScheduleError("annealing folds for a frame rate: give one, or fold exactly for the highest")
    start = time.perf_counter()
    space = space or space_of(graph, board, options or Options())
    search = _Annealing(space, goal, goal.cycles, seed, options.external if options else ())
    for _ in range(attempts):
        search.go_through(search.rows_of_lanes(), BLOCKS_TOGETHER, effort)
        search.go_through(search.rows_of_kinds(), KINDS_TOGETHER, effort)
    folds = [space.blocks[i].folds[int(choice)] for i, choice in enumerate(search.at)]
    return folded(graph, folds, board, goal, "heuristic", float("nan"), time.perf_counter() - start)


Lanes = tuple[int, str, int, int, int, int, int]
Rows = list[Numbers]
"""Of every block the choices that a search goes along."""


@dataclass(eq=False)
class _Annealing:
    """``at``: the choice of every block so far."""

    space: Space
    goal: Goal
    cycles: int
    seed: int
    external: tuple[str, ...]

    def __post_init__(self) -> None:
        space = self.space
        self.kept = [np.flatnonzero(block.cycles <= self.cycles) for block in space.blocks]
        slow = [b.name for b, some in zip(space.graph.blocks, self.kept, strict=True) if not len(some)]
        if slow:
            raise ScheduleError(f"{space.graph.name}: {slow[0]} cannot take {self.cycles:,} cycles a frame or less")
        self.price = space.weights.astype(np.float64)
        self.limit = np.array(vector(limits(space.board, self.goal.budget)), np.float64)
        self.limit[RESOURCES.index("ddr_bits")] = ddr_limit(space.board, self.goal, self.cycles)
        self.tables = [space.between(number, self.cycles) for number in range(len(space.streams))]
        self.at = self._start()

    def _start(self) -> Numbers:
        """Of every block the choice that looks most like the greedy folding."""
        goal = Goal(self.cycles, self.goal.clock_mhz, self.goal.budget)
        found = greedy.fold(self.space.graph, self.space.board, goal, strict=False, external=self.external)
        first = found.folding.folds
        at = [
            min(some.tolist(), key=lambda c: _distance(block.folds[c], near))
            for block, some, near in zip(self.space.blocks, self.kept, first, strict=True)
        ]
        return np.array(at, np.int64)

    def rows_of_lanes(self) -> Rows:
        """Of every block one choice for each of its lanes, the one that costs least by itself."""
        rows = []
        for block, some in zip(self.space.blocks, self.kept, strict=True):
            best: dict[Lanes, int] = {}
            price = block.taken @ self.price
            for choice in some.tolist():
                key = _lanes(block.folds[choice])
                if key not in best or price[choice] < price[best[key]]:
                    best[key] = choice
            rows.append(np.array([best[key] for key in sorted(best)], np.int64))
        return rows

    def rows_of_kinds(self) -> Rows:
        """Of every block the choices that have its lanes as they are now."""
        rows = []
        for block, some, at in zip(self.space.blocks, self.kept, self.at, strict=True):
            now = _lanes(block.folds[int(at)])
            rows.append(np.array([c for c in some.tolist() if _lanes(block.folds[c]) == now], np.int64))
        return rows

    def go_through(self, rows: Rows, together: int, effort: int) -> None:
        for first in range(0, len(rows), together):
            part = [i for i in range(first, min(first + together, len(rows))) if len(rows[i]) > 1]
            if part:
                self._anneal(part, rows, effort)

    def _anneal(self, part: list[int], rows: Rows, effort: int) -> None:
        best, cost = self.at.copy(), self.cost(self.at)

        def energy(point: Vectors) -> float:
            nonlocal best, cost
            tried = self.at.copy()
            for place, index in zip(point, part, strict=True):
                tried[index] = rows[index][min(max(round(float(place)), 0), len(rows[index]) - 1)]
            found = self.cost(tried)
            if found < cost:
                best, cost = tried, found
            return found

        bounds = [(-0.499, len(rows[i]) - 0.501) for i in part]
        start = [float(np.abs(rows[i] - self.at[i]).argmin()) for i in part]
        _dual_annealing()(
            energy,
            bounds,
            x0=np.array(start),
            maxfun=effort * len(part),
            visit=VISIT,
            accept=ACCEPT,
            no_local_search=True,
            seed=self.seed,
        )
        self.at = best

    def cost(self, at: Numbers) -> float:
        """In boards, and what is not allowed on top."""
        space = self.space
        total = np.zeros(len(RESOURCES))
        for block, choice in zip(space.blocks, at, strict=True):
            total += block.taken[choice]
        apart = 0
        for number, stream in enumerate(space.streams):
            between = self.tables[number][
                space.words(number, True)[at[stream.writer]], space.words(number, False)[at[stream.reader]]
            ]
            if np.isfinite(between[0]):
                total += between
            else:
                apart += 1
        over = np.maximum(total - self.limit, 0) / np.maximum(self.limit, 1)
        return float(total @ self.price) / 1e9 + PENALTY * (apart + float(over.sum()))


def _lanes(fold: g.Fold) -> Lanes:
    return fold.m, fold.style, fold.pad_in, fold.pad_out, fold.pixels, fold.pe, fold.simd


def _distance(fold: g.Fold, near: g.Fold) -> tuple[object, ...]:
    """Lanes first: how far apart, and where as far, the smaller one."""
    return (
        fold.pad_in + fold.pad_out,
        fold.m != near.m,
        fold.pixels != near.pixels,
        fold.style != near.style,
        abs(fold.pe - near.pe) + abs(fold.simd - near.simd),
        fold.pe * fold.simd,
        fold.multiplier != near.multiplier,
        fold.memory != near.memory,
        fold.ram,
    )


def _dual_annealing() -> Any:
    try:
        from scipy.optimize import dual_annealing
    except ImportError as error:
        raise ScheduleError("annealing needs scipy: pip install -e '.[solver]', or fold greedily") from error
    return dual_annealing
