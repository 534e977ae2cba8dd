"""Maps that are stored next to each other in DDR, so that a concat, a slice and the operands of an add need no layer.

The maps that a concat joins share rows, which are called a *strip*. Its words are stored as (row, block, column), and
the channel blocks of one map follow the blocks of another. Each map's layer writes its own blocks. A layer that reads
the concat reads neighbouring blocks of the strip:

    row y of a strip    │ blocks of a │ blocks of b │
    a alone             └─────────────┘
    concat of a, b      └───────────────────────────┘
    a slice of b                        └──────┘
    a + b               rows of a and b in turn: one map with twice the rows

Every map begins with a whole block. If the last block of a map is not full, the weights of its unused lanes are 0.
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
"""A multiple of this number of channels fills whole blocks on every array, whose lanes are a power of two up to it."""


ROWS_IN_TURN = (Add, QAdd, Multiply, QMultiply)
"""Operations that read row y of each operand before row y + 1 of any. A strip of operands holds no other map."""


@dataclass(frozen=True)
class Span:
    """A range of channels of one stored feature map, as a part of a view: a map, a concat or a slice.

    Attributes:
        node: The index of the node that computes the map.
        channels: All channels of the map.
        first: The first channel of the span in the map.
        end: The channel after the last one of the span, in the map.
        start: The first channel of the span in the view.
    """

    node: int
    channels: int
    first: int
    end: int
    start: int = 0

    @property
    def is_map(self) -> bool:
        """Return whether the range covers all channels of the stored map."""
        return self.end - self.first == self.channels

    def blocks(self, lanes: int) -> int:
        """Return the number of words of ``lanes`` channels per pixel that hold the range of channels."""
        return ceil_div(self.end, lanes) - self.first // lanes


def spans_of(network: Network | QuantizedNetwork, index: int) -> tuple[Span, ...]:
    """Return the channel ranges of stored maps of which a node's map consists, in the order of its channels."""
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
    """Append a channel range to ``spans``, or extend the last range if the two are contiguous in the same map."""
    last = spans[-1] if spans else None
    if last and last.node == span.node and last.end == span.first:
        spans[-1] = replace(last, end=span.end)
    else:
        spans.append(span)


def _sliced(spans: tuple[Span, ...], first: int, channels: int) -> tuple[Span, ...]:
    """Return the channel ranges of stored maps that make up ``channels`` channels of a view, from its channel ``first``
    on."""
    parts = []
    for span in spans:
        low = max(first, span.start)
        high = min(first + channels, span.start + span.end - span.first)
        if low < high:
            offset = span.first - span.start
            parts.append(Span(span.node, span.channels, low + offset, high + offset, low - first))
    return tuple(parts)


def group_of(spans: tuple[Span, ...], number: int, channels: int) -> tuple[Span, ...]:
    """Return the channel ranges of the ``number``-th group of ``channels`` channels of a view."""
    return _sliced(spans, number * channels, channels)


def aligned(spans: tuple[Span, ...]) -> bool:
    """Return whether each channel is in the same word and lane as if the view were one stored map.

    A view is made of channels of several stored maps, such as a concatenation. It holds for every number of lanes. A
    depthwise layer can read only such channels.
    """
    in_order = all(span.start < follower.start for span, follower in pairwise(spans))
    return in_order and all(span.start % ALIGNED == 0 and span.first % ALIGNED == 0 for span in spans)


def lane_places(spans: tuple[Span, ...], lanes: int) -> npt.NDArray[np.intp]:
    """Return the lane of each channel of a view, counted over all words of a pixel, with shape (channels,).

    Lanes are counted over all blocks of a position, in the order in which ``spans`` are stored.
    """
    places = np.zeros(sum(span.end - span.first for span in spans), np.intp)
    blocks = 0
    for span in spans:
        first = blocks * lanes + span.first % lanes
        places[span.start : span.start + span.end - span.first] = first + np.arange(span.end - span.first)
        blocks += span.blocks(lanes)
    return places
