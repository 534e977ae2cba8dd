"""Network → layers: everything that the array runs is one convolution with a fused pool.

before                                   after
conv 3×3, max pool 2/2                   one layer, pool fused
connected on a C×H×W map                 a convolution with an H×W kernel and no padding
max pool 2/2 or 2/1 of its own           a 1×1 identity convolution on its own channels, pool fused
max pool of any other window             its window, whose places are compared and not added up
average pool                             an H×W convolution of ones on its own channels
conv 3×3, SiLU                           one layer, its results looked up in a table
SiLU of its own                          a 1×1 identity convolution on its own channels, the table behind it
conv 3×3, upsample                       one layer, whose results are written twice in a row, and in two rows
one value a channel, upsampled           a 1×1 identity convolution on its own channels, which reads it for every place
upsample of its own                      a 1×1 identity convolution on its own channels, upsample fused
concat, slice                            no layer: maps that lie side by side (network/views.py)
add                                      a convolution on its own channels, as many rows high as maps are added: their
                                         rows, read in turn, are one map
conv, add                                one layer, to whose results the Saver adds the other map (network/additions.py)
product of two maps                      a window of their two rows, read in turn, whose places are multiplied
depthwise convolution                    a convolution on its own channels
dilated convolution                      a convolution of its places alone: columns by the address, rows in several
                                         layers (network/dilated.py)
groups of 2, 4, 8 … channels             the same, each channel tile with the weights of its groups
other groups                             a convolution on all channels, with weights of 0 between groups
space to depth                           a convolution that moves values; in darknet's order several (network/reorg.py)
depth to space                           one for each row of a block, which writes a position as several columns
a layer that sees no neighbouring rows   one layer on the maps of all frames of a batch, one under the other
connected, in a batch                    the same, each frame one row: a 1×W convolution of H times the channels
any other layer                          one layer, executed frame by frame of a batch
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from boards.errors import RangeError
from cnn.maps import IntArray, Padding, Shape
from cnn.ops import (
    Concat,
    DepthToSpace,
    MaxPool,
    Pad,
    QActivate,
    QAdd,
    QAveragePool,
    QConvolution,
    QDense,
    QInput,
    QMultiply,
    QOp,
    Reorg,
    Slice,
    Upsample,
)
from cnn.quantized import QNode, QuantizedNetwork
from cnn.requantise import MultiplyShift, Requantiser, identity
from cnn.tables import all_values
from contract.program import ADDED_FIELDS, PASS_WORDS
from scheduler.convolutions import on_all_channels
from scheduler.hardware.arithmetic import ceil_div
from scheduler.systolic.network.additions import fused_additions
from scheduler.systolic.network.copies import UPSCALE
from scheduler.systolic.network.dilated import dilated_layers
from scheduler.systolic.network.layer import Layer
from scheduler.systolic.network.refusals import MOST_IN_TURN, check_layers, fusible
from scheduler.systolic.network.reorg import blocks_apart, darknet_parts, depth_parts, has_parts, pad_parts
from scheduler.systolic.network.strips import Strips, strips_of
from scheduler.systolic.network.views import aligned, group_of, resolve, spans_of

MOST_ADDED = 127
"""The greatest multiplier of an addition that is one weight of 8 bits."""

MOST_JOINED = 1 << 16
"""Values of a map that is read as one row: a bank of the row buffer holds all of them."""

MAX_BATCH = 64
"""Frames that share the weights' passage at most: as many as an array has rows."""


