"""Network → layers: everything that the array runs is one convolution with a fused pool.

before                                   after
conv 3×3, max pool 2/2                   one layer, pool fused
connected on a C×H×W map                 a convolution with an H×W kernel and no padding
max pool of its own                      a 1×1 identity convolution on its own channels, pool fused
average pool                             an H×W convolution of ones on its own channels
depthwise convolution                    a convolution on its own channels
a layer that sees no neighbouring rows   one layer on the maps of all frames of a batch, one under the other
connected, in a batch                    the same, each frame one row: a 1×W convolution of H times the channels
any other layer                          one layer, executed frame by frame of a batch
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from boards.errors import ScheduleError, faults
from cnn.network import (
    Activate,
    Add,
    AveragePool,
    Concat,
    Convolution,
    Dense,
    Input,
    MaxPool,
    Network,
    Node,
    Padding,
    Reorg,
    Shape,
    Slice,
    Upsample,
)
from cnn.quantized import (
    IntArray,
    QActivate,
    QAdd,
    QAveragePool,
    QConvolution,
    QDense,
    QInput,
    QNode,
    QuantizedNetwork,
    Requantiser,
    identity,
    on_host,
)
from scheduler.computes import check_computes

MAX_STRIDE = 4
"""Of a convolution on the engine."""

MOST_JOINED = 1 << 16
"""Values of a map that is read as one row: a bank of the row buffer holds all of them."""

MAX_BATCH = 64
"""Frames that share the weights' passage at most: as many as an array has rows."""

INPUTS, CONVOLUTIONS, CONNECTED, AVERAGES = (
    (Input, QInput),
    (Convolution, QConvolution),
    (Dense, QDense),
    (AveragePool, QAveragePool),
)
"""Operations of float networks and of quantised ones: what can be mapped is the same."""

ONLY_STREAMED = (Activate, QActivate, Add, QAdd, Concat, MaxPool, Reorg, Slice, Upsample)
"""Operations that the streaming style has where the array has not."""


@dataclass(frozen=True, eq=False)
class Layer:
    """What the array executes: one convolution with a fused pool, as ``lower`` makes it of one or two nodes.

    weights: int [filters, channels, kernel height, kernel width]; with ``depthwise`` [filters, 1, …]: every
    filter reads the channel of its own number. ``input`` and ``output`` are node indices: the map that is
    read, and the node whose map leaves (the pool, where one is fused).
    ``out`` is the shape before the pool (already cut to what the pool reads), ``saved`` the one after.
    stacked: frames of a batch whose maps are one map with so many times the rows, in ``out`` and ``saved`` too.
    joined: rows of the input, all of a frame, that are read as one: as they lie in DDR, its blocks are those of row
    after row. The kernel is as high as they are in ``weights``, and one row high on what is read.
    repeats: frames that are executed one after the other.
    """

    name: str
    input: int
    output: int
    weights: IntArray
    requantiser: Requantiser
    stride: int
    padding: Padding
    depthwise: bool
    pool_size: int
    pool_stride: int
    out: Shape
    saved: Shape
    node: int
    stacked: int = 1
    repeats: int = 1
    joined: int = 1

    @property
    def frames(self) -> int:
        """Of a batch."""
        return self.stacked * self.repeats

    @property
    def reads_pixels(self) -> bool:
        """Whether the layer reads the picture and not a map."""
        return self.input == 0

    @property
    def kernel(self) -> tuple[int, int]:
        """Height and width, on what is read."""
        return int(self.weights.shape[2]) // self.joined, int(self.weights.shape[3])

    @property
    def macs(self) -> int:
        """Multiply-accumulates that the network asks for in all frames (the pool's identity counts as none)."""
        return int(self.weights.size) * self.out.height * self.out.width * self.repeats


def lower(network: QuantizedNetwork, batch: int = 1) -> tuple[Layer, ...]:
    """Layers in execution order; ScheduleError lists every layer that the array cannot map, with its line.

    batch: frames that go through each layer before the next layer starts.
    """
    check_batch(batch)
    check_layers(network)
    layers: list[Layer] = []
    for index, node in enumerate(network.nodes):
        if isinstance(node.op, (QInput, Concat)) or on_host(node.op):
            continue
        if isinstance(node.op, MaxPool) and _fuses(network, index, layers):
            layers[-1] = _fuse(layers[-1], index, node, node.op)
        else:
            layers.append(_layer(network, index, node))
    return tuple(_batched(network, layer, batch) for layer in layers)


