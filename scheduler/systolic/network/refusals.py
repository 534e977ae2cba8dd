"""What of a network the array cannot map, all of it at once, each layer with its line and the reason."""

from __future__ import annotations

from collections.abc import Sequence

from boards.errors import SeveralFaultsError, UnsupportedError, listed
from cnn.maps import Shape
from cnn.network import Network, Node
from cnn.ops import (
    Activate,
    Add,
    AveragePool,
    Concat,
    Convolution,
    Custom,
    Dense,
    DepthToSpace,
    Input,
    IntegerSoftmax,
    MaxPool,
    Multiply,
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
    Upsample,
)
from cnn.quantized import QNode, QuantizedNetwork
from cnn.requantise import Thresholds
from contract.geometry import RESULT_BITS
from scheduler.computes import check_computes
from scheduler.convolutions import dilation_of
from scheduler.systolic.network.copies import UPSCALE, with_copies
from scheduler.systolic.network.reorg import PARTED_STRIDE, copies_of, has_parts
from scheduler.systolic.network.strips import strips_of
from scheduler.systolic.network.views import ROWS_IN_TURN, nodes_of, resolve

INPUTS, CONVOLUTIONS, CONNECTED, AVERAGES, ADDS, ACTIVATIONS = (
    (Input, QInput),
    (Convolution, QConvolution),
    (Dense, QDense),
    (AveragePool, QAveragePool),
    (Add, QAdd),
    (Activate, QActivate),
)
"""Operations of float networks and of quantised ones: what can be mapped is the same."""

OF_PIXELS = (*CONVOLUTIONS, *CONNECTED, *AVERAGES, *ACTIVATIONS)
"""Of these, what may read the picture, whose bytes no map holds as they are."""

ONLY_STREAMED = (Add, QAdd, Multiply, QMultiply, Concat, Reorg, Slice, Upsample, Custom)
"""Operations of which the streaming style has more than the array."""

MOST_COPIES = 512
"""Copies of a layer that repeats values around a map: each is a layer of the program."""

MOST_IN_TURN = 4
"""Rows that a window reads in turn: one of each map of a sum, or all of a map that its frames of a batch share."""


MOST_ABOVE, MOST_LEFT = 255, 63
"""Rows of padding above a map, and columns left of the picture (systolic/pass.h, loader/load.h)."""


def check_mappable(network: Network | QuantizedNetwork) -> None:
    """The same, of what it is with the copies of maps that its joins need (copies.py)."""
    check_layers(with_copies(network))


def check_layers(network: Network | QuantizedNetwork, fused: bool = False) -> None:
    """Raise SeveralFaultsError with an UnsupportedError for every layer that the array cannot map.

    A float network can be checked too: the answer depends on no bits that it does not have yet. fused: as of
    ``strips_of``. Raises UnsupportedError if the network has nothing to compute.
    """
    placeless = strips_of(network, fused).refused
    reasons = [_refusal(network, node) or placeless.get(index) for index, node in enumerate(nodes_of(network))]
    refused = [(node, reason) for node, reason in zip(nodes_of(network), reasons, strict=True) if reason]
    if refused:
        raise SeveralFaultsError(
            [
                UnsupportedError(f"{_kind(node.op)} {node.name!r}", reason, where=node.source)
                for node, reason in refused
            ],
            f"the systolic style cannot map {len(refused)} of the layers of {network.name}",
            remedy=_elsewhere([node for node, _ in refused]),
        )
    check_computes(network)


def _elsewhere(refused: Sequence[Node | QNode]) -> str:
    """Return what the other style maps of the refused layers, "" if nothing."""
    streamed = sorted({_kind(node.op) for node in refused if isinstance(node.op, ONLY_STREAMED)})
    streamed += ["these activations"] if any(_foreign(node.op) for node in refused) else []
    streamed += ["these values"] if any(_unknown(node) for node in refused) else []
    if not streamed:
        return ""
    commands = "systolic fold NET, systolic generate NET --style streaming"
    return f"use the streaming style, which has {listed(streamed)}: {commands}"


def _foreign(op: object) -> bool:
    return isinstance(op, (QConvolution, QDense, QAveragePool, QAdd, QMultiply)) and isinstance(
        op.requantiser, Thresholds
    )


RESULT_LIMIT = (1 << (RESULT_BITS - 1)) - 1
"""Of what leaves the Saver, with its sign."""


def _unknown(node: Node | QNode) -> str:
    """The datatype of values that the Saver does not give; "" of others."""
    datatype = node.type.datatype if isinstance(node, QNode) else None
    return datatype.name if datatype is not None and (datatype.few or datatype.high > RESULT_LIMIT) else ""


