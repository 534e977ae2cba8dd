"""Which datatype and scale each tensor gets, before anything is quantised.

A layer that only passes values on (max pool, concat, slice, reorg, depth to space, upsample, one of a package) has an
output of its input's type, and a concat needs one type for all its inputs. So tensors form groups (found by
union-find). A group has one type: the datatype that its readers need, and the greatest scale that any of its members
asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from boards.errors import RangeError, UnsupportedError
from cnn.activations import FUNCTIONS
from cnn.datatype import INT8, INT16, UINT8, DataType, TensorType
from cnn.network import Network, Node
from cnn.ops import (
    Activate,
    Add,
    Convolution,
    Dense,
    IntegerSoftmax,
    Multiply,
    TopK,
    label_type,
)
from cnn.ops.softmax import SHARES
from cnn.quantisation.calibration import CalibratedRanges
from cnn.tables import TABLE_BITS

ONE_TYPE = "a concat joins tensors of one datatype and scale"

PIXEL = TensorType(UINT8, 1 / 255)
ROOM = 1.25  # what a softmax looks up may reach so far beyond what calibration saw, of 8 bits
PLACES = 4097
"""Of a range in which a function is looked at."""

HEADROOM = 2.0  # the last layer may reach twice what calibration saw; INT16 has the bits to spare


def tensor_types(
    network: Network,
    ranges: CalibratedRanges,
    activation_bits: int | Sequence[int] = 8,
    zero_points: Sequence[int] = (),
) -> tuple[TensorType, ...]:
    """One type a node. A host node has that of its first input, but for labels.

    activation_bits: of all, or one number a node; a group has the fewest bits that one of its members may have.
    zero_points: one a node, alike in a group; 0 where none come.
    UnsupportedError if a concat joins the picture or shares with a layer, RangeError if it joins relu6 with a greater
    range.
    """
    roots = groups(network.nodes)
    members: dict[int, list[int]] = {}
    for i, root in enumerate(roots):
        members.setdefault(root, []).append(i)
    bits = [activation_bits] * len(roots) if isinstance(activation_bits, int) else activation_bits
    zeros = zero_points or (0,) * len(roots)
    types = {
        root: _group_type(network, group, ranges, (min(bits[i] for i in group), zeros[root]))
        for root, group in members.items()
    }
    pairs = zip(network.nodes, roots, strict=True)
    return tuple(given_type(network, node, types[root]) for node, root in pairs)


def given_type(network: Network, node: Node, passed_on: TensorType) -> TensorType:
    """Of what a node gives: of labels their own, of all others ``passed_on``."""
    if isinstance(node.op, TopK) and node.op.labels:
        return label_type(network.nodes[node.inputs[0]].shape.channels)
    return passed_on


def groups(nodes: tuple[Node, ...]) -> list[int]:
    """Per node the least index of its group: of those that have one type."""
    parent = list(range(len(nodes)))

    def find(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for i, node in enumerate(nodes):
        if node.op.passes_on or node.op.on_host:
            for j in node.inputs if node.op.passes_on else node.inputs[:1]:
                low, high = sorted((find(i), find(j)))
                parent[high] = low
    return [find(i) for i in range(len(nodes))]


def _group_type(network: Network, group: list[int], ranges: CalibratedRanges, integers: tuple[int, int]) -> TensorType:
    """integers: how many bits they have, and the zero point."""
    producers = [i for i in group if network.nodes[i].op.calibrated]
    if group[0] == 0:
        _refuse_mixture(network, producers)
        return PIXEL
    if any(isinstance(network.nodes[i].op, IntegerSoftmax) for i in group):
        _refuse_shares(network, producers)
        return SHARES
    looked_up = _is_looked_up(network, group)
    if _leaves(network, group):
        datatype, room = (INT8, ROOM) if looked_up else (INT16, HEADROOM)
        return _last_type(network, producers, ranges, datatype, room)
    bits, zero = integers
    bits = min(bits, TABLE_BITS) if looked_up else bits
    datatype = DataType(bits, True)
    steps = datatype.high - zero
    scale = max(_scale(network.nodes[i], _read_reach(network, i, ranges, steps), steps) for i in producers)
    _check_relu6(network, producers, scale, steps)
    return TensorType(datatype, scale, zero)


def _leaves(network: Network, group: list[int]) -> bool:
    """True where no layer that computes reads the group: its values leave for the host."""
    members = set(group)
    readers = (node for node in network.nodes if members.intersection(node.inputs))
    return not any(node.op.calibrated for node in readers)


def _is_looked_up(network: Network, group: list[int]) -> bool:
    """True where a softmax of the accelerator looks the group's values up in a table."""
    members = set(group)
    readers = (node for node in network.nodes if members.intersection(node.inputs))
    return any(isinstance(node.op, IntegerSoftmax) and node.op.method != "argmax" for node in readers)


