"""Maps that two joins want in two places, or a join in a place that they cannot have, are copied: a layer of its own,
which writes what it reads.

A map lies once in DDR (strips.py). Where a concat, an addition or the host would need it elsewhere, an identity of one
step a position is put before the reader, whose map lies where that reader wants it:

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
"""Of an upsample of the array: each value is written so many times in a row, and so many rows of it."""

MOST_PLACES = 64
"""That a pixel becomes by copies: each is a pass over the map."""

AnyNetwork = TypeVar("AnyNetwork", bound=Network | QuantizedNetwork)


def with_copies(network: AnyNetwork, fused: bool = False) -> AnyNetwork:
    """The same network, with the copies that its joins need; the nodes keep their order and their names. fused: as of
    ``strips_of``.

    What copies do not help stays, and is refused where the network is lowered. An upsample by 4, 8 … becomes several,
    one by other factors copies of its map, one for each place of a block, and depth to space; before depth to space,
    what each place of a block takes is copied where it is no whole channel blocks.
    """
    network = _blocks_apart(_upsampled_in_blocks(_upsampled_in_steps(network)))
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
    """``network`` with copies for the refused node, None where none help: of one operand of a join, or of the first
    ones, or of what the host reads."""
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
    """Whether the host's operation reads the map of node ``index`` through its first input."""
    return resolve(network, nodes_of(network)[reader].inputs[0]) == index


def _is_placed(network: Network | QuantizedNetwork, name: str, fused: bool) -> bool:
    refused = strips_of(network, fused).refused
    return all(nodes_of(network)[index].name != name for index in refused)


def _copied(network: AnyNetwork, reader: int, places: Sequence[int]) -> AnyNetwork:
    """With a copy of these inputs of node ``reader`` before it."""
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
    """With an upsample by 2 behind one by half the factor, where that is even: the array upsamples by 2."""
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
    """With depth to space of copies for an upsample by other factors than the array's own: a copy for each place of
    what a pixel becomes."""
    for index, node in enumerate(nodes_of(network)):
        op = node.op
        if not isinstance(op, Upsample) or op.scale != 1 or (op.columns == op.stride and op.stride in (1, UPSCALE)):
            continue
        source, names = nodes_of(network)[node.inputs[0]], set[str]()
        if source.shape.height * source.shape.width == 1 or op.stride * op.columns > MOST_PLACES:
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


def _blocks_apart(network: AnyNetwork) -> AnyNetwork:
    """With a copy of the channels of each place of a block before depth to space, and a concat of these: so each begins
    a channel block."""
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
        return _blocks_apart(_inserted(network, index, added, last))
    return network


def _whole_blocks(network: Network | QuantizedNetwork, source: int, channels: int) -> bool:
    """Whether any array finds every so many channels of a map in blocks of their own, one behind the other: in one map,
    or in maps that nothing else reads."""
    spans = spans_of(network, source)
    if len(spans) == 1 and channels % ALIGNED == 0:
        return spans[0].is_map
    read = [i for node in nodes_of(network) for i in node.inputs]
    return all(span.is_map and span.channels == channels and read.count(span.node) == 1 for span in spans)


def _new_name(network: Network | QuantizedNetwork, stem: str, used_names: set[str]) -> str:
    """One that neither a node has nor is in ``used_names``, to which it is added."""
    nodes = nodes_of(network)
    names = {node.name for node in nodes} | used_names
    name = next(name for name in (f"{stem}{i or ''}" for i in range(len(names) + 1)) if name not in names)
    used_names.add(name)
    return name


def _inserted(network: AnyNetwork, index: int, inserted: Sequence[Any], changed: Any) -> AnyNetwork:
    """With ``inserted`` before node ``index``, which becomes ``changed``; the inputs of both are numbers in the network
    that comes of it."""
    nodes: Sequence[Any] = nodes_of(network)
    count = len(inserted)
    behind = [
        replace(node, inputs=tuple(i if i < index else i + count for i in node.inputs)) for node in nodes[index + 1 :]
    ]
    return cast(AnyNetwork, replace(cast(Any, network), nodes=(*nodes[:index], *inserted, changed, *behind)))


def _copy_of(source: Node | QNode) -> Convolution | QConvolution:
    """A convolution of one place on every channel by itself, whose weight is 1."""
    channels = source.shape.channels
    unit = np.ones((channels, 1, 1, 1))
    if isinstance(source, QNode):
        weights, around = unit.astype(np.int8), source.type.zero_point
        return QConvolution(weights, DataType(2, True), identity(channels), 1, Padding(), channels, around)
    return Convolution(unit.astype(np.float32), np.zeros(channels, np.float32), None, 1, Padding(), channels, "linear")
