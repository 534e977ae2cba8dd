"""Bit widths of the sums and thresholds in the blocks of a pipeline."""

from __future__ import annotations

import numpy as np

from cnn.datatype import DataType
from cnn.quantized import QuantizedNetwork
from cnn.requantise import Thresholds
from scheduler.streaming import graph as g
from scheduler.streaming.lower import lower
from systolic.styles.streaming.generation.wiring.constants import activation
from systolic.styles.streaming.generation.wiring.wire_up import wire_up
from tests.support.low_bit import Layers


def averaged(value: str) -> QuantizedNetwork:
    return Layers(3, 8, 8, value=value).conv(4, 3).average().dense(4).wide().network()


def test_global_pool_sum_has_the_bits_of_the_greatest_sum() -> None:
    """Hold sums of 64 values up to 15 (960) in 11 bits, and of 64 values up to 3 (192) in 9, both with a sign bit."""
    for value, bits in (("UINT4", 11), ("UINT2", 9)):
        graph = lower(averaged(value))
        folding = g.StreamingFolding(graph, tuple(g.Fold() for _ in graph.blocks))
        (pool,) = (each for each in wire_up(folding, {}, "DSP48E2").instances if each.function == "global_pool")
        assert pool.arguments[0] == "64"
        assert pool.arguments[5] == str(bits)


def test_activation_cuts_unreachable_thresholds_to_32_bits() -> None:
    far = np.array([[-(1 << 40), -5, 1 << 40]], np.int64)
    made = activation(Thresholds(far, np.array([False])), DataType(2, False), 1, 1)
    assert made.fields[0].tolist() == [[[-(1 << 31), -5, (1 << 31) - 1]]]
    assert made.type == "thresholds_t<2, false, 0, 3, 33, 1, 1>"