def _last_type(
    network: Network, producers: Iterable[int], ranges: CalibratedRanges, datatype: DataType, room: float
) -> TensorType:
    """Return the type of a map that leaves for the host.

    Args:
        room: The factor by which it reaches beyond the values that calibration saw.
    """
    reach = max(6.0 if _activation(network.nodes[i]) == "relu6" else room * ranges.greatest[i] for i in producers)
    return TensorType(datatype, (reach or 1.0) / datatype.high)


def _read_reach(network: Network, index: int, ranges: CalibratedRanges, steps: int) -> float:
    """How far the values of a node reach, or, where a function alone reads them, how far it tells them apart: beyond,
    each gives the end of what the function gives, or the same as what is flat there."""
    readers = [i for i, node in enumerate(network.nodes) if index in node.inputs]
    reach, op = ranges.values[index], network.nodes[readers[0]].op if len(readers) == 1 else None
    if not isinstance(op, Activate):
        return reach
    x = np.linspace(0.0, reach, PLACES)
    far = max(_last_change(op, side * x, ranges.values[readers[0]], steps) for side in (-1, 1))
    return float(x[far]) if far > 1 else reach  # behind a jump at 0 there is nothing to tell apart


def _last_change(op: Activate, x: npt.NDArray[np.float64], most: float, steps: int) -> int:
    """The first place from which on the function stays within half a step of what it is at the last. most: the greatest
    that it may give, so many ``steps``."""
    y = np.clip(FUNCTIONS[op.function].values(x, *op.parameters), -most, most)
    changed = np.flatnonzero(np.abs(y - y[-1]) > most / steps / 2)
    return min(int(changed[-1]) + 1, len(x) - 1) if changed.size else 0


def _scale(node: Node, reach: float, steps: int) -> float:
    """steps: from zero to the greatest integer."""
    # relu6 saturates where the integer does, so that no clamp is needed beside the saturation.
    return (6.0 if _activation(node) == "relu6" else reach or 1.0) / steps


def _activation(node: Node) -> str:
    return node.op.activation if isinstance(node.op, (Convolution, Dense, Add, Multiply)) else "linear"


def _check_relu6(network: Network, producers: list[int], scale: float, steps: int) -> None:
    for node in (network.nodes[i] for i in producers):
        if _activation(node) == "relu6" and scale > 6.0 / steps:
            raise RangeError(
                "the scale of a concat that joins relu6",
                scale,
                high=6.0 / steps,
                where=node.place,
                remedy="give all layers of that concat relu6, or this one relu",
            )


def _refuse_shares(network: Network, producers: list[int]) -> None:
    for node in (network.nodes[i] for i in producers):
        subject = "a concat of a layer with the shares of a softmax"
        raise UnsupportedError(subject, ONE_TYPE, where=node.place, remedy="leave the softmax to the host")


def _refuse_mixture(network: Network, producers: list[int]) -> None:
    for node in (network.nodes[i] for i in producers):
        subject, remedy = (
            "a concat of a layer with the picture",
            "put a convolution between the picture and that concat",
        )
        raise UnsupportedError(subject, ONE_TYPE, where=node.place, remedy=remedy)
