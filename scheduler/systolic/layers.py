"""Lower a quantised network to layers: the array executes each as one convolution with a fused pool.

Node                                     Layers
conv 3×3, max pool 2/2                   one layer with the pool fused
connected on a C×H×W map                 a convolution with an H×W kernel and no padding
max pool 2/2 or 2/1, not fused           a depthwise 1×1 identity convolution with the pool fused
max pool of any other window             a layer that compares the places of its window instead of adding them
average pool                             a depthwise H×W convolution of ones
conv 3×3, SiLU                           one layer whose results are looked up in a table
SiLU, not fused                          a depthwise 1×1 identity convolution followed by the table
conv 3×3, upsample                       one layer that writes each result twice per row, and each row twice
upsample of one value per channel        a depthwise 1×1 identity convolution that reads the value for every place
upsample, not fused                      a depthwise 1×1 identity convolution with the upsample fused
concat, slice                            no layer: the maps share their rows in DDR (network/views.py)
add                                      a depthwise convolution with one kernel row per map that is added: the rows of
                                         the maps, read in turn, are one map
conv, add                                one layer; the Saver adds the other map to its results (network/additions.py)
product of two maps                      a window of one row of each map, read in turn; its places are multiplied
depthwise convolution                    a depthwise convolution
dilated convolution                      a convolution without the zeros: addresses skip columns, and layers of their
                                         own skip rows (network/dilated.py)
groups of 2, 4, 8 … channels             a depthwise layer; each channel tile has the weights of its groups
other groups                             a convolution on all channels, with weights of 0 between groups
space to depth                           a convolution that moves values; several in darknet's order (network/reorg.py)
depth to space                           one layer per row of a block, which writes a position as several columns

Batches                                  Layers
layers that see one row of a map         one layer on the maps of all frames, stacked
connected                                the same with one row per frame: a 1×W convolution of H times the channels
any other layer                          one layer that is executed frame by frame
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from boards.errors import RangeError
from cnn.maps import IntArray, Padding, Shape
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
)
from cnn.quantized import QuantizedNetwork
from cnn.requantise import Requantiser, Thresholds, identity
from cnn.tables import all_values
from contract.program import ADDED_FIELDS, PASS_WORDS
from scheduler.convolutions import on_all_channels
from scheduler.hardware.arithmetic import ceil_div
from scheduler.nodes import resolve
from scheduler.systolic.network.additions import fused_additions
from scheduler.systolic.network.copies import UPSCALE
from scheduler.systolic.network.dilated import dilated_layers
from scheduler.systolic.network.layer import Layer
from scheduler.systolic.network.refusals import MAX_ROWS_IN_TURN, check_layers, fusible
from scheduler.systolic.network.reorg import (
    Part,
    block_order_weights,
    darknet_parts,
    depth_parts,
    is_in_parts,
    pad_parts,
)
from scheduler.systolic.network.strips import Strips, strips_of
from scheduler.systolic.network.views import aligned, group_of, spans_of

MAX_ADDEND_WEIGHT = 127
"""Greatest multiplier of an addition that fits one weight of 8 bits."""

MAX_JOINED_VALUES = 1 << 16
"""Greatest number of values of a map that is read as one row, because a bank of the row buffer holds all of them."""

MAX_BATCH = 64
"""Greatest number of frames per batch: the rows of the largest array."""


def lower(network: QuantizedNetwork, batch: int = 1, fused: bool = False) -> tuple[Layer, ...]:
    """Return the network as the layers that the array executes, in execution order.

    Args:
        network: A network that is supported by the array.
        batch: Frames that go through each layer before the next layer starts.
        fused: Whether the Saver does residual adds where it can.

    Raises:
        RangeError: The batch is too large.
        SeveralFaultsError, UnsupportedError: As ``check_layers``.
    """
    check_batch(batch)
    check_layers(network, fused)
    strips = strips_of(network, fused)
    additions = fused_additions(network) if fused else {}
    readers = _readers(network)
    layers: list[Layer] = []
    for index in range(len(network.nodes)):
        if index in additions:
            layers[-1] = replace(layers[-1], output=index, added=additions[index])
        elif layers and readers[layers[-1].output] == 1 and (merged := _fused(network, index, layers[-1])):
            layers[-1] = merged
        else:
            layers += _own_layers(network, strips, index)
    words = PASS_WORDS + (len(ADDED_FIELDS) if fused else 0)
    written = (replace(layer, pass_words=words, strip=strips.of(layer.output)) for layer in layers)
    return tuple(_batched(network, layer, batch) for layer in written)


def check_batch(batch: int) -> None:
    """Raise RangeError unless ``batch`` is between 1 and MAX_BATCH frames, which the array can compute at once."""
    if not 1 <= batch <= MAX_BATCH:
        raise RangeError("the number of frames in a batch", batch, 1, MAX_BATCH)


# --- batches ---------------------------------------------------------------------------------------------------------


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
    """Return whether the layer's kernel has exactly the size of the map that it reads, ``source``."""
    sides = (source.height, source.width)
    return layer.kernel == sides and layer.reach == source.width and layer.padding == Padding()


