"""Copies of feature maps that are needed in two places, or in a place that they cannot have.

A map is stored once in DDR (strips.py). If a concat, an add or the host needs it in another place, a copy is inserted
before that reader. A copy is a layer of its own, an identity convolution with one step per position. Its output is
stored where the reader needs it:

    a ─┬─ concat [a, b]              a ─┬─ concat [a, b]
       └─ concat [c, a, d]              └─ copy of a ── concat [c, copy of a, d]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np

from cnn.datatype import DataType
from cnn.maps import Padding
from cnn.network import Network, Node
from cnn.ops import Concat, Convolution, DepthToSpace, QConvolution, Slice, Upsample
from cnn.quantized import QNode, QuantizedNetwork
from cnn.requantise import identity
from scheduler.nodes import nodes_of, resolve
from scheduler.systolic.network.strips import strips_of
from scheduler.systolic.network.views import ALIGNED, ROWS_IN_TURN, spans_of

UPSCALE = 2
"""The factor of the array's upsample: each value is written this many times in a row, and each row as often."""

MAX_PLACES = 64
"""The most output pixels per input pixel of an upsample by copies. Each of them needs a pass over the map."""

AnyNetwork = TypeVar("AnyNetwork", bound=Network | QuantizedNetwork)


def with_copies(network: AnyNetwork, fused: bool = False) -> AnyNetwork:
    """Return the network with copy layers for maps that a concat, an add or the host needs in another place of DDR.

    An upsample by 4, 8 … becomes several upsamples by 2. An upsample by another factor becomes one copy of its map per
    place of a block, and a depth to space. Before a depth to space, the channels of each place of a block are copied if
    they are not whole channel blocks. ``check_layers`` refuses the nodes that copies do not help.

    Args:
        network: The network.
        fused: Whether the Saver computes residual adds if it can, see ``strips_of``.
    """
    network = _with_whole_blocks(_upsampled_in_blocks(_upsampled_in_steps(network)))
    helpless: set[str] = set()
    while True:
        refused = strips_of(network, fused).refused
        index = next((i for i in sorted(refused) if nodes_of(network)[i].name not in helpless), None)
        if index is None:
            return network
        copied = _settled(network, index, fused)
        if copied is None:
            helpless.add(nodes_of(network)[index].name)
        else:
            network = copied


def _settled(network: AnyNetwork, index: int, fused: bool) -> AnyNetwork | None:
    """Return the network with copies of maps that make node ``index`` mappable, or None if copies do not help.

    First one operand of a join is copied, then the first two operands, the first three, and so on. Last, the map that
    the host reads is copied.
    """
    node = nodes_of(network)[index]
    if isinstance(node.op, (*ROWS_IN_TURN, Concat, Slice)):
        places = range(len(node.inputs))
        choices = [*((place,) for place in places), *(tuple(places[:count]) for count in range(2, len(places) + 1))]
        trials = (_copied(network, index, choice) for choice in choices)
        settled = next((trial for trial in trials if _is_placed(trial, node.name, fused)), None)
        if settled is not None:
            return settled
    readers = [i for i, reader in enumerate(nodes_of(network)) if reader.op.on_host and _reads(network, i, index)]
    return _copied(network, readers[0], (0,)) if readers else None


def _reads(network: Network | QuantizedNetwork, reader: int, index: int) -> bool:
    """Return whether the first input of node ``reader`` is the map of node ``index``."""
    return resolve(network, nodes_of(network)[reader].inputs[0]) == index


def _is_placed(network: Network | QuantizedNetwork, name: str, fused: bool) -> bool:
    refused = strips_of(network, fused).refused
    return all(nodes_of(network)[index].name != name for index in refused)


def _copied(network: AnyNetwork, reader: int, places: Sequence[int]) -> AnyNetwork:
    """Return the network with a copy layer for each input in ``places`` of node ``reader``, inserted before that
    node."""
    nodes: Sequence[Any] = nodes_of(network)
    copy_names: set[str] = set()
    inputs: list[int] = list(nodes[reader].inputs)
    copies: list[Any] = []
    for place in places:
        source = nodes[inputs[place]]
        name = _new_name(network, f"{source.name}_copy", copy_names)
        copies.append(
            replace(source, name=name, op=_copy_of(source), inputs=(inputs[place],), source=nodes[reader].source)
        )
        inputs[place] = reader + len(copies) - 1
    return _inserted(network, reader, copies, replace(nodes[reader], inputs=tuple(inputs)))


def _upsampled_in_steps(network: AnyNetwork) -> AnyNetwork:
    """Return the network with each upsample by 4, 6, 8 … replaced by an upsample by half of it and one by 2.

    It becomes an upsample by half the factor, followed by an upsample by 2, because the array upsamples by 2.
    """
    for index, node in enumerate(nodes_of(network)):
        op = node.op
        square = isinstance(op, Upsample) and op.columns == op.stride and op.scale == 1
        if isinstance(op, Upsample) and square and op.stride > UPSCALE and op.stride % UPSCALE == 0:
            source = nodes_of(network)[node.inputs[0]].shape
            if source.height * source.width == 1:
                continue
            half = op.stride // UPSCALE
            shape = replace(source, height=half * source.height, width=half * source.width)
            name = _new_name(network, f"{node.name}_by_{half}", set())
            halved: Any = replace(node, name=name, op=Upsample(half), shape=shape)
            last: Any = replace(node, op=Upsample(UPSCALE), inputs=(index,))
            return _upsampled_in_steps(_inserted(network, index, [halved], last))
    return network


