"""Maps that lie side by side in DDR, so that a concat, a slice and the operands of an addition cost nothing.

The maps that a concat joins share rows, a *strip*: [row][block][column], the blocks of one map after those of the
other. Each writer fills its own blocks, and what reads the concat reads one run of them:

    row y of a strip    │ blocks of a │ blocks of b │
    a alone             └─────────────┘
    concat of a, b      └───────────────────────────┘
    a slice of b                        └──────┘
    a + b               rows of a and b in turn: one map of twice the rows

Every map begins at a whole block, whatever its channels; of a lane between them the weights are 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from cnn.network import Network
from cnn.ops import Add, Concat, Multiply, QAdd, QMultiply, Slice
from cnn.quantized import QuantizedNetwork
from scheduler.hardware.arithmetic import ceil_div

ALIGNED = 64
"""Channels after which every array begins a block: its lanes are a power of two up to that (array.py)."""


ROWS_IN_TURN = (Add, QAdd, Multiply, QMultiply)
"""Operations whose maps are read row by row in turn: they lie side by side, and nothing beside them."""


@dataclass(frozen=True)
class Span:
    """Channels ``first`` … ``end`` − 1 of the ``channels`` of a node's map, as channels ``start`` and following of what
    is read."""

    node: int
    channels: int
    first: int
    end: int
    start: int = 0

    @property
    def is_map(self) -> bool:
        return self.end - self.first == self.channels

    def blocks(self, lanes: int) -> int:
        """Words of a position that hold these channels."""
        return ceil_div(self.end, lanes) - self.first // lanes


def spans_of(network: Network | QuantizedNetwork, index: int) -> tuple[Span, ...]:
    """What a node's map consists of, in the order of its channels."""
    node = network.nodes[index]
    if isinstance(node.op, Concat):
        joined: list[Span] = []
        start = 0
        for source in node.inputs:
            for span in spans_of(network, source):
                _append(joined, replace(span, start=start + span.start))
            start += network.nodes[source].shape.channels
        return tuple(joined)
    if isinstance(node.op, Slice):
        return _sliced(spans_of(network, node.inputs[0]), node.op.first, node.op.channels)
    return (Span(index, node.shape.channels, 0, node.shape.channels),)


def _append(spans: list[Span], span: Span) -> None:
    """``span`` behind the others; slices of a map that follow each other are one."""
    last = spans[-1] if spans else None
    if last and last.node == span.node and last.end == span.first:
        spans[-1] = replace(last, end=span.end)
    else:
        spans.append(span)


def _sliced(spans: tuple[Span, ...], first: int, channels: int) -> tuple[Span, ...]:
    parts = []
    for span in spans:
        low = max(first, span.start)
        high = min(first + channels, span.start + span.end - span.first)
        if low < high:
            offset = span.first - span.start
            parts.append(Span(span.node, span.channels, low + offset, high + offset, low - first))
    return tuple(parts)


def group_of(spans: tuple[Span, ...], number: int, channels: int) -> tuple[Span, ...]:
    """Of what ``spans`` are, the ``number``-th group of so many channels."""
    return _sliced(spans, number * channels, channels)


def aligned(spans: tuple[Span, ...]) -> bool:
    """Whether every array finds the channels where those of a map alone would lie: a depthwise layer reads them so."""
    in_order = all(span.start < follower.start for span, follower in pairwise(spans))
    return in_order and all(span.start % ALIGNED == 0 and span.first % ALIGNED == 0 for span in spans)


def lane_places(spans: tuple[Span, ...], lanes: int) -> npt.NDArray[np.intp]:
    """[channels]: of each channel that is read its lane, counted over the blocks of a position as they lie."""
    places = np.zeros(sum(span.end - span.first for span in spans), np.intp)
    blocks = 0
    for span in spans:
        first = blocks * lanes + span.first % lanes
        places[span.start : span.start + span.end - span.first] = first + np.arange(span.end - span.first)
        blocks += span.blocks(lanes)
    return places