def _joins(layer: Layer, source: Shape) -> bool:
    """Return whether the layer can read a whole frame as one row, with the frame's other rows as further channels.

    A kernel of the map's size can take rows as further channels. Pixels cannot be read so, because their rows end in
    the middle of a word; nor can a depthwise layer, because its channels would no longer be adjacent.
    """
    one_row = _covers(layer, source) and source.values <= MAX_JOINED_VALUES
    plain = layer.pool_size == 1 and not layer.compared and layer.upscale == 1 and not layer.shares_rows
    return one_row and plain and not layer.reads_pixels and not layer.depthwise


def _stacking_stride(layer: Layer, source: Shape) -> int | None:
    """Return the row stride with which the layer computes the maps of all frames of a batch, stacked as one map, or
    None.

    None if a window would hold rows of two frames.
    """
    if layer.pool_size > 1 or layer.upscale > 1 or layer.padding.top or layer.padding.bottom:
        return None
    if layer.kernel[0] == 1 and layer.stride == 1:
        return 1
    return source.height if _covers(layer, source) and source.height <= MAX_ROWS_IN_TURN else None


# --- nodes to layers -------------------------------------------------------------------------------------------------


def _fused(network: QuantizedNetwork, index: int, last: Layer) -> Layer | None:
    """Return the layer ``last`` with node ``index`` (a max pool, upsample or table) fused into it, or None if it cannot
    be fused.

    A max pool, an upsample or a table is fused if it is that reader. None if the node needs layers of its own.
    """
    node = network.nodes[index]
    source = resolve(network, node.inputs[0]) if node.inputs else index
    if last.output != source or _is_finished(last):
        return None
    match node.op:
        case MaxPool() as pool if fusible(pool, network.nodes[source].shape, node.shape):
            return _pooled(last, index, pool, node.shape) if last.separate_taps == 1 and _rises(network, last) else None
        case Upsample() as upsample if _is_doubling(upsample):
            return _upsampled(last, index, upsample, node.shape) if last.separate_taps == 1 else None
        case QActivate() as activate:
            return None if last.table else replace(last, output=index, table=activate.table, looked_up=last.output)
        case _:
            return None


def _readers(network: QuantizedNetwork) -> Counter[int]:
    """Return, per node, the number of inputs of other nodes that read its map. A concat of one input is not a
    reader."""
    return Counter(
        resolve(network, i)
        for reader, node in enumerate(network.nodes)
        for i in node.inputs
        if resolve(network, reader) == reader
    )


def _is_finished(layer: Layer) -> bool:
    """Return whether the layer's output stage already pools, upsamples or adds, so that no further node can be
    fused."""
    return layer.part is not None or layer.pool_size > 1 or layer.upscale > 1 or layer.added is not None


def _is_doubling(op: Upsample) -> bool:
    """Return whether the output stage can do this upsample. It can if rows and columns have the same factor of at most
    2."""
    return op.stride == op.columns <= UPSCALE


def _rises(network: QuantizedNetwork, layer: Layer) -> bool:
    """Return whether a larger sum of the layer never gives a smaller output, so that sums can be max-pooled before
    requantisation.

    The Saver pools sums, before they are requantised and looked up. If a multiplier is negative or a table falls, the
    greatest sum does not give the greatest result.
    """
    if layer.table is not None and layer.looked_up is not None:
        values = all_values(layer.table, network.nodes[layer.looked_up].type.datatype)
        if bool(np.any(np.diff(values) < 0)):
            return False
    return isinstance(layer.requantiser, Requantiser) or bool(np.all(layer.requantiser.multiplier >= 0))