def lower(network: QuantizedNetwork, batch: int = 1, fused: bool = False) -> tuple[Layer, ...]:
    """Return the layers in execution order.

    batch: frames that go through each layer before the next layer starts. fused: whether the Saver adds maps where it
    can. Raises RangeError for a batch that is too large, and the errors of ``check_layers``.
    """
    check_batch(batch)
    check_layers(network, fused)
    strips = strips_of(network, fused)
    additions = fused_additions(network) if fused else {}
    layers: list[Layer] = []
    for index, node in enumerate(network.nodes):
        if isinstance(node.op, (QInput, Concat, Slice)) or node.op.on_host:
            continue
        if index in additions:
            layers[-1] = replace(layers[-1], output=index, added=additions[index])
        elif isinstance(node.op, (MaxPool, Upsample, QActivate)) and _fuses(network, index, layers):
            layers[-1] = _fuse(layers[-1], index, node)
        else:
            layers += _parted(_layer(network, strips, index), node, network)
    words = PASS_WORDS + (len(ADDED_FIELDS) if fused else 0)
    written = (replace(layer, pass_words=words, strip=strips.of(layer.output)) for layer in layers)
    return tuple(_batched(network, layer, batch) for layer in written)


def check_batch(batch: int) -> None:
    """Raise RangeError if the array cannot compute so many frames at once."""
    if not 1 <= batch <= MAX_BATCH:
        raise RangeError("the number of frames in a batch", batch, 1, MAX_BATCH)


def _batched(network: QuantizedNetwork, layer: Layer, batch: int) -> Layer:
    if batch == 1:
        return layer
    if layer.part is not None or not layer.stride:
        return replace(layer, repeats=batch)
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
    sides = (source.height, source.width)
    return layer.kernel == sides and layer.reach == source.width and layer.padding == Padding()


def _joins(layer: Layer, source: Shape) -> bool:
    """Whether a frame can be read as one row: a kernel as large as the map takes rows as it takes channels. Pixels
    cannot, their rows end in the middle of a word; nor can a depthwise layer, whose channels lie apart then."""
    one_row = _covers(layer, source) and source.values <= MOST_JOINED
    plain = layer.pool_size == 1 and not layer.compared and layer.upscale == 1 and not layer.beside
    return one_row and plain and not layer.reads_pixels and not layer.depthwise


def _stacking_stride(layer: Layer, source: Shape) -> int | None:
    """The stride with which the layer does on maps under each other what it does on each; None where rows of two frames
    would meet in a window."""
    if layer.pool_size > 1 or layer.upscale > 1 or layer.padding.top or layer.padding.bottom:
        return None
    if layer.kernel[0] == 1 and layer.stride == 1:
        return 1
    return source.height if _covers(layer, source) and source.height <= MOST_IN_TURN else None


# --- nodes to layers -------------------------------------------------------------------------------------------------


def _fuses(network: QuantizedNetwork, index: int, layers: list[Layer]) -> bool:
    """A pool, an upsample or a table is fused when it is the only reader of the layer just before it."""
    source = resolve(network, network.nodes[index].inputs[0])
    readers = sum(
        resolve(network, i) == source
        for reader, node in enumerate(network.nodes)
        for i in node.inputs
        if resolve(network, reader) == reader
    )
    node = network.nodes[index]
    if isinstance(node.op, MaxPool) and not fusible(node.op, network.nodes[source].shape, node.shape):
        return False
    alone = bool(layers) and layers[-1].output == source and readers == 1
    return alone and _takes(network, layers[-1], node.op)


def _takes(network: QuantizedNetwork, layer: Layer, op: QOp) -> bool:
    """Whether the Saver can do ``op`` too. It pools sums, before they are requantised and looked up: where a multiplier
    is negative or a table falls, the greatest sum is not that of the greatest result."""
    busy = layer.part is not None or layer.pool_size > 1 or layer.upscale > 1 or layer.added is not None
    if busy or (layer.places > 1 and not isinstance(op, QActivate)):
        return False
    if isinstance(op, MaxPool):
        return _rises(network, layer)
    return _doubles(op) if isinstance(op, Upsample) else layer.table is None


def _doubles(op: Upsample) -> bool:
    """Whether the Saver upsamples; else one value a channel is read for every place."""
    return op.stride == op.columns <= UPSCALE


def _rises(network: QuantizedNetwork, layer: Layer) -> bool:
    """Whether a larger sum never gives a smaller result."""
    if layer.table is not None and layer.looked_up is not None:
        values = all_values(layer.table, network.nodes[layer.looked_up].type.datatype)
        if bool(np.any(np.diff(values) < 0)):
            return False
    return isinstance(layer.requantiser, Requantiser) or bool(np.all(layer.requantiser.multiplier >= 0))


