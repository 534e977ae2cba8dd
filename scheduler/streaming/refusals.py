"""List the layers of a network that no block can compute, each with its line in the file and the reason."""

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
from scheduler.streaming.connect import MOST_STREAMS


def check_mappable(network: Network | QuantizedNetwork) -> None:
    """Raise as ``check_layers``, and SeveralFaultsError for maps that cannot be written to DDR."""
    check_layers(network)
    refused = [(node, why) for node in _mapped(network) if (why := _refuse_output(network, node))]
    check_refused(refused, f"the pipeline cannot write {len(refused)} maps of {network.name}")


def check_layers(network: Network | QuantizedNetwork) -> None:
    """Check that a block exists for every layer. A float network has no datatypes yet, which are not checked then.

    Raises:
        SeveralFaultsError: It has an UnsupportedError for every layer that cannot be mapped.
        UnsupportedError: The network has nothing to compute.
    """
    refused = [(node, why) for node in _mapped(network) if (why := _refusal(network, node))]
    check_refused(refused, f"the streaming style cannot map {len(refused)} of the layers of {network.name}")
    check_computes(network)


def _mapped(network: Network | QuantizedNetwork) -> list[Node | QNode]:
    """Return the nodes that become blocks: layers, and top-k choices among integers."""
    return [node for i, node in enumerate(nodes_of(network)) if has_integers(network.nodes, i)]


def _refusal(network: Network | QuantizedNetwork, node: Node | QNode) -> str | None:
    """Return why a layer cannot be mapped; None if it can."""
    inputs = [nodes_of(network)[resolve(network, i)] for i in node.inputs]
    for source in inputs:
        if source.op.on_host:
            return f"it reads {source.name}, which runs on the host"
    match node.op:
        case Convolution() | QConvolution() as op:
            if op.padding != Padding() and _is_bipolar(inputs[0]):
                return "it pads BIPOLAR values with zeros, and BIPOLAR has no zero; use TERNARY, or no padding"
            return _refuse_padding(op.padding, op.window)
        case MaxPool() as op:
            return _refuse_padding(op.padding, op.window)
        case Pad() as op:
            return f"it pads by mode {op.mode}, for which there is no block; use the systolic style"
        case Slice() if not _is_read(network, node):
            return "no layer of the pipeline reads its part of a map's channels; add a convolution after it"
        case TopK() as op if op.k > g.MOST_LABELS:
            return f"it chooses {op.k} labels, and at most {g.MOST_LABELS} can be chosen; cut the network before it"
        case Custom() as op if op.layer not in BLOCKS:
            return f"no package has a block for it; install one that adds {op.layer} to {BLOCKS.group}"
        case Add() | QAdd() if len(inputs) > MOST_STREAMS:
            return f"it adds {len(inputs)} maps, and at most {MOST_STREAMS} can be added together; add them in steps"
        case Concat():
            return _refuse_datatypes(inputs)
        case Slice() | TopK() | Custom() | Add() | QAdd() | Multiply() | QMultiply():
            return None
        case Input() | QInput() | Dense() | QDense() | AveragePool() | QAveragePool() | Activate() | QActivate():
            return None
        case Reorg() | DepthToSpace() | Upsample() | IntegerSoftmax() | QSoftmax():
            return None
        case Softmax() | Output() | Detection():
            return None  # the host's
        case _:
            assert_never(node.op)


def _is_bipolar(node: Node | QNode) -> bool:
    return isinstance(node, QNode) and node.type.datatype.few == "BIPOLAR"


def _is_read(network: Network | QuantizedNetwork, node: Node | QNode) -> bool:
    """Return whether another layer of the pipeline reads the map of ``node``."""
    return any(network.nodes[resolve(network, i)] is node for reader in _mapped(network) for i in reader.inputs)


def _refuse_output(network: Network | QuantizedNetwork, node: Node | QNode) -> str | None:
    """Return why the map of ``node`` cannot be written to DDR; None if it can, or if only blocks read it."""
    if not _is_bipolar(node):
        return None
    nodes = nodes_of(network)
    readers = [i for i in range(len(nodes)) if any(nodes[resolve(network, s)] is node for s in nodes[i].inputs)]
    if readers and all(has_integers(network.nodes, index) for index in readers):
        return None
    return "its values are BIPOLAR, and a packet of the output holds integers; let the layer give its sums or TERNARY"


def _refuse_datatypes(inputs: Sequence[Node | QNode]) -> str | None:
    names = [source.type.datatype.name for source in inputs if isinstance(source, QNode)]
    return f"it joins {listed(names)}, and all its inputs must have one datatype" if len(set(names)) > 1 else None


def _refuse_padding(padding: Padding, kernel: tuple[int, int]) -> str | None:
    rows, columns = kernel
    if max(padding.top, padding.bottom) < rows and max(padding.left, padding.right) < columns:
        return None
    return f"its padding is as large as its kernel of {rows}×{columns}, so that a window would hold nothing but padding"
