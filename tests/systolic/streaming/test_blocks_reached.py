"""Every documented block is reached by a network, and every block has a row of constraints on its folding."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import get_args

from cnn.maps import Padding
from cnn.ops import Reorg
from cnn.quantized import QuantizedNetwork
from scheduler.streaming import graph as g
from scheduler.streaming.lower import lower
from scheduler.streaming.rules import DIVISORS, check
from systolic.styles.streaming.generation.wiring.wire_up import wire_up
from tests.support.low_bit import Layers
from tests.support.pipelines import choosing, every_block, sharing

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "streaming_blocks.md"

FOLDS = {
    "conv1": g.Fold(pe=2, memory="decoupled", ram="bram"),
    "conv2_window": g.Fold(style="parallel", simd=2),
    "conv2": g.Fold(simd=9, memory="decoupled", ram="uram", pad_out=1),
    "conv3": g.Fold(pe=2, memory="external"),
    "conv4": g.Fold(pixels=2),
}
"""Folds of ``streamed`` by block: word widths differ between blocks, and weights are in every kind of memory."""


def moved() -> QuantizedNetwork:
    """Return a network with a product, depth to space, a reorg, a slice with an unread rest, and a global average."""
    made = Layers(3, 8, 8).conv(8, 3).conv(8, 1)
    made.product(1, 2).spread(1, 2).reorg(2, made.last).conv(4, 1).slice(0, 2, made.last).average().dense(4).wide()
    return made.network("moved")


def streamed() -> QuantizedNetwork:
    made = Layers(3, 6, 6).conv(4, 3).conv(8, 3, 1, Padding()).conv(4, 1).conv(4, 1)
    return made.dense(6).wide().network("streamed")


def functions(network: QuantizedNetwork, folds: dict[str, g.Fold]) -> set[str]:
    """Return the C++ functions that the pipeline calls if all blocks but the ones in ``folds`` have the least fold."""
    graph = lower(network)
    folding = g.StreamingFolding(graph, tuple(folds.get(block.name, g.Fold()) for block in graph.blocks))
    return {instance.function for instance in wire_up(check(folding), {}, "DSP48E2").instances}


def reached() -> set[str]:
    darknet = moved()
    order = [replace(node, op=Reorg(2, "block")) if isinstance(node.op, Reorg) else node for node in darknet.nodes]
    blocks = replace(darknet, nodes=tuple(order))
    plain = (functions(network, {}) for network in (every_block(), choosing(), sharing(), darknet, blocks))
    return functions(streamed(), FOLDS).union(*plain)


def documented() -> set[str]:
    """Return the names of the page's first columns, without the functors of the blocks, whose names end with _t."""
    rows = [line.split("|")[1] for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row) if not name.endswith("_t")}


def test_documented_blocks_are_all_reached() -> None:
    assert documented() - reached() == set()


def test_reached_blocks_are_all_documented() -> None:
    assert {name for name in reached() - documented() if not name.endswith("_beats")} == set()


def test_divisors_cover_every_block() -> None:
    held = {op for row in DIVISORS for op in row.ops}
    assert [op for op in get_args(g.OwnOp) if op not in held] == []
