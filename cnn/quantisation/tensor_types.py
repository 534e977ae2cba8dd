"""The datatype and the scale of each tensor, chosen before anything is quantised.

Some layers only move values: max pool, concat, slice, reorg, depth to space, upsample, and packages' layers. Their
output has their input's type, and all inputs of a concat need one type. So tensors form groups, found by union-find. A
group has one type: the datatype that its readers need, and the greatest scale that any of its members needs.
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
ROOM = 1.25  # the range of an 8-bit input of a softmax table, as a factor of the range that calibration saw
PLACES = 4097
"""The number of points at which a function is sampled over a range."""

HEADROOM = 2.0  # the range of the last layer, as a factor of the range that calibration saw; INT16 has spare bits


def tensor_types(
    network: Network,
    ranges: CalibratedRanges,
    activation_bits: int | Sequence[int] = 8,
    zero_points: Sequence[int] = (),
) -> tuple[TensorType, ...]:
    """Return the datatype, scale and zero point of every node's output. A host node has the type of its first input.

    Args:
        network: The float network, without batch norms.
        ranges: The ranges that calibration chose.
        activation_bits: One number for all nodes, or one per node. A group has the fewest bits of its members.
        zero_points: One per node, equal within a group; none stands for 0 everywhere.

    Raises:
        UnsupportedError: A concat joins the picture, or a softmax's output, with the output of a layer.
        RangeError: A concat joins relu6 with a greater range.
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
    """Return the type of a node's output: class labels have a type of their own, other outputs have ``passed_on``."""
    if isinstance(node.op, TopK) and node.op.labels:
        return label_type(network.nodes[node.inputs[0]].shape.channels)
    return passed_on


def groups(nodes: tuple[Node, ...]) -> list[int]:
    """Return, per node, the least node index of its group: outputs that share a type, because layers only move
    values."""
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
    """Return the common type of the outputs of a group, for ``integers``: their number of bits and zero point."""
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
    """Return whether no computing integer layer reads the group's outputs, so that they are outputs for the host."""
    members = set(group)
    readers = (node for node in network.nodes if members.intersection(node.inputs))
    return not any(node.op.calibrated for node in readers)


def _is_looked_up(network: Network, group: list[int]) -> bool:
    """Return whether an integer softmax with a table of powers reads an output of the group."""
    members = set(group)
    readers = (node for node in network.nodes if members.intersection(node.inputs))
    return any(isinstance(node.op, IntegerSoftmax) and node.op.method != "argmax" for node in readers)


def _last_type(
    network: Network, producers: Iterable[int], ranges: CalibratedRanges, datatype: DataType, room: float
) -> TensorType:
    """Return the type of a group of outputs for the host, whose range is ``room`` times the observed range.

    Args:
        room: The type's range as a factor of the range that calibration saw.
    """
    reach = max(6.0 if _activation(network.nodes[i]) == "relu6" else room * ranges.greatest[i] for i in producers)
    return TensorType(datatype, (reach or 1.0) / datatype.high)


def _read_reach(network: Network, index: int, ranges: CalibratedRanges, steps: int) -> float:
    """Return the greatest |x| of a node's output that its integers must represent, a real value.

    That is the calibrated range. If a function is the only reader, the range may end earlier: beyond it the function
    gives its last value, or saturates.
    """
    readers = [i for i, node in enumerate(network.nodes) if index in node.inputs]
    reach, op = ranges.values[index], network.nodes[readers[0]].op if len(readers) == 1 else None
    if not isinstance(op, Activate):
        return reach
    x = np.linspace(0.0, reach, PLACES)
    far = max(_last_change(op, side * x, ranges.values[readers[0]], steps) for side in (-1, 1))
    return float(x[far]) if far > 1 else reach  # a function that only jumps at 0 does not determine a range


def _last_change(op: Activate, x: npt.NDArray[np.float64], most: float, steps: int) -> int:
    """Return the index of the first point of ``x`` after which the function stays within half a step of its last value.

    Args:
        op: The function.
        x: The points, from 0 to the end of the range.
        most: The greatest |output| of the function's type.
        steps: The number of steps from 0 to ``most``.
    """
    y = np.clip(FUNCTIONS[op.function].values(x, *op.parameters), -most, most)
    changed = np.flatnonzero(np.abs(y - y[-1]) > most / steps / 2)
    return min(int(changed[-1]) + 1, len(x) - 1) if changed.size else 0


def _scale(node: Node, reach: float, steps: int) -> float:
    """Return the scale of a node's output, whose range ``reach`` is divided into ``steps`` integers above zero."""
    # relu6 saturates at the greatest integer, so that it needs no clamp of its own.
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
        subject = "a concat of a layer with the output of a softmax"
        raise UnsupportedError(subject, ONE_TYPE, where=node.place, remedy="leave the softmax to the host")


def _refuse_mixture(network: Network, producers: list[int]) -> None:
    for node in (network.nodes[i] for i in producers):
        subject, remedy = (
            "a concat of a layer with the picture",
            "put a convolution between the picture and that concat",
        )
        raise UnsupportedError(subject, ONE_TYPE, where=node.place, remedy=remedy)
