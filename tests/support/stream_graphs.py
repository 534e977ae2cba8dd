"""Small graphs of blocks that rules and searches are tried on."""

from __future__ import annotations

from dataclasses import replace

from scheduler.streaming import graph as g
from scheduler.streaming.lower import lower
from tests.support.extending import greater
from tests.support.low_bit import NONE, Layers


def conv() -> Layers:
    return Layers(6, 8, 8).conv(10, 3)


def split() -> Layers:
    made = Layers(3, 8, 8).conv(10, 1)
    return made.slice(0, 4, 1).slice(4, 6, 1).concat(2, 3)


def activate() -> g.StreamGraph:
    graph = lower(conv().network())
    unit = graph.blocks[2]
    op = g.Activate(unit.op.activation)  # type: ignore[union-attr, arg-type]
    block = replace(unit, name="act", op=op, inputs=(g.Port(2),))
    sink = replace(graph.blocks[3], inputs=(g.Port(3),))
    return g.StreamGraph("activate", (*graph.blocks[:3], block, sink))


def packaged() -> g.StreamGraph:
    graph = activate()
    act = replace(graph.blocks[3], op=g.Custom("acme_greater", (), greater.block))
    return replace(graph, blocks=(*graph.blocks[:3], act, graph.blocks[4]))


def bipolar() -> Layers:
    return Layers(6, 8, 8, "BIPOLAR", "BIPOLAR").conv(10, 3, 1, NONE)
