"""Totals of a folding: converters, bits of FIFOs, and multiply-accumulates."""

from __future__ import annotations

from boards.board import load
from scheduler.streaming import graph as g
from scheduler.streaming.area.total import converter_count, fifo_bits, macs
from scheduler.streaming.lower import lower
from tests.support.low_bit import Layers

ULTRA96, PYNQ = load("ultra96-v2"), load("pynq-z2")


def test_totals_of_a_small_folding_are_as_counted_by_hand() -> None:
    graph = lower(Layers(4, 8, 8).conv(6, 1).network())
    folding = g.StreamingFolding(graph, (g.Fold(simd=4), g.Fold(simd=2, pe=3), g.Fold(simd=3)))
    assert converter_count(folding) == 1
    assert fifo_bits(folding) == 2 * (8 * 2 + 8 * 4 + 4 * 3)
    assert macs(graph) == 64 * 24