def check_batch(batch: int) -> None:
    """ScheduleError where so many frames are no batch."""
    if not 1 <= batch <= MAX_BATCH:
        raise ScheduleError(f"a batch is 1…{MAX_BATCH} frames, not {batch}; choose a number in that range")


def _batched(network: QuantizedNetwork, layer: Layer, batch: int) -> Layer:
    if batch == 1:
        return layer
    source = network.nodes[layer.input].shape
    out = replace(layer.out, height=batch * layer.out.height)
    if _joins(layer, source):
        return replace(layer, stride=1, out=out, saved=out, stacked=batch, joined=source.height)
    stride = _stacking_stride(layer, source)
    if stride is None:
        return replace(layer, repeats=batch)
    return replace(layer, stride=stride, out=out, saved=out, stacked=batch)


def _covers(layer: Layer, source: Shape) -> bool:
    """Whether the kernel is as large as the map that it reads."""
    return layer.kernel == (source.height, source.width) and layer.padding == Padding()


def _joins(layer: Layer, source: Shape) -> bool:
    """Whether a frame can be read as one row: a kernel as large as the map takes rows as it takes channels. Pixels
    cannot, their rows end in the middle of a word; nor can a depthwise layer, whose channels lie apart then."""
    one_row = _covers(layer, source) and source.values <= MOST_JOINED
    return one_row and layer.pool_size == 1 and not layer.reads_pixels and not layer.depthwise


def _stacking_stride(layer: Layer, source: Shape) -> int | None:
    """The stride with which the layer does on maps under each other what it does on each; None where rows of two frames
    would meet in a window."""
    if layer.pool_size > 1 or layer.padding.top or layer.padding.bottom:
        return None
    if layer.kernel[0] == 1 and layer.stride == 1:
        return 1
    return source.height if _covers(layer, source) and source.height <= MAX_STRIDE else None


# --- what the array cannot map --------------------------------------------------------------------------------------


def check_layers(network: Network | QuantizedNetwork) -> None:
    """ScheduleError lists every layer that the array cannot map, with its line. Of a float network too: of what it has,
    no bits change the answer."""
    refused = [(node, reason) for node in network.nodes if (reason := _refusal(network, node))]
    if refused:
        raise ScheduleError(
            f"the systolic back-end cannot map {len(refused)} layer(s) of {network.name} yet:\n  "
            + faults([f"{node.source}: {node.name}: {reason}" for node, reason in refused], "\n  ")
            + _elsewhere([node for node, _ in refused])
        )
    check_computes(network)


def _elsewhere(refused: Sequence[Node | QNode]) -> str:
    """What the other style has of it."""
    streamed = sorted({_kind(node.op) for node in refused if isinstance(node.op, ONLY_STREAMED)})
    streamed += ["these activations"] if any(_foreign(node.op) for node in refused) else []
    if not streamed:
        return ""
    command = "systolic fold NET, systolic generate NET --style streaming"
    return f"\nthe streaming style has {', '.join(streamed)}: {command}"


def _foreign(op: object) -> bool:
    return isinstance(op, (QConvolution, QDense, QAveragePool)) and not isinstance(op.requantiser, Requantiser)


def _refusal(network: Network | QuantizedNetwork, node: Node | QNode) -> str | None:
    """Why the array cannot map a node; None where it can, or where the host executes it."""
    if isinstance(node.op, INPUTS):
        return None if node.shape.channels <= 4 else f"an input of {node.shape.channels} channels (at most 4)"
    if on_host(node.op):
        return None
    source = network.nodes[resolve(network, node.inputs[0])]
    if isinstance(node.op, (QConvolution, QDense, QAveragePool)) and _foreign(node.op):
        return f"its activation is {type(node.op.requantiser).__name__}, the Saver has a Requantiser"
    if isinstance(source.op, INPUTS) and not isinstance(node.op, (*CONVOLUTIONS, *CONNECTED)):
        return "the first layer has to be a convolution or connected"
    return _refuse_shape(node, source)


