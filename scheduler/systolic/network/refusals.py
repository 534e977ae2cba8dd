"""List the layers of a network that the array cannot map, each with its line in the file and the reason."""

from __future__ import annotations

from collections.abc import Sequence

from boards.errors import listed
from cnn.maps import Padding, Shape
from cnn.network import Network, Node
from cnn.ops import (
    Accumulating,
    Activate,
    Add,
    AveragePool,
    Concat,
    Convolution,
    Custom,
    Dense,
    DepthToSpace,
    Detection,
    Input,
    IntegerSoftmax,
    MaxPool,
    Multiply,
    Op,
    Output,
    Pad,
    QActivate,
    QAdd,
    QAveragePool,
    QConvolution,
    QDense,
    QInput,
    QMultiply,
    QOp,
    QSoftmax,
    Reorg,
    Slice,
    Softmax,
    TopK,
    Upsample,
    assert_never,
)
from cnn.quantized import QNode, QuantizedNetwork
from cnn.requantise import Thresholds
from contract.geometry import RESULT_BITS
from scheduler.convolutions import dilation_of
from scheduler.nodes import check_computes, check_refused, kind_of, nodes_of, resolve
from scheduler.systolic.network.copies import UPSCALE, with_copies
from scheduler.systolic.network.reorg import PARTED_STRIDE, is_in_parts, pad_part_count
from scheduler.systolic.network.strips import strips_of

READS_PIXELS = (
    *(Convolution, QConvolution),
    *(Dense, QDense),
    *(AveragePool, QAveragePool),
    *(Activate, QActivate),
)
"""Operations that may read the input image, whose bytes are packed differently from a feature map's."""

ONLY_STREAMED = (Add, QAdd, Multiply, QMultiply, Concat, Reorg, Slice, Upsample, Custom)
"""Operations of which the streaming style supports more cases than the array."""

MAX_COPIES = 512
"""Greatest number of copies of a padding that repeats values: each copy is a layer of the program."""

MAX_ROWS_IN_TURN = 4
"""Greatest number of rows that a window reads in turn: one row of each map of an addition, or all rows of a map that
is stacked in a batch."""

MAX_PADDING_ABOVE, MAX_PADDING_LEFT = 255, 63
"""Rows of padding above a map, and columns of padding left of the input image (systolic/pass.h, loader/load.h)."""

RESULT_LIMIT = (1 << (RESULT_BITS - 1)) - 1
"""Greatest value that the Saver writes, whose results are signed."""


def check_mappable(network: Network | QuantizedNetwork) -> None:
    """Raise an error if the systolic array cannot map the network, even with copies of maps inserted (copies.py)."""
    check_layers(with_copies(network))


def check_layers(network: Network | QuantizedNetwork, fused: bool = False) -> None:
    """Raise an error unless the systolic array can map every layer. A float network can be checked before its bits are
    known.

    Args:
        network: The network.
        fused: Whether the Saver does residual adds where it can; see ``strips_of``.

    Raises:
        SeveralFaultsError: It has an UnsupportedError for every layer that the array cannot map.
        UnsupportedError: The network has nothing to compute.
    """
    placeless = strips_of(network, fused).refused
    reasons = [_refusal(network, node) or placeless.get(index) for index, node in enumerate(nodes_of(network))]
    refused = [(node, reason) for node, reason in zip(nodes_of(network), reasons, strict=True) if reason]
    check_refused(
        refused,
        f"the systolic style cannot map {len(refused)} of the layers of {network.name}",
        remedy=_elsewhere([node for node, _ in refused]),
    )
    check_computes(network)


def _elsewhere(refused: Sequence[Node | QNode]) -> str:
    """Return an error's remedy that recommends the streaming style for the refused layers; "" if that does not support
    them either."""
    streamed = sorted({kind_of(node) for node in refused if isinstance(node.op, ONLY_STREAMED)})
    streamed += ["these activations"] if any(_has_thresholds(node.op) for node in refused) else []
    streamed += ["these values"] if any(_foreign_type(node) for node in refused) else []
    if not streamed:
        return ""
    commands = "systolic fold NET, systolic generate NET --style streaming"
    return f"use the streaming style, which has {listed(streamed)}: {commands}"


def _has_thresholds(op: Op | QOp) -> bool:
    return isinstance(op, Accumulating) and isinstance(op.requantiser, Thresholds)


def _foreign_type(node: Node | QNode) -> str:
    """Return the name of the node's output datatype if the systolic engine cannot write its values, else ""."""
    datatype = node.type.datatype if isinstance(node, QNode) else None
    return datatype.name if datatype is not None and (datatype.few or datatype.high > RESULT_LIMIT) else ""