def _fuse(layer: Layer, index: int, node: QNode) -> Layer:
    """The layer with a pool, an upsample or a table after it."""
    if isinstance(node.op, QActivate):
        return replace(layer, output=index, table=node.op.table, looked_up=layer.output)
    if isinstance(node.op, Upsample):
        return replace(layer, output=index, upscale=node.op.stride, saved=node.shape)
    assert isinstance(node.op, MaxPool)
    pool = node.op
    out = Shape(layer.out.channels, *_read_by(pool, layer.out, node.shape))
    return replace(layer, output=index, pool_size=pool.size, pool_stride=pool.stride, out=out, saved=node.shape)


def _read_by(pool: MaxPool, source: Shape, pooled: Shape) -> tuple[int, int]:
    """Rows and columns that the pool reads: an odd last one is left out unless it is padded."""
    return min(source.height, pooled.height * pool.stride), min(source.width, pooled.width * pool.stride)


def _layer(network: QuantizedNetwork, strips: Strips, index: int) -> Layer:
    """The layer of a node by itself."""
    node = network.nodes[index]
    source = resolve(network, node.inputs[0])
    spans, op = strips.as_they_lie(spans_of(network, source)), node.op
    shape = network.nodes[source].shape
    plain = Layer(
        name=node.name,
        input=source,
        output=index,
        weights=np.ones((shape.channels, 1, 1, 1), np.int8),
        requantiser=identity(shape.channels),
        stride=1,
        padding=Padding(),
        depthwise=True,
        pool_size=1,
        pool_stride=1,
        out=node.shape,
        saved=node.shape,
        node=index,
        spans=spans,
        beside=len(strips.of(spans[0].node)) > 1,
    )
    if isinstance(op, (Reorg, DepthToSpace, Pad, QActivate, MaxPool, Upsample)):
        return _passing_on(plain, node, shape)
    assert isinstance(op, (QConvolution, QDense, QAveragePool, QAdd, QMultiply))  # check_layers left nothing else
    assert isinstance(op.requantiser, (Requantiser, MultiplyShift))
    plain = replace(plain, requantiser=op.requantiser)
    if isinstance(op, (QAdd, QMultiply)):
        in_turn = _in_turn(network, strips, plain)
        return replace(in_turn, multiplied=True) if isinstance(op, QMultiply) else _sum(network, in_turn, op)
    if isinstance(op, QConvolution):
        return _convolution(replace(plain, stride=op.stride, padding=op.padding, around=op.around), op)
    if isinstance(op, QDense):
        weights = op.weights.reshape(-1, shape.channels, shape.height, shape.width)
        return replace(plain, weights=weights, depthwise=False)
    return _on_own_channels(replace(plain, weights=np.ones((shape.channels, 1, shape.height, shape.width), np.int8)))


def _passing_on(plain: Layer, node: QNode, shape: Shape) -> Layer:
    """The layer of a node that adds nothing up. shape: of what it reads."""
    op = node.op
    if isinstance(op, DepthToSpace):
        return plain
    if isinstance(op, Pad):
        return _on_own_channels(plain)
    if isinstance(op, Reorg):
        return _moved(replace(plain, stride=op.stride), blocks_apart(shape.channels, op.stride))
    if isinstance(op, QActivate):
        return _on_own_channels(replace(plain, table=op.table, looked_up=plain.input))
    if isinstance(op, MaxPool) and not fusible(op, shape, node.shape):
        return _on_own_channels(replace(plain, window=op.window, stride=op.stride, padding=op.padding))
    if isinstance(op, Upsample) and not _doubles(op):
        return _on_own_channels(replace(plain, stride=0))
    return _on_own_channels(_fuse(replace(plain, out=shape), plain.output, node))


