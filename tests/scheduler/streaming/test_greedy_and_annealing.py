"""The greedy folding search as published by FINN, and annealing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest

from boards.board import load
from boards.errors import MissingValueError, RangeError
from cnn.ops import MaxPool
from scheduler.streaming import graph as g
from scheduler.streaming.lower import lower
from scheduler.streaming.model.cycles import block_cycles
from scheduler.streaming.model.depths import LEAST_UNIT_DEPTH
from scheduler.streaming.result import Goal
from scheduler.streaming.search import annealing, exact, greedy
from scheduler.streaming.search.candidates import Options
from scheduler.streaming.search.space import space_of
from tests.support.cases import cases
from tests.support.errors import raises
from tests.support.low_bit import Layers, cnv, mobilenet, skipping, ultranet
from tests.support.stream_graphs import packaged

ULTRA96 = load("ultra96-v2")
UNIT = LEAST_UNIT_DEPTH


def folds(graph: g.StreamGraph, target: int, strict: bool = True) -> dict[str, g.Fold]:
    found = greedy.fold(graph, ULTRA96, Goal(target), strict=strict)
    return {block.name: fold for block, fold in zip(graph.blocks, found.folding.folds, strict=True)}


def test_greedy_raises_simd_before_pe() -> None:
    graph = lower(Layers(8, 10, 10).conv(16, 3).network())
    assert folds(graph, 100 * 16 * 8 + UNIT + 1)["conv1"] == g.Fold(pe=1, simd=9)
    # SIMD 12 would exceed 36 bits of weights per PE, so that PE is raised.
    assert folds(graph, 100 * 16 * 6 + UNIT)["conv1"] == g.Fold(pe=2, simd=9)


def test_strict_greedy_unfolds_a_block_on_target_once_more() -> None:
    graph = lower(Layers(8, 10, 10).conv(16, 1).network())
    assert block_cycles(graph, 1, g.Fold(simd=4)) == 3200 + UNIT
    assert folds(graph, 3200 + UNIT)["conv1"] == g.Fold(simd=8)
    assert folds(graph, 3200 + UNIT, strict=False)["conv1"] == g.Fold(simd=4)


def test_greedy_window_becomes_parallel_if_too_slow() -> None:
    graph = lower(Layers(4, 10, 10).conv(16, 3).network())
    assert folds(graph, 923)["conv1_window"] == g.Fold(simd=4)
    assert folds(graph, 450)["conv1_window"] == g.Fold(simd=4, style="parallel")


def test_greedy_depthwise_window_follows_its_unit() -> None:
    graph = lower(Layers(4, 10, 10).depthwise().network())
    few, many = folds(graph, 1000), folds(graph, 500)
    assert (few["conv1"], few["conv1_window"]) == (g.Fold(pe=4), g.Fold(simd=4))
    assert (many["conv1"], many["conv1_window"]) == (g.Fold(pe=4, simd=3), g.Fold(simd=4, style="parallel"))


def joined() -> Layers:
    return (
        Layers(6, 4, 4).conv(4, 1).conv(6, 1, 1, None, False, 0).concat(1, 2).slice(0, 4, 3).slice(4, 6, 3).concat(4, 5)
    )


def moving(graph: g.StreamGraph, index: int) -> Iterator[g.Fold]:
    """Yield the folds of a block without weights, with increasing lanes that divide the channels of all its maps."""
    op, block = graph.blocks[index].op, graph.blocks[index]
    parts = [kind.shape.channels for kind in (*graph.inputs_of(block), *block.outputs)]
    parts = [kind.shape.channels for kind in graph.inputs_of(block)] if isinstance(op, g.Concat) else parts
    parts = [*op.parts] if isinstance(op, g.Split) else parts
    for lanes in range(1, min(parts) + 1):
        if not any(part % lanes for part in parts):
            pe = isinstance(op, (MaxPool, g.Add, g.Duplicate, g.Activate, g.Custom))
            yield g.Fold(pe=lanes) if pe else g.Fold(simd=lanes)


@cases("strict", [True, False])
@cases("made", [lambda: lower(joined().network()), lambda: lower(joined().pool().sum(7, 7).network()), packaged])
def test_greedy_blocks_without_weights_take_the_first_lanes_on_target(
    made: Callable[[], g.StreamGraph], strict: bool
) -> None:
    """If no fold meets the target, the block has the most lanes that divide its maps."""
    graph = made()
    for target in (60, 130, 131, 250, 10_000):
        found = folds(graph, target, strict)
        slowest = max(block_cycles(graph, i, found[block.name]) for i, block in enumerate(graph.blocks))
        if slowest > target:
            continue  # a second pass had the slowest block's cycles as its target
        for index, block in enumerate(graph.blocks):
            if not isinstance(block.op, (g.MatrixVector, g.Window)):
                each = [*moving(graph, index)]
                meet = [f for f in each if block_cycles(graph, index, f) < target + (not strict)]
                assert found[block.name] == (meet or each[-1:])[0]


def test_greedy_raises_lanes_to_the_last_legal_value() -> None:
    """A word has at most 4096 bits, or 1024 values of 4 bits. Words of darknet's reorg of 6 rows have one value."""
    wide = lower(Layers(3, 2, 2).conv(2048, 1).upsample(2).network())
    assert folds(wide, 1)["upsample2"] == g.Fold(simd=1024)
    rows = lower(Layers(3, 6, 8).conv(8, 1).reorg(2, 1).network())
    assert folds(rows, 1)["reorg2"] == g.Fold()