def _refusal(network: Network | QuantizedNetwork, node: Node | QNode) -> str | None:
    """Why the array cannot map a node; None where it can, or where the host executes it."""
    if isinstance(node.op, INPUTS) or node.op.on_host:
        return None
    sources = [network.nodes[resolve(network, i)] for i in node.inputs]
    if isinstance(node.op, (QConvolution, QDense, QAveragePool, QAdd, QMultiply)) and _foreign(node.op):
        return f"its activation is {type(node.op.requantiser).__name__}, and the Saver has multipliers only"
    if _unknown(node):
        most = f"INT of at most {RESULT_BITS} bits or UINT of {RESULT_BITS - 1}"
        return f"its values are {_unknown(node)}, and maps have {most}"
    if any(isinstance(source.op, INPUTS) for source in sources) and not isinstance(node.op, OF_PIXELS):
        return (
            "a layer that reads the input image must be a convolution, a connected layer, an average pool or an "
            "activation; --pass convolve_picture inserts a 1×1 convolution before other layers"
        )
    return _refuse_padding(node, sources[0]) or _refuse_copies(node, sources[0]) or _refuse_shape(node)


def _refuse_copies(node: Node | QNode, source: Node | QNode) -> str | None:
    if not isinstance(node.op, Pad) or copies_of(node.op, source.shape) <= MOST_COPIES:
        return None
    return (
        f"it repeats values of a map in {copies_of(node.op, source.shape):,} copies, and the array makes at most "
        f"{MOST_COPIES}; pad rows and columns by two layers, or by fewer"
    )


def _refuse_padding(node: Node | QNode, source: Node | QNode) -> str | None:
    """Rows above are multiplied by an address, but those of a dilated window are left out; columns of the picture are
    counted down from the first word."""
    if not isinstance(node.op, (*CONVOLUTIONS, MaxPool)):
        return None
    padding = node.op.padding
    left_out = isinstance(node.op, CONVOLUTIONS) and dilation_of(node.op)[0] > 1
    if padding.top > MOST_ABOVE and not left_out:
        return f"it has {padding.top} rows of padding above it, and a pass at most {MOST_ABOVE}"
    if isinstance(source.op, INPUTS) and padding.left > MOST_LEFT:
        return f"it has {padding.left} columns of padding left of the picture, and a pass at most {MOST_LEFT}"
    return None


def _refuse_shape(node: Node | QNode) -> str | None:
    """Why the array cannot map a node that reads what it can read, and whose activation it has."""
    if isinstance(node.op, (IntegerSoftmax, QSoftmax)):
        return "the Saver has neither a divider nor a pass over channels; let the host compute the softmax"
    if isinstance(node.op, Reorg):
        if not has_parts(node.op) or node.op.stride == PARTED_STRIDE:
            return None
        return f"a reorg in darknet's order is mapped with stride {PARTED_STRIDE}, and this one has {node.op.stride}"
    if isinstance(node.op, Upsample):
        return _refuse_upsample(node.op, node.shape)
    if isinstance(node.op, ADDS) and len(node.inputs) > MOST_IN_TURN:
        return (
            f"it adds {len(node.inputs)} maps; at most {MOST_IN_TURN} are added, because a window reads a row of each"
        )
    moves = (Concat, Slice, MaxPool, DepthToSpace, Pad)
    mapped = (*moves, *CONVOLUTIONS, *CONNECTED, *AVERAGES, *ROWS_IN_TURN, *ACTIVATIONS)
    return None if isinstance(node.op, mapped) else "the array has no mapping for it"


def _refuse_upsample(op: Upsample, upsampled: Shape) -> str | None:
    if op.scale != 1:
        return f"it scales values by {op.scale:g}, and the array upsamples them as they are (scale 1)"
    if (upsampled.height, upsampled.width) == (op.stride, op.columns):  # of one value a channel
        return None
    if op.columns != op.stride:
        return f"it upsamples by {op.stride} × {op.columns}, and the array by {UPSCALE} × {UPSCALE}"
    return None if op.stride in (1, UPSCALE) else f"it upsamples by {op.stride}, and the array by {UPSCALE}"


def _kind(op: object) -> str:
    return op.layer if isinstance(op, Custom) else type(op).__name__.removeprefix("Q").lower()


def fusible(op: MaxPool, source: Shape, pooled: Shape) -> bool:
    """Whether the Saver pools behind the layer before: windows of size 2 with stride 2, or with stride 1 and padded
    right and bottom. Others are a layer of their own."""
    if op.padding.top or op.padding.left or op.window != (2, 2):
        return False
    return op.stride == 2 or (op.stride == 1 and (pooled.height, pooled.width) == (source.height, source.width))
