"""Finds the layers of a network that the streaming style does not support, each with the reason."""

from __future__ import annotations

from collections.abc import Sequence

from boards.errors import listed
from cnn.maps import Padding
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
    Detection,
    Input,
    IntegerSoftmax,
    MaxPool,
    Multiply,
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
from cnn.quantized import QNode, QuantizedNetwork, has_integers
from scheduler.nodes import check_computes, check_refused, nodes_of, resolve
from scheduler.streaming import graph as g
from scheduler.streaming.blocks.packages import BLOCKS
from scheduler.streaming.connect import MAX_STREAMS


def check_mappable(network: Network | QuantizedNetwork) -> None:
    """Raise an error unless every layer has a streaming block and every map that the host reads can be written to DDR.

    Raises:
        SeveralFaultsError: Layers have no block, or maps cannot be written. It has an UnsupportedError for each.
        UnsupportedError: The network has no layer for an accelerator.
    """
    check_layers(network)
    refused = [(node, why) for node in _mapped(network) if (why := _refuse_output(network, node))]
    check_refused(refused, f"the pipeline cannot write {len(refused)} maps of {network.name}")


def check_layers(network: Network | QuantizedNetwork) -> None:
    """Raise an error unless every layer has a streaming block. Datatypes are checked in quantised networks only.

    Raises:
        SeveralFaultsError: Layers have no block. It has an UnsupportedError for each.
        UnsupportedError: The network has no layer for an accelerator.
    """
    refused = [(node, why) for node in _mapped(network) if (why := _refusal(network, node))]
    check_refused(refused, f"the streaming style cannot map {len(refused)} of the layers of {network.name}")
    check_computes(network)


def _mapped(network: Network | QuantizedNetwork) -> list[Node | QNode]:
    """Return the nodes whose outputs are integers. They become streaming blocks, and the host computes all others."""
    return [node for i, node in enumerate(nodes_of(network)) if has_integers(network.nodes, i)]


def _refusal(network: Network | QuantizedNetwork, node: Node | QNode) -> str | None:
    """Return the reason why a layer cannot become a streaming block, or None if it can."""
    inputs = [nodes_of(network)[resolve(network, i)] for i in node.inputs]
    for source in inputs:
        if source.op.on_host:
            return f"it reads {source.name}, which runs on the host"
    match node.op:
        case Convolution() | QConvolution() as op:
            if op.padding != Padding() and _is_bipolar(inputs[0]):
                return "it pads BIPOLAR values with zeros, but BIPOLAR has no zero; use TERNARY, or no padding"
            return _refuse_padding(op.padding, op.window)
        case MaxPool() as op:
            return _refuse_padding(op.padding, op.window)
        case Pad() as op:
            return f"it pads in mode {op.mode}, for which no block exists; use the systolic style"
        case Slice() if not _is_read(network, node):
            return "no layer of the pipeline reads its channels; add a convolution after it"
        case TopK() as op if op.k > g.MAX_LABELS:
            return f"it chooses {op.k} labels, but the maximum is {g.MAX_LABELS}; cut the network before it"
        case Custom() as op if op.layer not in BLOCKS:
            return f"no installed package has a block for it; install one that adds {op.layer} to {BLOCKS.group}"
        case Add() | QAdd() if len(inputs) > MAX_STREAMS:
            return f"it adds {len(inputs)} maps, but the maximum is {MAX_STREAMS}; split it into several additions"
        case Concat():
            return _refuse_datatypes(inputs)
        case Slice() | TopK() | Custom() | Add() | QAdd() | Multiply() | QMultiply():
            return None
        case Input() | QInput() | Dense() | QDense() | AveragePool() | QAveragePool() | Activate() | QActivate():
            return None
        case Reorg() | DepthToSpace() | Upsample() | IntegerSoftmax() | QSoftmax():
            return None
        case Softmax() | Output() | Detection():
            return None  # runs on the host
        case _:
            assert_never(node.op)


def _is_bipolar(node: Node | QNode) -> bool:
    return isinstance(node, QNode) and node.type.datatype.few == "BIPOLAR"


def _is_read(network: Network | QuantizedNetwork, node: Node | QNode) -> bool:
    """Return whether a layer that becomes a streaming block reads the output of ``node``."""
    return any(network.nodes[resolve(network, i)] is node for reader in _mapped(network) for i in reader.inputs)


def _refuse_output(network: Network | QuantizedNetwork, node: Node | QNode) -> str | None:
    """Return why the output of ``node`` cannot be written to DDR for the host, or None if it can or if only blocks read
    it."""
    if not _is_bipolar(node):
        return None
    nodes = nodes_of(network)
    readers = [i for i in range(len(nodes)) if any(nodes[resolve(network, s)] is node for s in nodes[i].inputs)]
    if readers and all(has_integers(network.nodes, index) for index in readers):
        return None
    return "its values are BIPOLAR, but outputs to the host must be integers; make its output TERNARY or integer sums"


def _refuse_datatypes(inputs: Sequence[Node | QNode]) -> str | None:
    """Return why a concat of the nodes ``inputs`` cannot become a streaming block, or None if it can."""
    names = [source.type.datatype.name for source in inputs if isinstance(source, QNode)]
    return f"it joins {listed(names)}, but all inputs must have the same datatype" if len(set(names)) > 1 else None


def _refuse_padding(padding: Padding, kernel: tuple[int, int]) -> str | None:
    """Return why a convolution or pool cannot have ``padding`` with this kernel, or None if it can."""
    rows, columns = kernel
    if max(padding.top, padding.bottom) < rows and max(padding.left, padding.right) < columns:
        return None
    return f"its padding must be smaller than its kernel of {rows}×{columns}, or windows would contain only padding"
