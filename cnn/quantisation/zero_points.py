"""Zero points for outputs of ReLU and leaky ReLU, which are nearly all above zero.

Integers around zero would represent such an output with half of their values. A zero point moves the range:
value = (integer − zero point) × scale.

before   convolution, ReLU → INT4, 0…7

after    convolution → INT4, −8…7 with the zero point −8, which the bias adds; saturation is the ReLU

before   convolution, leaky → INT4, −8…7

after    convolution, leaky → INT8, table → INT4, −8…7 with the zero point −7

The slope of a requantiser can change only at the integer 0. So the output of a leaky layer has more bits first, and a
table of the accelerator then converts it to the final integers. A function that is a table includes its zero point.
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

MAX_BITS = 8
"""The most bits of integers with a zero point; wider integers lose too little to need one."""

_TAKE = (Convolution, Dense, Add, AveragePool, Activate)
"""Operations that may read a map with a zero point.

A product of two such maps is excluded, because it would not be a product of their integers.
"""

ENDING = ("relu", "relu6")
"""Activations that saturation computes if the output has a zero point."""

_FINER = Activate("affine", (1.0, 0.0))
"""The identity as a table: the same value in other integers."""


def quantise_with_zero_points(
    network: Network,
    statistics: Statistics,
    method: str,
    bits: int,
    pictures: Sequence[npt.NDArray[np.uint8]] = (),
) -> QuantizedNetwork:
    """Return the integer network with ``bits`` bits everywhere, and a zero point for each output that can have one.

    A node is inserted after each leaky layer, with ``_finer`` appended to its name, so that indices differ from the
    float network's.

    Args:
        network: The float network.
        statistics: The observed values of the network.
        method: The method by which ranges are chosen.
        bits: The bits of weights and activations.
        pictures: uint8 [channels, height, width] each, which weights are fitted to.

    Raises:
        RangeError: There are more than 8 bits; other errors are those that ``quantise`` raises.
    """
    if bits > MAX_BITS:
        what = "the bits of activations with zero points"
        raise RangeError(what, bits, high=MAX_BITS, remedy="leave out zero points")
    folded = fold_batch_norms(network)
    if bits < TABLE_BITS:
        folded, statistics = _split(folded, statistics)
    widths = [TABLE_BITS if _is_finer(folded, index) else bits for index in range(len(folded.nodes))]
    zeros = zero_points(folded, ranges_by_bits(statistics, method, widths), widths)
    # With a zero point nearly all values of the datatype are above zero, as for a symmetric one with a bit more.
    reached = [width + 1 if zero else width for width, zero in zip(widths, zeros, strict=True)]
    ranges = ranges_by_bits(statistics, method, reached)
    return quantise(folded, ranges, bits=bits, activation_bits=widths, pictures=pictures, zero_points=zeros)


def zero_points(network: Network, ranges: CalibratedRanges, bits: Sequence[int]) -> tuple[int, ...]:
    """Return the zero point of each node's output, 0 if it needs none; ``bits`` are the bit widths of the outputs."""
    roots = groups(network.nodes)
    zeros = {
        root: _of_group(network, [i for i, each in enumerate(roots) if each == root], ranges, bits) for root in {*roots}
    }
    return tuple(zeros[root] for root in roots)


def _of_group(network: Network, group: Sequence[int], ranges: CalibratedRanges, bits: Sequence[int]) -> int:
    """Return the zero point of a group of outputs that share a type: the one that its most negative output needs."""
    if not _is_taken(network, group):
        return 0
    datatype = DataType(min(bits[i] for i in group), True)
    producers = [i for i in group if network.nodes[i].op.calibrated]
    share = max(_below_zero(network, i, ranges) for i in producers)
    levels = round(share * (datatype.high - datatype.low))
    return min(datatype.low + levels, 0)


def _is_taken(network: Network, group: Sequence[int]) -> bool:
    """Return whether some layer reads the group's outputs, and every layer that does may read a zero point.

    Pixels have no zero point. Inputs and outputs of packages' layers have none, because these layers cannot apply one.
    """
    members = {*group}
    if any(isinstance(network.nodes[i].op, Custom) for i in group):
        return False
    readers = [node for node in network.nodes if node.op.calibrated and members.intersection(node.inputs)]
    return 0 not in members and bool(readers) and all(isinstance(node.op, _TAKE) for node in readers)


def _below_zero(network: Network, index: int, ranges: CalibratedRanges) -> float:
    """Return which share of a node's output range is below zero, 0…1; 0.5 if it is not known."""
    node = network.nodes[index]
    op = node.op
    if _ends(node):
        return 0.0
    if not isinstance(op, Activate):
        return 0.5
    before = network.nodes[node.inputs[0]]
    if op == _FINER and _is_leaky(before):  # its sums extend as far below zero as above
        return LEAKY_SLOPE / (1 + LEAKY_SLOPE)
    reach = ranges.values[node.inputs[0]]
    lowest = float(-FUNCTIONS[op.function].values(np.linspace(-reach, reach, 1 << TABLE_BITS), *op.parameters).min())
    below = min(max(lowest, 0.0), ranges.values[index])
    return below / (below + ranges.values[index]) if ranges.values[index] > 0 else 0.5


def _is_leaky(node: Node) -> bool:
    return isinstance(node.op, (Convolution, Dense)) and node.op.activation == "leaky"


def _is_finer(network: Network, index: int) -> bool:
    """Return whether a lookup-table layer is the only reader of a convolution or dense layer."""
    readers = [node for node in network.nodes if index in node.inputs]
    adds_up = isinstance(network.nodes[index].op, (Convolution, Dense))
    return adds_up and len(readers) == 1 and isinstance(readers[0].op, Activate)


def _split(network: Network, statistics: Statistics) -> tuple[Network, Statistics]:
    """Return the network with an identity lookup table after each leaky-ReLU layer whose output may have a zero point.

    The table has the layer's statistics, because both have the same values.
    """
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
    """Return whether a group has only outputs of leaky ReLU and ReLU, and may have a zero point."""
    producers = [network.nodes[i] for i in group if network.nodes[i].op.calibrated]
    return _is_taken(network, group) and all(_is_leaky(node) or _ends(node) for node in producers)


def _ends(node: Node) -> bool:
    """Return whether the node's activation is ReLU or ReLU6, which saturation computes if there is a zero point."""
    return isinstance(node.op, (Convolution, Dense, Add)) and node.op.activation in ENDING


def _free(name: str, names: set[str]) -> str:
    """Return the name, or one derived from it that no node has, and add it to ``names``."""
    while name in names:
        name += "_"
    names.add(name)
    return name