def _upsampled_in_blocks(network: AnyNetwork) -> AnyNetwork:
    """Return the network with each upsample that the array cannot do replaced by copies of the map and a depth to
    space.

    It becomes one copy of its map per place of a block, and a depth to space of all copies.
    """
    for index, node in enumerate(nodes_of(network)):
        op = node.op
        if not isinstance(op, Upsample) or op.scale != 1 or (op.columns == op.stride and op.stride in (1, UPSCALE)):
            continue
        source, names = nodes_of(network)[node.inputs[0]], set[str]()
        if source.shape.height * source.shape.width == 1 or op.stride * op.columns > MAX_PLACES:
            continue
        added: list[Any] = []
        for _ in range(op.stride * op.columns):
            name = _new_name(network, f"{node.name}_copy", names)
            op_of: Any = _copy_of(source)
            added.append(replace(source, name=name, op=op_of, inputs=node.inputs, source=node.source))
        copies = tuple(range(index, index + len(added)))
        joined = replace(source.shape, channels=source.shape.channels * len(added))
        name = _new_name(network, f"{node.name}_parts", names)
        added.append(replace(source, name=name, op=Concat(), inputs=copies, shape=joined, source=node.source))
        last: Any = replace(node, op=DepthToSpace(op.stride, op.columns), inputs=(index + len(added) - 1,))
        return _upsampled_in_blocks(_inserted(network, index, added, last))
    return network


def _with_whole_blocks(network: AnyNetwork) -> AnyNetwork:
    """Return the network with copies before each depth to space whose channel groups do not begin at whole words.

    The channels of each place of a block are sliced and copied, and the copies are joined. Each copy then begins with a
    whole channel block.
    """
    for index, node in enumerate(nodes_of(network)):
        source = nodes_of(network)[node.inputs[0]] if node.inputs else node
        channels = node.shape.channels
        if not isinstance(node.op, DepthToSpace) or _whole_blocks(network, node.inputs[0], channels):
            continue
        names: set[str] = set()
        added: list[Any] = []
        shape = replace(source.shape, channels=channels)
        for place in range(node.op.rows * node.op.columns):
            name = _new_name(network, f"{node.name}_{place}", names)
            channels_of = Slice(place * channels, channels)
            part: Any = replace(source, name=name, op=channels_of, inputs=node.inputs, shape=shape, source=node.source)
            name = _new_name(network, f"{node.name}_{place}_copy", names)
            added += [part, replace(part, name=name, op=_copy_of(part), inputs=(index + len(added),))]
        copies = tuple(range(index + 1, index + len(added), 2))
        name = _new_name(network, f"{node.name}_parts", names)
        added.append(replace(source, name=name, op=Concat(), inputs=copies, source=node.source))
        last: Any = replace(node, inputs=(index + len(added) - 1,))
        return _with_whole_blocks(_inserted(network, index, added, last))
    return network


def _whole_blocks(network: Network | QuantizedNetwork, source: int, channels: int) -> bool:
    """Return whether each group of ``channels`` channels of the map begins at a whole word of lanes on every array.

    The groups are in one map, or each is a map of its own that nothing else reads.
    """
    spans = spans_of(network, source)
    if len(spans) == 1 and channels % ALIGNED == 0:
        return spans[0].is_map
    read = [i for node in nodes_of(network) for i in node.inputs]
    return all(span.is_map and span.channels == channels and read.count(span.node) == 1 for span in spans)


def _new_name(network: Network | QuantizedNetwork, stem: str, used_names: set[str]) -> str:
    """Return a name that no node has and that is not in ``used_names``, and add it to ``used_names``."""
    nodes = nodes_of(network)
    names = {node.name for node in nodes} | used_names
    name = next(name for name in (f"{stem}{i or ''}" for i in range(len(names) + 1)) if name not in names)
    used_names.add(name)
    return name


def _inserted(network: AnyNetwork, index: int, inserted: Sequence[Any], changed: Any) -> AnyNetwork:
    """Return the network with the nodes ``inserted`` before node ``index``, which is itself replaced by ``changed``.

    The inputs of ``inserted`` and ``changed`` are indices in the returned network.
    """
    nodes: Sequence[Any] = nodes_of(network)
    count = len(inserted)
    later = [
        replace(node, inputs=tuple(i if i < index else i + count for i in node.inputs)) for node in nodes[index + 1 :]
    ]
    return cast(AnyNetwork, replace(cast(Any, network), nodes=(*nodes[:index], *inserted, changed, *later)))


def _copy_of(source: Node | QNode) -> Convolution | QConvolution:
    """Return a depthwise 1×1 convolution with weights of 1, which copies the map of ``source``."""
    channels = source.shape.channels
    unit = np.ones((channels, 1, 1, 1))
    if isinstance(source, QNode):
        weights, around = unit.astype(np.int8), source.type.zero_point
        return QConvolution(weights, DataType(2, True), identity(channels), 1, Padding(), channels, around)
    return Convolution(unit.astype(np.float32), np.zeros(channels, np.float32), None, 1, Padding(), channels, "linear")
