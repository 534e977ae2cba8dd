"""Converts a quantised network to a streaming graph. Each layer becomes one or more blocks.

layer                                    blocks
convolution k×k                          Window, MatrixVector
convolution 1×1, stride 1                MatrixVector
convolution 1×1, stride s                DownSample, MatrixVector
depthwise convolution                    Window(depthwise), VectorVector
dilated convolution                      Window(dilation), and a unit with the taps of the kernel alone
grouped convolution, not depthwise       the blocks without groups; weights between groups are 0
dense on a map of (C, H, W)              MatrixVector over the whole map
max pool, average pool, add, multiply    MaxPool, GlobalPool, Add, Multiply
concat, reorg, depth to space, upsample  Concat, Reorg, DepthToSpace, Upsample
function by a table, integer softmax     Activate, Softmax
layer of a package                       Custom, with the package's block
slices of one map                        Split, and a Discard for channels that no slice reads
labels and values of one top-k           LabelSelect for both, and a Discard for labels that no layer reads
map with n readers                       Duplicate(n)
map read by the host or by no layer      Sink
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import gcd
from typing import TypeAlias

from cnn.datatype import BIPOLAR, TERNARY
from cnn.dilation import with_zeros
from cnn.maps import Shape
from cnn.ops import (
    Concat,
    Custom,
    DepthToSpace,
    Detection,
    MaxPool,
    Output,
    Pad,
    QActivate,
    QAdd,
    QAveragePool,
    QConvolution,
    QDense,
    QInput,
    QMultiply,
    QSoftmax,
    Reorg,
    Slice,
    Softmax,
    TopK,
    Upsample,
    assert_never,
    label_type,
)
from cnn.quantized import QNode, QuantizedNetwork, has_integers
from scheduler.convolutions import dense, dilation_of, on_all_channels
from scheduler.nodes import resolve
from scheduler.streaming import graph as g
from scheduler.streaming.blocks.packages import BLOCKS
from scheduler.streaming.connect import MAX_STREAMS, connect
from scheduler.streaming.refusals import check_layers

_PlainOp: TypeAlias = (
    QInput
    | QActivate
    | QSoftmax
    | QAdd
    | QAveragePool
    | QMultiply
    | Custom
    | Concat
    | Reorg
    | DepthToSpace
    | Upsample
    | MaxPool
)
"""Operations that become one block each."""


def lower(network: QuantizedNetwork) -> g.StreamGraph:
    """Return the quantised ``network`` as a streaming graph, with its hardware blocks in topological order.

    Raises:
        SeveralFaultsError, UnsupportedError: ``check_layers`` found layers that no block can compute.
    """
    check_layers(network)
    lowering = _Lowering(network)
    for index, node in enumerate(network.nodes):
        if has_integers(network.nodes, index):
            lowering.layer(index, node)
    return connect(network.name, lowering.blocks, lowering.outputs())


@dataclass
class _Lowering:
    """The conversion of one network to streaming blocks, with the blocks that exist so far.

    Attributes:
        network: The network.
        blocks: The blocks of the layers so far. Several blocks may still read the same port.
        ports: The output port of each layer's map, by the layer's index.
    """

    network: QuantizedNetwork
    blocks: list[g.Block] = field(default_factory=list)
    ports: dict[int, g.Port] = field(default_factory=dict)

    def layer(self, index: int, node: QNode) -> None:
        """Add the streaming blocks of one network layer."""
        op = node.op
        match op:
            case Slice():
                self._slice(index)
            case TopK():
                self._select(index, op)
            case QConvolution():
                self.ports[index] = self._convolution(index, node, op)
            case QDense():
                self.ports[index] = self._dense(index, node, op)
            case Concat() if resolve(self.network, index) != index:
                self.ports[index] = self.ports[node.inputs[0]]
            case (
                QInput()
                | QActivate()
                | QSoftmax()
                | QAdd()
                | QAveragePool()
                | QMultiply()
                | Custom()
                | Concat()
                | Reorg()
                | DepthToSpace()
                | Upsample()
                | MaxPool()
            ):
                self.ports[index] = self._plain(index, node, op)
            case Pad() | Softmax() | Output() | Detection():
                raise AssertionError(f"{node.name} has no block")  # check_layers or has_integers excluded it
            case _:
                assert_never(op)

    def outputs(self) -> dict[g.Port, int]:
        """Return the output ports whose feature maps are sent to the host, each with the index of the layer of its map.

        These are the maps that layers on the host read, and the maps that no layer reads.
        """
        nodes = self.network.nodes
        read = {i for node in nodes for i in node.inputs}
        mapped = {i for i in range(len(nodes)) if has_integers(nodes, i)}
        unread = mapped - read
        by_host = {i for n, node in enumerate(nodes) if n not in mapped for i in node.inputs if i in mapped}
        return {self.ports[i]: resolve(self.network, i) for i in sorted(unread | by_host)}

    def _add(
        self,
        name: str,
        op: g.BlockOp,
        inputs: tuple[g.Port, ...],
        outputs: tuple[g.StreamType, ...],
        node: int | None,
        source: str,
    ) -> g.Port:
        self.blocks.append(g.Block(name, op, inputs, outputs, node, source))
        return g.Port(len(self.blocks) - 1)

    def _plain(self, index: int, node: QNode, op: _PlainOp) -> g.Port:
        inputs = tuple(self.ports[i] for i in node.inputs)
        out = g.StreamType(node.shape, node.type.datatype)
        while isinstance(op, Concat) and len(inputs) > MAX_STREAMS:
            inputs = (self._join(node, inputs[:MAX_STREAMS]), *inputs[MAX_STREAMS:])
        return self._add(node.name, _plain_op(op), inputs, (out,), index, node.source)

    def _join(self, node: QNode, ports: tuple[g.Port, ...]) -> g.Port:
        """Add a concat block of ``ports``, the first inputs of a layer with more inputs than one concat block has, and
        return its port."""
        kinds = [self._type(port) for port in ports]
        shape = replace(node.shape, channels=sum(kind.shape.channels for kind in kinds))
        out = replace(kinds[0], shape=shape)
        return self._add(f"{node.name}_join{len(self.blocks)}", g.Concat(), ports, (out,), None, node.source)

    def _dense(self, index: int, node: QNode, op: QDense) -> g.Port:
        """Add the unit of a fully connected layer and return its output port. The unit is a convolution with a kernel
        of the whole map."""
        port = self.ports[node.inputs[0]]
        shape = self._type(port).shape
        weights = op.weights.reshape(-1, shape.channels, shape.height, shape.width)
        return self._unit(index, node, g.MatrixVector(weights, op.weight_type, op.requantiser), port)

    def _convolution(self, index: int, node: QNode, op: QConvolution) -> g.Port:
        """Add the blocks of a convolution and return the output port of its feature map.

        A window has one dilation for both axes. If the convolution has two, the window gets their greatest common
        divisor, and the kernel gets zeros along the axis with the larger dilation.
        """
        op = _on_all_channels(op)
        rows, columns = dilations_of(op)
        dilation = gcd(rows, columns)
        weights = with_zeros(dense(op.weights, op.dilation)[0], (rows // dilation, columns // dilation))
        weight_type = TERNARY if op.weight_type == BIPOLAR and rows != columns else op.weight_type  # BIPOLAR has no 0
        op = replace(op, weights=weights, weight_type=weight_type, dilation=(dilation, dilation))
        port = self._gather(node, op, self.ports[node.inputs[0]], dilation)
        kind = g.VectorVector if _depthwise(op) else g.MatrixVector
        return self._unit(index, node, kind(op.weights, op.weight_type, op.requantiser), port)

    def _unit(self, index: int, node: QNode, unit: g.Unit, port: g.Port) -> g.Port:
        out = g.StreamType(node.shape, node.type.datatype)
        return self._add(node.name, unit, (port,), (out,), index, node.source)

    def _type(self, port: g.Port) -> g.StreamType:
        return self.blocks[port.block].outputs[port.output]

    def _gather(self, node: QNode, op: QConvolution, port: g.Port, dilation: int) -> g.Port:
        """Add the window or down-sampler that collects a convolution's input values per output pixel, and return its
        port.

        A depthwise convolution or a kernel larger than 1×1 needs a window. A 1×1 convolution needs a down-sampler if
        its stride is above 1, and no block otherwise.

        Args:
            node: The convolution's node.
            op: The convolution with the kernel of its unit: only weights at multiples of ``dilation``.
            port: The port of the convolution's input.
            dilation: The dilation of both rows and columns.
        """
        read = self._type(port)
        kernel = (int(op.weights.shape[2]), int(op.weights.shape[3]))
        if kernel == (1, 1) and not _depthwise(op):
            if op.stride == 1:
                return port
            out = Shape(read.shape.channels, node.shape.height, node.shape.width)
            name, sample = f"{node.name}_sample", g.DownSample(op.stride)
            return self._add(name, sample, (port,), (replace(read, shape=out),), None, node.source)
        window = g.Window(kernel, op.stride, op.padding, _depthwise(op), dilation, op.around)
        out = Shape(read.shape.channels * kernel[0] * kernel[1], node.shape.height, node.shape.width)
        return self._add(f"{node.name}_window", window, (port,), (replace(read, shape=out),), None, node.source)

    def _select(self, index: int, op: TopK) -> None:
        """Add the label-select block of top-k layer ``index``, unless an earlier layer already added it.

        One block computes both the labels and the values of a top-k. If the network reads the values alone, a Discard
        reads the labels, because they are always the block's first output.
        """
        if index in self.ports:
            return
        node = self.network.nodes[index]
        source = self.ports[node.inputs[0]]
        labels, values = (self._chosen(source, replace(op, labels=labels)) for labels in (True, False))
        kind = self._type(source)
        shape = replace(kind.shape, channels=op.k)
        outs = (g.StreamType(shape, label_type(kind.shape.channels).datatype), g.StreamType(shape, kind.datatype))
        select = g.LabelSelect(op.k, values is not None)
        port = self._add(node.name, select, (source,), outs[: 1 + select.values], labels, node.source)
        self.blocks[port.block] = replace(self.blocks[port.block], second=values)
        if labels is None:
            self._add(f"{node.name}_drop", g.Discard(), (port,), (), None, node.source)
        else:
            self.ports[labels] = port
        if values is not None:
            self.ports[values] = g.Port(port.block, 1)

    def _chosen(self, source: g.Port, op: TopK) -> int | None:
        """Return the first layer with operation ``op`` that reads port ``source`` and has no block yet, as an index."""
        pairs = enumerate(self.network.nodes)
        same = (i for i, node in pairs if node.op == op and self.ports.get(node.inputs[0]) == source)
        return next((i for i in same if i not in self.ports), None)

    def _slice(self, index: int) -> None:
        """Add the split block of slice layer ``index``, unless an earlier slice of the same map already added it.

        One split serves all slices of a map if they do not overlap. Otherwise each slice gets its own split.
        """
        if index in self.ports:
            return
        source = self.ports[self.network.nodes[index].inputs[0]]
        together = self._slices_of(source)
        if _overlap([op for _, op in together]):
            together = [(i, op) for i, op in together if i == index]
        parts, owners = _parts(together, self._type(source).shape.channels)
        self._split(self.network.nodes[index], source, parts, owners)

    def _split(
        self, first: QNode, source: g.Port, parts: tuple[int, ...], owners: tuple[int | None, ...], level: int = 0
    ) -> None:
        """Add a split block of the map at ``source`` into ``parts``, and a Discard for each part that no slice layer
        reads.

        If there are more parts than MAX_STREAMS outputs, the last output carries the rest to another split.

        Args:
            first: The first of the slices, which gives the blocks their names.
            source: The port to split.
            parts: The channels of each part.
            owners: The index of each part's slice, or None for channels that no slice reads.
            level: The number of splits before this one in the chain.
        """
        read = self._type(source)
        fit = len(parts) if len(parts) <= MAX_STREAMS else MAX_STREAMS - 1
        sizes = (*parts[:fit], sum(parts[fit:])) if fit < len(parts) else parts
        outs = tuple(replace(read, shape=replace(read.shape, channels=size)) for size in sizes)
        suffix = f"{level}" * (level > 0)
        port = self._add(f"{first.name}_split{suffix}", g.Split(sizes), (source,), outs, owners[0], first.source)
        for output, owner in enumerate(owners[:fit]):
            part = g.Port(port.block, output)
            if owner is None:
                self._add(f"{first.name}_drop{suffix}{output}", g.Discard(), (part,), (), None, first.source)
            else:
                self.ports[owner] = part
        if fit < len(parts):
            self._split(first, g.Port(port.block, fit), parts[fit:], owners[fit:], level + 1)

    def _slices_of(self, source: g.Port) -> list[tuple[int, Slice]]:
        """Return the slice layers that read port ``source``, each with its index, sorted by their first channel."""
        slices = [
            (i, node.op)
            for i, node in enumerate(self.network.nodes)
            if isinstance(node.op, Slice) and self.ports.get(node.inputs[0]) == source
        ]
        return sorted(slices, key=lambda pair: pair[1].first)


def dilations_of(op: QConvolution) -> tuple[int, int]:
    """Return the dilation of a convolution's rows and of its columns, with zeros stored in the kernel counted as
    dilation.

    A kernel with a single row or column has no dilation along that axis, so the axis gets the dilation of the other.
    """
    rows, columns = dilation_of(op)
    height, width = op.weights.shape[2:]
    return (columns if height == 1 else rows, rows if width == 1 else columns)


def _depthwise(op: QConvolution) -> bool:
    return op.groups > 1 and op.weights.shape[:2] == (op.groups, 1)


def _on_all_channels(op: QConvolution) -> QConvolution:
    """Return a grouped convolution as a convolution without groups, and any other convolution unchanged.

    The weights between groups become 0. BIPOLAR has no 0, so BIPOLAR weights become TERNARY. Depthwise convolutions
    keep their groups, because they have a block of their own.
    """
    if op.groups == 1 or _depthwise(op):
        return op
    weight_type = TERNARY if op.weight_type == BIPOLAR else op.weight_type
    return replace(op, weights=on_all_channels(op.weights, op.groups), weight_type=weight_type, groups=1)


def _plain_op(op: _PlainOp) -> g.BlockOp:
    """Return the block operation of a layer that becomes exactly one block."""
    match op:
        case QInput():
            return g.Source()
        case QActivate():
            return g.Activate(op.table)
        case QSoftmax():
            return g.Softmax(op.method, op.table)
        case QAdd():
            return g.Add(op.multipliers, op.requantiser)
        case QAveragePool():
            return g.GlobalPool(op.requantiser)
        case QMultiply():
            return g.Multiply(op.requantiser)
        case Custom():
            return g.Custom(op.layer, op.parameters, BLOCKS[op.layer])
        case Concat():
            return g.Concat()
        case Reorg():
            return g.Reorg(op.stride, op.order)
        case DepthToSpace():
            return g.DepthToSpace(op.rows, op.columns)
        case Upsample():
            return g.Upsample(op.stride, op.columns)
        case MaxPool():
            return op
        case _:
            assert_never(op)


def _overlap(slices: list[Slice]) -> bool:
    return any(a.first + a.channels > b.first for a, b in pairwise(slices))


def _parts(slices: list[tuple[int, Slice]], channels: int) -> tuple[tuple[int, ...], tuple[int | None, ...]]:
    """Return the channel counts into which slices cut a map, and for each part the slice layer that reads it, or None.

    An owner is the index of a slice, or None for channels that no slice reads.

    Args:
        slices: The slices with their indices, sorted by first channel, without overlap.
        channels: All channels of the map.
    """
    parts: list[tuple[int, int | None]] = []
    end = 0
    for owner, op in slices:
        parts += [(op.first - end, None)] * (op.first > end) + [(op.channels, owner)]
        end = op.first + op.channels
    parts += [(channels - end, None)] * (channels > end)
    return tuple(size for size, _ in parts), tuple(owner for _, owner in parts)