def _refusal(network: Network | QuantizedNetwork, node: Node | QNode) -> str | None:
    """Return the reason why the systolic array cannot map a node; None if it can, or if the host executes the node."""
    if not node.inputs or node.op.on_host:
        return None
    sources = [network.nodes[resolve(network, i)] for i in node.inputs]
    if _has_thresholds(node.op):
        return "its activation is Thresholds, and the Saver has multipliers only"
    if _foreign_type(node):
        most = f"INT of at most {RESULT_BITS} bits or UINT of {RESULT_BITS - 1}"
        return f"its values are {_foreign_type(node)}, and maps have {most}"
    if any(_is_image(source) for source in sources) and not isinstance(node.op, READS_PIXELS):
        return (
            "a layer that reads the input image must be a convolution, a connected layer, an average pool or an "
            "activation; --pass convolve_picture inserts a 1×1 convolution before other layers"
        )
    return _refuse_operation(node, sources[0])


def _is_image(node: Node | QNode) -> bool:
    return isinstance(node.op, (Input, QInput))


def _refuse_operation(node: Node | QNode, source: Node | QNode) -> str | None:
    """Return the reason why the array cannot map a node whose datatypes and inputs it supports; None if it can."""
    match node.op:
        case Convolution() | QConvolution() as op:
            # The rows of padding above a dilated window are skipped by addresses; a pass counts them otherwise.
            return _refuse_padding(op.padding, source, is_dense=dilation_of(op)[0] == 1)
        case MaxPool() as op:
            return _refuse_padding(op.padding, source, is_dense=True)
        case Pad() as op:
            return _refuse_copies(pad_part_count(op, source.shape))
        case Reorg() as op if is_in_parts(op) and op.stride != PARTED_STRIDE:
            return f"a reorg in darknet's order is mapped with stride {PARTED_STRIDE}, and this one has {op.stride}"
        case Upsample() as op:
            return _refuse_upsample(op, node.shape)
        case Add() | QAdd():
            return _refuse_addends(len(node.inputs))
        case IntegerSoftmax() | QSoftmax():
            return "the Saver has neither a divider nor a pass over channels; let the host compute the softmax"
        case Custom():
            return "the array has no mapping for it"
        case Dense() | QDense() | AveragePool() | QAveragePool() | Activate() | QActivate() | Multiply() | QMultiply():
            return None
        case Concat() | Slice() | Reorg() | DepthToSpace():
            return None
        case Input() | QInput() | Softmax() | TopK() | Output() | Detection():
            return None  # the host's
        case _:
            assert_never(node.op)


def _refuse_copies(copies: int) -> str | None:
    if copies <= MAX_COPIES:
        return None
    return (
        f"it repeats values of a map in {copies:,} copies, and the array makes at most {MAX_COPIES}; pad rows and "
        "columns by two layers, or by fewer"
    )


def _refuse_padding(padding: Padding, source: Node | QNode, is_dense: bool) -> str | None:
    """Return the reason why the array cannot have this padding, or None. It has limits above a map and left of the
    input image."""
    if padding.top > MAX_PADDING_ABOVE and is_dense:
        return f"it has {padding.top} rows of padding above it, and a pass at most {MAX_PADDING_ABOVE}"
    if _is_image(source) and padding.left > MAX_PADDING_LEFT:
        return f"it has {padding.left} columns of padding left of the picture, and a pass at most {MAX_PADDING_LEFT}"
    return None


def _refuse_addends(count: int) -> str | None:
    if count <= MAX_ROWS_IN_TURN:
        return None
    return f"it adds {count} maps; at most {MAX_ROWS_IN_TURN} are added, because a window reads a row of each"


def _refuse_upsample(op: Upsample, upsampled: Shape) -> str | None:
    if op.scale != 1:
        return f"it scales values by {op.scale:g}, and the array upsamples them as they are (scale 1)"
    if (upsampled.height, upsampled.width) == (op.stride, op.columns):  # of one value per channel
        return None
    if op.columns != op.stride:
        return f"it upsamples by {op.stride} × {op.columns}, and the array by {UPSCALE} × {UPSCALE}"
    return None if op.stride in (1, UPSCALE) else f"it upsamples by {op.stride}, and the array by {UPSCALE}"


def fusible(op: MaxPool, source: Shape, pooled: Shape) -> bool:
    """Return whether the output stage can compute the max pool ``op`` as part of the layer before it.

    It can for windows of size 2 with stride 2, or with stride 1 and padding right and bottom alone. Other pools are
    layers of their own.
    """
    if op.padding.top or op.padding.left or op.window != (2, 2):
        return False
    return op.stride == 2 or (op.stride == 1 and (pooled.height, pooled.width) == (source.height, source.width))
