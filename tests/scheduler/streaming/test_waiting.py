"""What waits where ways of different length meet again."""

from __future__ import annotations

from boards.board import load
from scheduler.streaming import graph as g
from scheduler.streaming.lower import lower
from scheduler.streaming.model.waiting import depth_of, depths, waiting
from tests.low_bit import skipping, ultranet

ULTRA96, PYNQ = load("ultra96-v2"), load("pynq-z2")


def test_a_map_that_is_joined_later_waits_for_the_rows_in_between() -> None:
    graph = lower(skipping())
    index = next(i for i, block in enumerate(graph.blocks) if isinstance(block.op, g.Concat))
    late = waiting(graph)
    assert set(late) == {(index, 1)} or set(late) == {(index, 0)}
    ((_, port),) = late
    words = depth_of(graph, index, port, g.Fold(simd=4))
    assert words == 2 + -(-late[index, port] // 4)
    assert depths(graph, [g.Fold(simd=4)] * len(graph.blocks)) == ((index, port, words),)


def test_a_chain_has_only_least_fifos() -> None:
    assert waiting(lower(ultranet())) == {}