def _on_own_channels(layer: Layer) -> Layer:
    """A depthwise layer, whose channel tiles read blocks of the same numbers; where the channels lie elsewhere, the
    convolution on all channels that does the same."""
    if aligned(layer.spans) and not layer.reads_pixels:
        return layer
    groups = len(layer.weights) // layer.weights.shape[1]
    return replace(layer, weights=on_all_channels(layer.weights, groups), depthwise=False, groups=groups)


def _convolution(plain: Layer, op: QConvolution) -> Layer:
    """``plain`` with the weights of a convolution. A channel tile finds groups of so many filters as channels, a power
    of two, in the channel blocks of its own number."""
    filters, channels = op.weights.shape[:2]
    if op.groups == 1:
        return replace(plain, weights=op.weights, depthwise=False)
    if filters == op.groups * channels and channels & (channels - 1) == 0:
        return _on_own_channels(replace(plain, weights=op.weights))
    return replace(plain, weights=on_all_channels(op.weights, op.groups), depthwise=False, groups=op.groups)


def _moved(layer: Layer, weights: IntArray) -> Layer:
    """The layer with these weights, one of each filter 1 and all others 0."""
    filters, channels = weights.shape[:2]
    return replace(layer, weights=weights, requantiser=identity(filters), depthwise=False, groups=channels)


def _parted(layer: Layer, node: QNode, network: QuantizedNetwork) -> Iterator[Layer]:
    """The layers that write the node's map: of a reorg in darknet's order, and of depth to space, several."""
    op, source = node.op, network.nodes[layer.input].shape
    if isinstance(op, QConvolution):
        yield from dilated_layers(layer, op.dilation, source)
        return
    if not has_parts(op):
        yield layer
        return
    if isinstance(op, Pad):
        for number, part in enumerate(pad_parts(op, source), 1):
            out = Shape(node.shape.channels, part.writes.count, part.columns)
            yield replace(layer, name=f"{layer.name}.{number}", part=part, out=out, saved=out)
        return
    parts = depth_parts(op, source) if isinstance(op, DepthToSpace) else darknet_parts(source)
    for number, (part, weights) in enumerate(parts, 1):
        saved = Shape(len(weights), part.writes.count, node.shape.width)
        written = replace(layer, name=f"{layer.name}.{number}", part=part, stride=part.stride, out=saved, saved=saved)
        yield _moved(_spread(written, op.columns) if isinstance(op, DepthToSpace) else written, weights)


def _spread(layer: Layer, columns: int) -> Layer:
    """A layer of which each position that is read becomes so many columns."""
    assert layer.part is not None
    channels = columns * layer.saved.channels
    out = replace(layer.saved, width=layer.saved.width // columns)
    return replace(layer, spans=group_of(layer.spans, layer.part.group, channels), spread=columns, out=out)


def _in_turn(network: QuantizedNetwork, strips: Strips, plain: Layer) -> Layer:
    """``plain`` reading row y of each of its maps before the next row of any."""
    operands = [resolve(network, i) for i in network.nodes[plain.output].inputs]
    spans = strips.as_they_lie(tuple(span for operand in operands for span in spans_of(network, operand)))
    return replace(plain, input=spans[0].node, stride=len(spans), spans=spans, summed=len(spans))


def _sum(network: QuantizedNetwork, in_turn: Layer, op: QAdd) -> Layer:
    """Return the layer that reads row y of each map under the multiplier of that map.

    The kernel has one column. A multiplier that is more than a weight of 8 bits is the sum of several weights, which
    are columns that read the same place.
    """
    operands = [resolve(network, i) for i in network.nodes[in_turn.output].inputs]
    multipliers = np.array([op.multipliers[operands.index(span.node)] for span in in_turn.spans])
    bits = max(network.nodes[i].type.datatype.bits for i in (*operands, in_turn.output))
    reads = ceil_div(int(multipliers.max()), MOST_ADDED) if bits <= 8 else 1
    shares = (multipliers[:, None] + np.arange(reads)) // reads
    weights = np.tile(shares.astype(np.int16)[None, None], (in_turn.out.channels, 1, 1, 1))
    return replace(in_turn, weights=weights, column_step=0 if reads > 1 else 1)