def _pooled(layer: Layer, index: int, pool: MaxPool, pooled: Shape) -> Layer:
    """Return the layer with a fused max pool. It computes only the rows and columns that the pool reads."""
    out = replace(
        layer.out,
        height=min(layer.out.height, pooled.height * pool.stride),
        width=min(layer.out.width, pooled.width * pool.stride),
    )
    return replace(layer, output=index, pool_size=pool.size, pool_stride=pool.stride, out=out, saved=pooled)


def _upsampled(layer: Layer, index: int, op: Upsample, shape: Shape) -> Layer:
    return replace(layer, output=index, upscale=op.stride, saved=shape)


def _own_layers(network: QuantizedNetwork, strips: Strips, index: int) -> Iterator[Layer]:
    """Yield the array layers of a node that is not fused into another; none if it needs no layer, or if the host
    executes it."""
    node = network.nodes[index]
    if not node.inputs or node.op.on_host:
        return
    plain = _identity_layer(network, strips, index)
    read = network.nodes[plain.input].shape
    match node.op:
        case QConvolution() as op:
            layer = replace(_with_sums(plain, op), stride=op.stride, padding=op.padding, around=op.around)
            yield from dilated_layers(_convolution(layer, op), op.dilation, read)
        case QDense() as op:
            weights = op.weights.reshape(-1, read.channels, read.height, read.width)
            yield replace(_with_sums(plain, op), weights=weights, depthwise=False)
        case QAveragePool() as op:
            ones = np.ones((read.channels, 1, read.height, read.width), np.int8)
            yield _on_own_channels(replace(_with_sums(plain, op), weights=ones))
        case QAdd() as op:
            yield _sum(network, _in_turn(network, strips, _with_sums(plain, op)), op)
        case QMultiply() as op:
            yield replace(_in_turn(network, strips, _with_sums(plain, op)), multiplied=True)
        case QActivate() as op:
            yield _on_own_channels(replace(plain, table=op.table, looked_up=plain.input))
        case MaxPool() as op if fusible(op, read, node.shape):
            yield _on_own_channels(_pooled(replace(plain, out=read), index, op, node.shape))
        case MaxPool() as op:
            yield _on_own_channels(replace(plain, window=op.window, stride=op.stride, padding=op.padding))
        case Upsample() as op if _is_doubling(op):
            yield _on_own_channels(_upsampled(replace(plain, out=read), index, op, node.shape))
        case Upsample():
            yield _on_own_channels(replace(plain, stride=0))
        case Pad() as op:
            yield from _copies(_on_own_channels(plain), op, read)
        case Reorg() as op if is_in_parts(op):
            parts = darknet_parts(read)
            yield from (_moved(layer, weights) for layer, weights in _parts(plain, parts))
        case Reorg() as op:
            yield _moved(replace(plain, stride=op.stride), block_order_weights(read.channels, op.stride))
        case DepthToSpace() as op:
            parts = depth_parts(op, read)
            yield from (_moved(_spread(layer, op.columns), weights) for layer, weights in _parts(plain, parts))
        case Concat() | Slice():
            pass  # views of the maps that they read
        case QInput() | Softmax() | TopK() | Output() | Detection():
            pass  # returned above
        case QSoftmax() | Custom():
            raise AssertionError(f"check_layers lets {node.name!r} pass, but the array has no mapping for it")
        case _:
            assert_never(node.op)


def _identity_layer(network: QuantizedNetwork, strips: Strips, index: int) -> Layer:
    """Return the depthwise 1×1 layer that copies the input of node ``index`` to the node's own map. Other layers are
    derived from it."""
    node = network.nodes[index]
    source = resolve(network, node.inputs[0])
    spans, channels = strips.in_stored_order(spans_of(network, source)), network.nodes[source].shape.channels
    return Layer(
        name=node.name,
        input=source,
        output=index,
        weights=np.ones((channels, 1, 1, 1), np.int8),
        requantiser=identity(channels),
        stride=1,
        padding=Padding(),
        depthwise=True,
        pool_size=1,
        pool_stride=1,
        out=node.shape,
        saved=node.shape,
        node=index,
        spans=spans,
        shares_rows=len(strips.of(spans[0].node)) > 1,
    )


def _with_sums(layer: Layer, op: QConvolution | QDense | QAveragePool | QAdd | QMultiply) -> Layer:
    """Return the layer with the requantiser of operation ``op``."""
    assert not isinstance(op.requantiser, Thresholds)  # refused by check_layers
    return replace(layer, requantiser=op.requantiser)