def test_greedy_depthwise_window_is_parallel_if_its_unit_has_two_taps() -> None:
    graph = lower(Layers(2, 8, 8).depthwise(2).network())
    whole = block_cycles(graph, 2, g.Fold(pe=2))
    found = folds(graph, whole - 1, strict=False)
    assert (found["conv1"], found["conv1_window"]) == (g.Fold(pe=2, simd=2), g.Fold(simd=2, style="parallel"))
    for strict in (True, False):  # SIMD is raised only if the unit is slower than the target
        found = folds(graph, whole, strict)
        assert (found["conv1"], found["conv1_window"]) == (g.Fold(pe=2), g.Fold(simd=2))


def test_greedy_raises_the_lanes_of_the_block_s_words() -> None:
    """Blocks that compare channels raise PE, within their limits. Blocks that move channels raise SIMD.

    SIMD divides the channels of all the block's maps.
    """
    shares = lower(Layers(3, 8, 8).conv(12, 3).shares("stable").network())
    assert folds(shares, 300, strict=False)["softmax2"] == g.Fold(pe=3)  # 64 positions of 4 words, lag 2 · 4 + 16
    many = lower(Layers(3, 8, 8).conv(192, 1).shares("argmax").network())
    assert folds(many, 1, strict=False)["softmax2"] == g.Fold(pe=64)
    labels = lower(Layers(3, 8, 8).conv(128, 3).choose(3).network())
    assert folds(labels, 1000, strict=False)["choice2"] == g.Fold(pe=16)  # 16 · 3 labels, of at most 64 values
    spread = lower(Layers(3, 8, 8).conv(12, 3).spread(2, 2).network())
    assert folds(spread, 300, strict=False)["spread2"] == g.Fold(simd=3)  # 12 channels are read and 3 written
    joined = lower(Layers(3, 8, 8).conv(12, 1).conv(8, 1, 1, None, False, 0).concat(1, 2).network())
    assert folds(joined, 1, strict=False)["concat3"] == g.Fold(simd=4)


def test_greedy_balances_to_the_slowest_block() -> None:
    """The target of the second pass is the slowest block's cycles after the first pass."""
    graph = lower(Layers(2, 10, 10).conv(4, 3).conv(64, 1).network())
    found = greedy.fold(graph, ULTRA96, Goal(1), strict=False)
    assert found.cycles == 200 + UNIT  # 18 columns, of which SIMD 9 stays within 36 bits of weights
    assert found.folding.folds[-1] == g.Fold(simd=32)  # the first pass, with a target of 1, had SIMD 64


@cases("make", [ultranet, cnv, mobilenet, skipping])
@cases("target", [1, 30_000, 1_000_000])
def test_greedy_foldings_are_legal(make: object, target: int) -> None:
    found = greedy.fold(lower(make()), ULTRA96, Goal(target))  # type: ignore[operator]
    assert found.state == "heuristic"
    assert math.isnan(found.gap)


@pytest.mark.parametrize("make", [skipping, pytest.param(lambda: mobilenet(32), marks=pytest.mark.engine)])
def test_annealing_meets_the_target_and_is_not_below_the_exact_area(make: object) -> None:
    pytest.importorskip("ortools")
    pytest.importorskip("scipy")
    graph = lower(make())  # type: ignore[operator]
    space = space_of(graph, ULTRA96, Options())
    goal = Goal(40_000)
    found = annealing.fold(graph, ULTRA96, goal, effort=annealing.Effort(60, 1), space=space)
    best = exact.fold(graph, ULTRA96, goal, space=space)
    assert found.fits
    assert found.cycles <= 40_000
    assert best.state == "optimal"
    assert best.area <= found.area


def test_annealing_is_reproducible_and_improves_with_effort() -> None:
    pytest.importorskip("scipy")
    graph = lower(Layers(8, 16, 16).conv(16, 3).pool().conv(16, 3).network())
    space = space_of(graph, ULTRA96, Options())
    little, again, much = (
        annealing.fold(graph, ULTRA96, Goal(10_000), effort=annealing.Effort(effort, attempts, 3), space=space)
        for effort, attempts in ((30, 1), (30, 1), (300, 2))
    )
    assert little.folding.folds == again.folding.folds
    assert much.area <= little.area


def test_annealing_without_a_reachable_target_is_refused() -> None:
    pytest.importorskip("scipy")
    graph = lower(Layers(8, 16, 16).conv(16, 3).network())
    with raises(MissingValueError, what="the frame rate"):
        annealing.fold(graph, ULTRA96, Goal(None))
    with raises(RangeError, where="drawn: input", got=10):
        annealing.fold(graph, ULTRA96, Goal(10))