def _refuse_shape(node: Node | QNode, source: Node | QNode) -> str | None:
    """Why the array cannot map a node that reads what it can read, and whose activation it has."""
    if isinstance(node.op, CONVOLUTIONS):
        return _refuse_groups(node.op)
    if isinstance(node.op, MaxPool):
        return _refuse_pool(node.op, source.shape, node.shape)
    routed = isinstance(node.op, Concat) and len(node.inputs) == 1
    return None if routed or isinstance(node.op, (*CONNECTED, *AVERAGES)) else f"{_kind(node.op)} has no mapping"


def _kind(op: object) -> str:
    return type(op).__name__.removeprefix("Q").lower()


def _refuse_groups(op: Convolution | QConvolution) -> str | None:
    depthwise = op.weights.shape[1] == 1 and op.weights.shape[0] == op.groups
    return None if op.groups == 1 or depthwise else f"groups={op.groups} (1, or as many as filters and channels)"


def _refuse_pool(op: MaxPool, source: Shape, pooled: Shape) -> str | None:
    if op.padding.top or op.padding.left or (op.size, op.stride) not in ((2, 2), (2, 1)):
        required = "size 2 with stride 2, or stride 1 padded right and bottom"
        return f"max pool of size {op.size} stride {op.stride} ({required})"
    if op.stride == 1 and (pooled.height, pooled.width) != (source.height, source.width):
        return "max pool of size 2 stride 1 that is not padded right and bottom"
    return None


# --- nodes to layers -------------------------------------------------------------------------------------------------


def resolve(network: Network | QuantizedNetwork, index: int) -> int:
    """The node whose map ``index`` is: a route of one layer is that layer."""
    node = network.nodes[index]
    return resolve(network, node.inputs[0]) if isinstance(node.op, Concat) else index


def _fuses(network: QuantizedNetwork, index: int, layers: list[Layer]) -> bool:
    """A pool is fused when it is the only reader of the layer just before it."""
    source = resolve(network, network.nodes[index].inputs[0])
    readers = sum(
        resolve(network, i) == source for node in network.nodes for i in node.inputs if not isinstance(node.op, Concat)
    )
    return bool(layers) and layers[-1].output == source and layers[-1].pool_size == 1 and readers == 1


def _fuse(layer: Layer, index: int, node: QNode, pool: MaxPool) -> Layer:
    out = Shape(layer.out.channels, *_read_by(pool, layer.out, node.shape))
    return replace(layer, output=index, pool_size=pool.size, pool_stride=pool.stride, out=out, saved=node.shape)


def _read_by(pool: MaxPool, source: Shape, pooled: Shape) -> tuple[int, int]:
    """Rows and columns that the pool reads: an odd last one is left out unless it is padded."""
    return min(source.height, pooled.height * pool.stride), min(source.width, pooled.width * pool.stride)


def _layer(network: QuantizedNetwork, index: int, node: QNode) -> Layer:
    source = resolve(network, node.inputs[0])
    shape, op = network.nodes[source].shape, node.op
    plain = Layer(
        name=node.name,
        input=source,
        output=index,
        weights=np.ones((shape.channels, 1, 1, 1), np.int8),
        requantiser=identity(shape.channels),
        stride=1,
        padding=Padding(),
        depthwise=False,
        pool_size=1,
        pool_stride=1,
        out=node.shape,
        saved=node.shape,
        node=index,
    )
    if isinstance(op, MaxPool):
        return _fuse(replace(plain, depthwise=True, out=shape), index, node, op)
    assert isinstance(op, (QConvolution, QDense, QAveragePool))  # _refusal left nothing else
    assert isinstance(op.requantiser, Requantiser)
    plain = replace(plain, requantiser=op.requantiser)
    if isinstance(op, QConvolution):
        grouped = op.groups > 1
        return replace(plain, weights=op.weights, stride=op.stride, padding=op.padding, depthwise=grouped)
    if isinstance(op, QDense):
        return replace(plain, weights=op.weights.reshape(-1, shape.channels, shape.height, shape.width))
    averaged = np.ones((shape.channels, 1, shape.height, shape.width), np.int8)
    return replace(plain, weights=averaged, depthwise=True)
