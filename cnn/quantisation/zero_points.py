"""Zero points: what a layer behind ReLU or leaky ReLU gives lies above zero, nearly all of it, so that integers around
zero would hold it with half of their values. A zero point moves them: value = (integer − zero point) × scale.

before   convolution, ReLU → INT4, 0…7
after    convolution → INT4, −8…7 with the zero point −8: its bias puts it on, saturation is the ReLU
before   convolution, leaky → INT4, −8…7
after    convolution, leaky → INT8, table → INT4, −8…7 with the zero point −7

No slope of a requantiser turns at another integer than 0. So a leaky layer leaves finer, and a table, which the
accelerator looks up on the way, brings it to its integers. A function that is a table has its zero point in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from boards.errors import RangeError
from cnn.activations import FUNCTIONS, LEAKY_SLOPE
from cnn.datatype import DataType
from cnn.network import Network, Node
from cnn.ops import Activate, Add, AveragePool, Convolution, Custom, Dense
from cnn.quantisation.batch_norm import fold_batch_norms
from cnn.quantisation.calibration import CalibratedRanges, Statistics, ranges_by_bits
from cnn.quantisation.quantise import quantise
from cnn.quantisation.tensor_types import groups
from cnn.quantized import QuantizedNetwork
from cnn.tables import TABLE_BITS

MOST_BITS = 8
"""Of integers with a zero point: wider ones lose too little."""

_TAKE = (Convolution, Dense, Add, AveragePool, Activate)
"""What may read a map whose zero is another integer. A product of two such maps is no product of their integers."""

ENDING = ("relu", "relu6")
"""Activations that are the end of the integers."""

_FINER = Activate("affine", (1.0, 0.0))
"""The same value, in other integers."""


def quantise_with_zero_points(
    network: Network,
    statistics: Statistics,
    method: str,
    bits: int,
    pictures: Sequence[npt.NDArray[np.uint8]] = (),
) -> QuantizedNetwork:
    """``quantise`` with a zero point wherever a layer has one, weights and activations of ``bits``.

    Behind each leaky layer stands a node more, its name with ``_finer``, so that indices are others than the float
    network's. pictures: uint8 [channels, height, width], what weights are fitted to. RangeError for more than 8 bits,
    other errors as of ``quantise``.
    """
    if bits > MOST_BITS:
        what = "the bits of activations with zero points"
        raise RangeError(what, bits, high=MOST_BITS, remedy="leave zero points out")
    folded = fold_batch_norms(network)
    if bits < TABLE_BITS:
        folded, statistics = _split(folded, statistics)
    widths = [TABLE_BITS if _is_finer(folded, index) else bits for index in range(len(folded.nodes))]
    zeros = zero_points(folded, ranges_by_bits(statistics, method, widths), widths)
    # Of a symmetric datatype half of the values lie above zero, of one with a zero point nearly all.
    reached = [width + 1 if zero else width for width, zero in zip(widths, zeros, strict=True)]
    ranges = ranges_by_bits(statistics, method, reached)
    return quantise(folded, ranges, bits=bits, activation_bits=widths, pictures=pictures, zero_points=zeros)


def zero_points(network: Network, ranges: CalibratedRanges, bits: Sequence[int]) -> tuple[int, ...]:
    """Of each node's output, 0 where none helps. bits: of each node's output."""
    roots = groups(network.nodes)
    zeros = {
        root: _of_group(network, [i for i, each in enumerate(roots) if each == root], ranges, bits) for root in {*roots}
    }
    return tuple(zeros[root] for root in roots)


def _of_group(network: Network, group: Sequence[int], ranges: CalibratedRanges, bits: Sequence[int]) -> int:
    """Of nodes that share a type: the one that leaves most room below zero."""
    if not _is_taken(network, group):
        return 0
    datatype = DataType(min(bits[i] for i in group), True)
    producers = [i for i in group if network.nodes[i].op.calibrated]
    share = max(_below_zero(network, i, ranges) for i in producers)
    levels = round(share * (datatype.high - datatype.low))
    return min(datatype.low + levels, 0)


def _is_taken(network: Network, group: Sequence[int]) -> bool:
    """Whether layers read the group, and all may read a zero point. Pixels have none, nor has what packages' layers
    read, which know nothing of one."""
    members = {*group}
    if any(isinstance(network.nodes[i].op, Custom) for i in group):
        return False
    readers = [node for node in network.nodes if node.op.calibrated and members.intersection(node.inputs)]
    return 0 not in members and bool(readers) and all(isinstance(node.op, _TAKE) for node in readers)


def _below_zero(network: Network, index: int, ranges: CalibratedRanges) -> float:
    """The share of a node's range that lies below zero; a half where there is no telling."""
    node = network.nodes[index]
    op = node.op
    if _ends(node):
        return 0.0
    if not isinstance(op, Activate):
        return 0.5
    before = network.nodes[node.inputs[0]]
    if op == _FINER and _is_leaky(before):  # its sums reach as far below zero as above
        return LEAKY_SLOPE / (1 + LEAKY_SLOPE)
    reach = ranges.values[node.inputs[0]]
    lowest = float(-FUNCTIONS[op.function].values(np.linspace(-reach, reach, 1 << TABLE_BITS), *op.parameters).min())
    below = min(max(lowest, 0.0), ranges.values[index])
    return below / (below + ranges.values[index]) if ranges.values[index] > 0 else 0.5


def _is_leaky(node: Node) -> bool:
    return isinstance(node.op, (Convolution, Dense)) and node.op.activation == "leaky"


def _is_finer(network: Network, index: int) -> bool:
    """Whether a table alone reads the sums of a layer: they never leave the accelerator."""
    readers = [node for node in network.nodes if index in node.inputs]
    adds_up = isinstance(network.nodes[index].op, (Convolution, Dense))
    return adds_up and len(readers) == 1 and isinstance(readers[0].op, Activate)


def _split(network: Network, statistics: Statistics) -> tuple[Network, Statistics]:
    """With a table behind each leaky layer whose map may have a zero point; what is observed of it is the layer's."""
    nodes: list[Node] = []
    place: dict[int, int] = {}
    sources = []
    names = {node.name for node in network.nodes}
    roots = groups(network.nodes)
    for index, node in enumerate(network.nodes):
        nodes.append(replace(node, inputs=tuple(place[i] for i in node.inputs)))
        sources.append(index)
        if _is_leaky(node) and _rises(network, [i for i, root in enumerate(roots) if root == roots[index]]):
            nodes.append(Node(_free(f"{node.name}_finer", names), _FINER, (len(nodes) - 1,), node.shape, node.source))
            sources.append(index)
        place[index] = len(nodes) - 1
    histograms = tuple(statistics.histograms[i] for i in sources)
    return replace(network, nodes=tuple(nodes)), replace(statistics, histograms=histograms)


def _rises(network: Network, group: Sequence[int]) -> bool:
    """Whether a group with leaky layers may have a zero point: it lies above zero, nearly all of it."""
    producers = [network.nodes[i] for i in group if network.nodes[i].op.calibrated]
    return _is_taken(network, group) and all(_is_leaky(node) or _ends(node) for node in producers)


def _ends(node: Node) -> bool:
    """Whether its activation is the end of the integers."""
    return isinstance(node.op, (Convolution, Dense, Add)) and node.op.activation in ENDING


def _free(name: str, names: set[str]) -> str:
    """The name, or one like it that no node has."""
    while name in names:
        name += "_"
    names.add(name)
    return name
