"""FIFO depths that the trace requires are given to the folding search again until it finds nothing cheaper."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from scheduler.hardware.primitives import MIN_FIFO_DEPTH
from scheduler.streaming.area.total import edge_usage, usage
from scheduler.streaming.graph import Fold
from scheduler.streaming.lower import lower
from scheduler.streaming.model.converters import edge_of, edges
from scheduler.streaming.model.waiting import TracedStreams
from scheduler.streaming.result import Goal, evaluate
from scheduler.streaming.search import exact
from systolic.model import DesignInputs
from systolic.styles.streaming import flow
from systolic.styles.streaming.exploration import explore
from systolic.styles.streaming.fifos import PipelineFifos
from systolic.styles.streaming.options import StreamingOptions
from systolic.trace.timing import DeadlockError
from tests.support.pipelines import BOARD, skip

PICTURE = np.random.default_rng(1).integers(0, 256, (3, 16, 16), np.uint8)
RATE = StreamingOptions(fps=100_000)
"""A rate at which the cost of the skip connection's FIFOs makes another folding the cheapest."""


INPUTS = DesignInputs({}, PICTURE)


def quiet(_: str) -> None:
    """Discard a progress message."""


@pytest.mark.engine
def test_traced_fifo_costs_change_the_folding() -> None:
    """Find a folding that, with traced FIFOs, is cheaper than the one that was the cheapest with estimated FIFOs."""
    mapping = explore(skip(), BOARD, None, RATE)
    designs = flow._folded_again(flow._Traced.of(mapping, INPUTS, RATE, quiet), INPUTS, RATE, quiet)
    best = min(designs, key=lambda design: design.order(RATE))
    assert 1 < len(designs) <= flow.ROUNDS
    assert designs[0].folds == mapping.folded.folding.folds != best.folds
    assert best.mapping.folded.area < designs[0].mapping.folded.area
    assert designs[0].mapping.proof == "proven cheapest with FIFOs as estimated"
    assert re.fullmatch(
        r"proven cheapest with FIFOs as (its own trace|the trace of folding \d) sized them", best.mapping.proof
    )
    assert best.mapping.folded.cycles <= mapping.clock_mhz * 1e6 / 100_000


@pytest.mark.engine
def test_folding_that_its_fifos_keep_is_proven_with_them() -> None:
    options = replace(RATE, fps=80_000)
    mapping = explore(skip(), BOARD, None, options)
    plan = flow.generate_with_fifos(mapping, INPUTS, options, quiet)
    assert plan.mapping.proof == "proven cheapest with FIFOs as its own trace sized them"
    assert "proven cheapest with FIFOs as its own trace sized them" in plan.text()
    assert plan.values()["folding"]["state"] == "optimal"


@pytest.mark.engine
def test_folding_that_deadlocks_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the first traced folding and its proof if the trace of every other folding deadlocks."""
    mapping = explore(skip(), BOARD, None, RATE)
    trace = flow._traced

    def only_the_first(*arguments: object) -> PipelineFifos:
        monkeypatch.setattr(flow, "_traced", stopped)
        return trace(*arguments)  # type: ignore[arg-type]

    def stopped(*_: object) -> PipelineFifos:
        raise DeadlockError(0, (), None)

    monkeypatch.setattr(flow, "_traced", only_the_first)
    plan = flow.generate_with_fifos(mapping, INPUTS, RATE, quiet)
    assert plan.mapping.folded.folding.folds == mapping.folded.folding.folds
    assert plan.mapping.proof == "proven cheapest with FIFOs as estimated"


def test_traced_streams_use_the_traced_depth() -> None:
    """Use the traced depth for the traced word width, and a depth that holds the same values for another width."""
    graph = lower(skip())
    folds = exact.fold(graph, BOARD, Goal(3000)).folding.folds
    traced = TracedStreams(
        {
            (edge.reader, edge.port): (*((c.lanes_in, MIN_FIFO_DEPTH) for c in edge.converters), (edge.read.size, 77))
            for edge in edges(graph, folds)
        }
    )
    for edge in edges(graph, folds):
        assert traced.of(edge)[-1] == (edge.read.size, 77)
        assert all(depth == MIN_FIFO_DEPTH for _, depth in traced.of(edge)[:-1])
        other = edge_of(graph, [Fold()] * len(graph.blocks), edge.reader, edge.port)
        size, depth = traced.of(other)[-1]
        if not edge.converters and not other.converters:
            assert size * (depth - MIN_FIFO_DEPTH) >= edge.read.size * 75 > size * (depth - MIN_FIFO_DEPTH - 1)


@pytest.mark.engine
def test_exact_search_with_an_expensive_trace_avoids_it() -> None:
    """Plant a trace in which the skip connection's second path holds a map in a FIFO.

    The FIFO is as wide as the path's words. Wide words cost more than narrow ones, because a BRAM holds fewer of them.
    """
    graph = lower(skip())
    cheapest = exact.fold(graph, BOARD, Goal(3000))
    joint = next(index for index, block in enumerate(graph.blocks) if len(block.inputs) > 1)
    goals = [Goal(3000, traced=TracedStreams({(joint, 1): ((1, depth),)})) for depth in (2, 1 << 17)]
    near, dear = (exact.fold(graph, BOARD, goal) for goal in goals)
    assert near.area <= cheapest.area < dear.area
    for goal, folded in zip(goals, (near, dear), strict=True):
        assert folded.usage == usage(folded.folding, BOARD, goal.traced)
        assert folded.area <= evaluate(graph, cheapest.folding.folds, BOARD, goal).area
        edge = edge_of(graph, folded.folding.folds, joint, 1)
        assert goal.traced.of(edge)[-1][1] >= MIN_FIFO_DEPTH
    assert edge_usage(edge_of(graph, dear.folding.folds, joint, 1), BOARD, goals[1].traced).bram18 > 8
