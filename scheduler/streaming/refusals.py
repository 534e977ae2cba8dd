"""What of a network no block can do, all of it at once, each layer with its line and the reason."""

from __future__ import annotations

from collections.abc import Sequence

from boards.errors import SeveralFaultsError, UnsupportedError, listed
from cnn.maps import Padding
from cnn.network import Network, Node
from cnn.ops import Add, Concat, Convolution, Custom, Input, MaxPool, Pad, QAdd, QConvolution, QInput, Slice, TopK
from cnn.quantized import QNode, QuantizedNetwork, has_integers
from scheduler.computes import check_computes
from scheduler.streaming import graph as g
from scheduler.streaming.blocks.packages import BLOCKS
from scheduler.streaming.connect import MOST_STREAMS


def check_mappable(network: Network | QuantizedNetwork) -> None:
    """Raise as ``check_layers``, and SeveralFaultsError for maps that no packet can take out of the pipeline."""
    check_layers(network)
    refused = [
        UnsupportedError(f"{_kind(node.op)} {node.name!r}", reason, where=node.source)
        for node in _mapped(network)
        if (reason := _refuse_end(network, node))
    ]
    if refused:
        raise SeveralFaultsError(refused, f"{len(refused)} maps of {network.name} cannot leave the pipeline")


def check_layers(network: Network | QuantizedNetwork) -> None:
    """Raise SeveralFaultsError with an UnsupportedError for every layer that cannot be mapped.

    A float network can be checked too; only the datatypes are then left to be asked. Raises UnsupportedError if the
    network has nothing to compute.
    """
    refused = [
        UnsupportedError(f"{_kind(node.op)} {node.name!r}", reason, where=node.source)
        for node in _mapped(network)
        if (reason := _refusal(network, node))
    ]
    if refused:
        subject = f"the streaming style cannot map {len(refused)} of the layers of {network.name}"
        raise SeveralFaultsError(refused, subject)
    check_computes(network)


def _kind(op: object) -> str:
    return op.layer if isinstance(op, Custom) else type(op).__name__.removeprefix("Q").lower()


def _mapped(network: Network | QuantizedNetwork) -> list[Node | QNode]:
    """What becomes blocks: layers, and choices among integers."""
    return [node for i, node in enumerate([*network.nodes]) if has_integers(network.nodes, i)]


def resolve(network: Network | QuantizedNetwork, index: int) -> int:
    """The node whose map ``index`` is: a route of one layer is that layer."""
    node = network.nodes[index]
    alone = isinstance(node.op, Concat) and len(node.inputs) == 1
    return resolve(network, node.inputs[0]) if alone else index


def _refusal(network: Network | QuantizedNetwork, node: Node | QNode) -> str | None:
    """Why a layer cannot be mapped; None where it can."""
    if isinstance(node.op, (Input, QInput)):
        return None
    inputs = [network.nodes[resolve(network, i)] for i in node.inputs]
    for source in inputs:
        if source.op.on_host:
            return f"it reads {source.name}, which runs on the host"
    if isinstance(node.op, (Convolution, QConvolution)):
        return _refuse_convolution(node.op, inputs[0])
    return _refuse_choice(network, node) or _refuse_join(node, inputs)


def _refuse_end(network: Network | QuantizedNetwork, node: Node | QNode) -> str | None:
    """Of a map that leaves the pipeline: the network's end, or what the host reads."""
    if not isinstance(node, QNode) or node.type.datatype.few != "BIPOLAR":
        return None
    nodes, readers = network.nodes, []
    for index in range(len(nodes)):
        if node in (nodes[resolve(network, source)] for source in nodes[index].inputs):
            readers.append(index)
    if readers and all(has_integers(nodes, index) for index in readers):
        return None
    return "BIPOLAR values cannot leave the pipeline, as a packet holds whole numbers; let it give its sums or TERNARY"


def _refuse_choice(network: Network | QuantizedNetwork, node: Node | QNode) -> str | None:
    """Of a layer that moves values or chooses among them."""
    if isinstance(node.op, Slice) and not _read_in_hardware(network, node):
        return "no layer of the pipeline reads its part of a map's channels; add a convolution after it"
    if isinstance(node.op, TopK) and node.op.k > g.MOST_LABELS:
        return f"it chooses {node.op.k} labels, and at most {g.MOST_LABELS} can be chosen; cut the network before it"
    if isinstance(node.op, Custom) and node.op.layer not in BLOCKS:
        return f"no package has a block for it; install one that adds {node.op.layer} to {BLOCKS.group}"
    if isinstance(node.op, MaxPool):
        return _refuse_padding(node.op.padding, node.op.window)
    if isinstance(node.op, Pad):
        return f"it repeats values around a map (mode {node.op.mode}), which no block does; take the systolic style"
    return None


def _read_in_hardware(network: Network | QuantizedNetwork, node: Node | QNode) -> bool:
    """Whether another layer of the pipeline reads the map of ``node``."""
    return any(network.nodes[resolve(network, i)] is node for reader in _mapped(network) for i in reader.inputs)


def _refuse_join(node: Node | QNode, inputs: Sequence[Node | QNode]) -> str | None:
    if isinstance(node.op, (Add, QAdd)) and len(inputs) > MOST_STREAMS:
        return f"it adds {len(inputs)} maps, and at most {MOST_STREAMS} can be added together; add them in steps"
    names = [source.type.datatype.name for source in inputs if isinstance(source, QNode)]
    if isinstance(node.op, Concat) and len(set(names)) > 1:
        return f"it joins {listed(names)}, and all its inputs must have one datatype"
    return None


def _refuse_padding(padding: Padding, kernel: tuple[int, int]) -> str | None:
    rows, columns = kernel
    if max(padding.top, padding.bottom) < rows and max(padding.left, padding.right) < columns:
        return None
    return f"its padding is as large as its kernel of {rows}×{columns}, so that a window would hold nothing but padding"


def _refuse_convolution(op: Convolution | QConvolution, source: Node | QNode) -> str | None:
    if isinstance(source, QNode) and source.type.datatype.few == "BIPOLAR" and op.padding != Padding():
        return "it pads BIPOLAR values with zeros, and BIPOLAR has no zero; use TERNARY, or no padding"
    return _refuse_padding(op.padding, op.window)
