"""Every folding that a search ends in is legal, whatever the layers: wide ones above all, whose words would be longer
than a stream's longest."""

from __future__ import annotations

import numpy as np
import pytest

from boards.board import load
from scheduler.hardware.primitives import WIDEST_WORD
from scheduler.streaming import graph as g
from scheduler.streaming.folded_block import FoldedBlock
from scheduler.streaming.lower import lower
from scheduler.streaming.result import Goal
from scheduler.streaming.rules import violations
from scheduler.streaming.search import exact, greedy
from scheduler.streaming.search.candidates import Options
from tests.support.cases import cases
from tests.support.low_bit import Layers

BOARD = load("zcu104")
FORMATS = (("INT4", "UINT4"), ("INT8", "INT8"), ("TERNARY", "TERNARY"), ("BIPOLAR", "UINT2"), ("INT8", "INT16"))
CHANNELS = (1, 2, 3, 8, 11, 32, 37, 64, 97, 128, 257, 521, 1021)


def drawn(seed: int) -> g.StreamGraph:
    """A few layers of channels that may be prime or many, and of windows up to 7 × 7."""
    random = np.random.default_rng(seed)
    weights, values = FORMATS[int(random.integers(len(FORMATS)))]
    made = Layers(int(random.choice((1, 3, 32))), 8, 8, weights, values)
    for step in random.choice(("conv", "depthwise", "point", "pool", "wide"), 3):
        kernel, stride = int(random.choice((1, 3, 5, 7))), int(random.integers(1, 3))
        if step == "depthwise":
            made.depthwise(kernel, stride)
        elif step == "pool" and made.nodes[-1].shape.height >= 2:
            made.pool()
        elif step == "point":
            made.conv(int(random.choice(CHANNELS)), 1)
        else:  # weights of many channels take memory, which no rule asks about
            made.conv(int(random.choice(CHANNELS[:8])), kernel if made.nodes[-1].shape.channels < 128 else 1, stride)
    return lower((made.dense(int(random.choice((3, 10, 97)))) if random.random() < 0.3 else made).network())


@cases("seed", range(60))
def test_what_greedy_ends_in_is_legal(seed: int) -> None:
    graph = drawn(seed)
    for target in (None, 100, 5000):
        folds = greedy.fold(graph, BOARD, Goal(target)).folding.folds
        assert list(violations(graph, folds)) == []


def test_the_windows_of_a_wide_depthwise_layer_are_gathered_for_as_many_channels_as_a_word_holds() -> None:
    """32 channels of 5 × 5 places of 8 bits are 6,400 bits; 16 are 3,200, faster than 32 channels place by place."""
    graph = lower(Layers(3, 8, 8, "INT8", "INT8").conv(32, 1).depthwise(5).conv(4, 1).network())
    folds = greedy.fold(graph, BOARD, Goal(None)).folding.folds
    by_name = {block.name: (fold, index) for index, (block, fold) in enumerate(zip(graph.blocks, folds, strict=True))}
    (window, index), (unit, _) = by_name["conv2_window"], by_name["conv2"]
    assert (unit.pe, unit.simd, window.simd, window.style) == (16, 25, 16, "parallel")
    assert FoldedBlock(graph, folds, index).bits == 16 * 25 * 8 <= WIDEST_WORD


def test_exact_folds_a_wide_depthwise_layer() -> None:
    pytest.importorskip("ortools", reason="the exact search needs OR-tools: pip install -e '.[solver]'")
    graph = lower(Layers(3, 8, 8, "INT8", "INT8").conv(32, 1).depthwise(5).network())
    options = Options(max_pixels=1, uram_weights=False)
    folds = exact.fold(graph, BOARD, Goal(3000), options).folding.folds
    assert list(violations(graph, folds)) == []
