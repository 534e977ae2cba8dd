"""The result of every search is legal, in particular for wide layers, whose words could exceed WIDEST_WORD."""

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
    """Return a random graph of a few layers, with prime or many channels and windows of up to 7 × 7."""
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
        else:  # the channels are few, because many would only make the weights of the test large
            made.conv(int(random.choice(CHANNELS[:8])), kernel if made.nodes[-1].shape.channels < 128 else 1, stride)
    return lower((made.dense(int(random.choice((3, 10, 97)))) if random.random() < 0.3 else made).network())


@cases("seed", range(60))
def test_greedy_folding_of_random_layers_is_legal(seed: int) -> None:
    graph = drawn(seed)
    for target in (None, 100, 5000):
        folds = greedy.fold(graph, BOARD, Goal(target)).folding.folds
        assert list(violations(graph, folds)) == []


def test_greedy_folds_a_wide_depthwise_layer_within_the_widest_word() -> None:
    """Windows of 5 × 5 taps of 8 bits take 6,400 bits for 32 channels, above WIDEST_WORD, and 3,200 bits for 16.

    16 channels with all taps per cycle are faster than 32 channels with one tap per cycle.
    """
    graph = lower(Layers(3, 8, 8, "INT8", "INT8").conv(32, 1).depthwise(5).conv(4, 1).network())
    folds = greedy.fold(graph, BOARD, Goal(None)).folding.folds
    by_name = {block.name: (fold, index) for index, (block, fold) in enumerate(zip(graph.blocks, folds, strict=True))}
    (window, index), (unit, _) = by_name["conv2_window"], by_name["conv2"]
    assert (unit.pe, unit.simd, window.simd, window.style) == (16, 25, 16, "parallel")
    assert FoldedBlock(graph, folds, index).bits == 16 * 25 * 8 <= WIDEST_WORD


def test_exact_folding_of_a_wide_depthwise_layer_is_legal() -> None:
    pytest.importorskip("ortools", reason="the exact search needs OR-tools: pip install -e '.[solver]'")
    graph = lower(Layers(3, 8, 8, "INT8", "INT8").conv(32, 1).depthwise(5).network())
    options = Options(max_pixels=1, uram_weights=False)
    folds = exact.fold(graph, BOARD, Goal(3000), options).folding.folds
    assert list(violations(graph, folds)) == []