def _on_own_channels(layer: Layer) -> Layer:
    """Return a depthwise layer unchanged if its channels are stored in matching words, else as a plain convolution with
    the same results.

    If the channels that it reads are in other blocks, it is a convolution on all channels with the same results.
    """
    if aligned(layer.spans) and not layer.reads_pixels:
        return layer
    groups = len(layer.weights) // layer.weights.shape[1]
    return replace(layer, weights=on_all_channels(layer.weights, groups), depthwise=False, groups=groups)


def _convolution(layer: Layer, op: QConvolution) -> Layer:
    """Return the layer with the weights of a convolution: as a depthwise layer if its groups allow that, else with
    zeros between groups.

    If a group has the same number of filters and channels, a power of two, channel tile n finds the channels of its
    groups in channel blocks n.
    """
    filters, channels = op.weights.shape[:2]
    if op.groups == 1:
        return replace(layer, weights=op.weights, depthwise=False)
    if filters == op.groups * channels and channels & (channels - 1) == 0:
        return _on_own_channels(replace(layer, weights=op.weights))
    return replace(layer, weights=on_all_channels(op.weights, op.groups), depthwise=False, groups=op.groups)


def _moved(layer: Layer, weights: IntArray) -> Layer:
    """Return the layer with weights that only move values: each filter has one weight of 1, and all others are 0."""
    filters, channels = weights.shape[:2]
    return replace(layer, weights=weights, requantiser=identity(filters), depthwise=False, groups=channels)


def _copies(layer: Layer, op: Pad, read: Shape) -> Iterator[Layer]:
    """Yield the layers of a pad (such as reflection), each of which copies one rectangle of the map that it reads."""
    for number, part in enumerate(pad_parts(op, read), 1):
        out = Shape(layer.saved.channels, part.writes.count, part.columns)
        yield replace(layer, name=f"{layer.name}.{number}", part=part, out=out, saved=out)


def _parts(layer: Layer, parts: Iterator[tuple[Part, IntArray]]) -> Iterator[tuple[Layer, IntArray]]:
    """Yield one layer per part of an output map that several layers write together, with the weights that move its
    values."""
    for number, (part, weights) in enumerate(parts, 1):
        saved = Shape(len(weights), part.writes.count, layer.saved.width)
        name = f"{layer.name}.{number}"
        yield replace(layer, name=name, part=part, stride=part.stride, out=saved, saved=saved), weights


def _spread(layer: Layer, columns: int) -> Layer:
    """Return the layer of a depth to space that writes each input pixel as ``columns`` output pixels of a row."""
    assert layer.part is not None
    channels = columns * layer.saved.channels
    out = replace(layer.saved, width=layer.saved.width // columns)
    return replace(layer, spans=group_of(layer.spans, layer.part.group, channels), spread=columns, out=out)


def _in_turn(network: QuantizedNetwork, strips: Strips, layer: Layer) -> Layer:
    """Return the layer that combines several maps by reading row y of each before row y + 1 of any, as one map with
    more rows."""
    operands = [resolve(network, i) for i in network.nodes[layer.output].inputs]
    spans = strips.in_stored_order(tuple(span for operand in operands for span in spans_of(network, operand)))
    return replace(layer, input=spans[0].node, stride=len(spans), spans=spans, summed=len(spans))


def _sum(network: QuantizedNetwork, in_turn: Layer, op: QAdd) -> Layer:
    """Return the layer that adds several maps: its kernel covers row y of each map, with the map's multiplier as
    weight.

    The kernel has one column. A multiplier that does not fit one weight of 8 bits is the sum of several weights, which
    are columns of the kernel that read the same place.
    """
    operands = [resolve(network, i) for i in network.nodes[in_turn.output].inputs]
    multipliers = np.array([op.multipliers[operands.index(span.node)] for span in in_turn.spans])
    bits = max(network.nodes[i].type.datatype.bits for i in (*operands, in_turn.output))
    reads = ceil_div(int(multipliers.max()), MAX_ADDEND_WEIGHT) if bits <= 8 else 1
    shares = (multipliers[:, None] + np.arange(reads)) // reads
    weights = np.tile(shares.astype(np.int16)[None, None], (in_turn.out.channels, 1, 1, 1))
    return replace(in_turn, weights=weights, column_step=0 if reads > 1 else 1)
