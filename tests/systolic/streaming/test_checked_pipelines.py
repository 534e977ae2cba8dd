"""Pipelines of random networks with random foldings: ``systolic check`` derives what every loop declares.

SYSTOLIC_CHECKED_SEEDS=0,1,2 … selects other seeds.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ziglang", reason="the checker needs the compiler of the package ziglang")

from scheduler.streaming import graph as g
from scheduler.streaming.lower import lower
from systolic.checking.design import check_design
from tests.support.drawn_pipelines import FORMATS, STEPS, drawn_network
from tests.support.foldings import drawn_folding
from tests.support.low_bit import Layers
from tests.support.pipelines import BOARD, choosing, folded, make, sharing

pytestmark = pytest.mark.engine

SEEDS = [int(seed) for seed in os.environ.get("SYSTOLIC_CHECKED_SEEDS", "1,8").split(",")]
MHZ = 300


@pytest.mark.parametrize("seed", SEEDS)
def test_check_of_drawn_pipelines_confirms_every_loop(tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    steps = [str(step) for step in random.choice(STEPS, int(random.integers(2, 6)))]
    network = drawn_network(steps, FORMATS[int(random.integers(len(FORMATS)))], int(random.integers(2**31)))
    folding = drawn_folding(lower(network), BOARD, int(random.integers(2**31)))
    make(network, folding, tmp_path / "design")
    loops = check_design(tmp_path / "design", MHZ).loops
    assert len(loops) > 10
    failing = [loop for loop in loops if not loop.holds or loop.deeper]
    assert [(loop.process, loop.source, loop.derived_ii, loop.derived_depth, loop.reason) for loop in failing] == []


def test_check_of_label_select_confirms_its_loops(tmp_path: Path) -> None:
    """Check label selection with several values per cycle, which a tree merges, at one position and at many."""
    network = choosing()
    folding = folded(network, 60)
    make(network, folding, tmp_path / "design")
    pairs = zip(folding.graph.blocks, folding.folds, strict=True)
    assert max(fold.pe for block, fold in pairs if isinstance(block.op, g.LabelSelect)) > 1
    loops = [loop for loop in check_design(tmp_path / "design", MHZ).loops if loop.source.startswith("label_select.h")]
    assert len(loops) == 3
    assert [loop.derived_ii for loop in loops] == [1, 1, 1]
    assert [loop.process for loop in loops if not loop.holds or loop.deeper] == []


def test_check_of_softmax_confirms_its_loops(tmp_path: Path) -> None:
    network = sharing()
    folding = folded(network, 120)
    make(network, folding, tmp_path / "design")
    pairs = zip(folding.graph.blocks, folding.folds, strict=True)
    assert max(fold.pe for block, fold in pairs if isinstance(block.op, g.Softmax)) > 1
    loops = [loop for loop in check_design(tmp_path / "design", MHZ).loops if loop.source.startswith("softmax.h")]
    assert [loop.derived_ii for loop in loops] == [1, 1, 1, 1]
    assert [loop.process for loop in loops if not loop.holds or loop.deeper] == []


@pytest.mark.parametrize("channels", [8, 40], ids=["registers", "memory"])
def test_check_of_a_dilated_parallel_window_confirms_its_memories(tmp_path: Path, channels: int) -> None:
    """Check a window of 3 rows and 37 columns, whose columns are one word of 8 channels, or five for 40 channels."""
    network = Layers(3, 6, 40, "INT8", "INT8").conv(channels, 1).spaced(4, 3, 18).network()
    folding = folded(network, 40_000)
    folds = tuple(
        replace(fold, simd=8, style="parallel") if isinstance(block.op, g.Window) else fold
        for block, fold in zip(folding.graph.blocks, folding.folds, strict=True)
    )
    make(network, replace(folding, folds=folds), tmp_path / "design")
    check = check_design(tmp_path / "design", MHZ)
    assert [loop.derived_ii for loop in check.loops if loop.source.startswith("window.h")] == [1]
    assert [loop.process for loop in check.loops if not loop.holds or loop.deeper] == []
    memories = {memory.name: memory for memory in check.memories}
    assert ("columns" in memories) is (channels == 40)
    assert [memory.estimated for memory in check.memories] == [memory.derived for memory in check.memories]


@pytest.mark.parametrize("bits", [8, 12])
def test_check_of_a_table_of_32_lanes_confirms_its_memories(tmp_path: Path, bits: int) -> None:
    network = Layers(1, 8, 16, "INT8", f"INT{bits}").conv(16, 1).curve().conv(1, 1).wide().network("curve")
    folding = folded(network, 96)
    lanes = next(
        fold.pe * fold.m
        for fold, block in zip(folding.folds, folding.graph.blocks, strict=True)
        if isinstance(block.op, g.Activate)
    )
    assert lanes == 32  # twice the number of lanes for which a tool is expected to copy a memory
    make(network, folding, tmp_path / "design")
    check = check_design(tmp_path / "design", MHZ)
    assert [loop.derived_ii for loop in check.loops if loop.source.startswith("activate.h")] == [1]
    curves = {memory.name: memory for memory in check.memories if memory.name.startswith("curve")}
    built = {name: (memory.unit, memory.estimated, memory.derived) for name, memory in curves.items()}
    luts = {"curve2_activation.value": 256 // 64 * bits * lanes}
    products: list[tuple[int, int]] = []
    if bits > 8:
        # The values of at least one of the 256 segments of 16 inputs change by more than 4095 · 15 / 16, so that slopes
        # take 14 bits with the sign.
        luts["curve2_activation.slope"] = 256 // 64 * 14 * lanes
        products = [(lanes, lanes)]
    assert built == {name: ("LUT", count, count) for name, count in luts.items()}
    assert [(row.estimated, row.derived) for row in check.dsps if row.process == "curve2_process"] == products
