"""What of a network no block can do, all of it at once, each layer with its line and the reason."""

from __future__ import annotations

from collections.abc import Sequence

from boards.errors import ScheduleError, faults, listed
from cnn.network import Add, Concat, Convolution, Custom, Input, MaxPool, Network, Node, Padding, Slice, TopK
from cnn.quantized import QAdd, QConvolution, QInput, QNode, QuantizedNetwork, has_integers, on_host
from scheduler.computes import check_computes
from scheduler.streaming import graph as g
from scheduler.streaming.blocks.packages import BLOCKS
from scheduler.streaming.connect import MOST_STREAMS


def check_layers(network: Network | QuantizedNetwork) -> None:
    """ScheduleError lists every layer that cannot be mapped, with where it stands. Of a float network too: what is then
    left to be asked are the datatypes."""
    refused = [
        f"{node.source}: {node.name}: {reason}" for node in _mapped(network) if (reason := _refusal(network, node))
    ]
    if refused:
        raise ScheduleError(
            f"the streaming style cannot map {len(refused)} layer(s) of {network.name} yet:\n  "
            + faults(refused, "\n  ")
        )
    check_computes(network)


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
        if on_host(source.op):
            return f"reads {source.name}, which runs on the host"
    if isinstance(node.op, (Convolution, QConvolution)):
        return _refuse_convolution(node.op, inputs[0])
    return _refuse_choice(network, node) or _refuse_join(node, inputs)


def _refuse_choice(network: Network | QuantizedNetwork, node: Node | QNode) -> str | None:
    """Of a layer that moves values or chooses among them."""
    if isinstance(node.op, Slice) and not _read_in_hardware(network, node):
        return "gives a part of a map's channels, which a layer has to read; add a convolution behind it"
    if isinstance(node.op, TopK) and node.op.k > g.MOST_LABELS:
        return f"chooses {node.op.k} labels, at most {g.MOST_LABELS} can be chosen; cut the network before it"
    if isinstance(node.op, Custom) and node.op.layer not in BLOCKS:
        return f"is a {node.op.layer}, for which no package has a block; install one that adds it to {BLOCKS.group}"
    if isinstance(node.op, MaxPool):
        return _refuse_padding(node.op.padding, node.op.window)
    return None


def _read_in_hardware(network: Network | QuantizedNetwork, node: Node | QNode) -> bool:
    """Whether another layer of the pipeline reads the map of ``node``."""
    return any(network.nodes[resolve(network, i)] is node for reader in _mapped(network) for i in reader.inputs)


def _refuse_join(node: Node | QNode, inputs: Sequence[Node | QNode]) -> str | None:
    if isinstance(node.op, (Add, QAdd)) and len(inputs) > MOST_STREAMS:
        return f"adds {len(inputs)} maps, at most {MOST_STREAMS} can be added together; add them in steps"
    names = [source.type.datatype.name for source in inputs if isinstance(source, QNode)]
    if isinstance(node.op, Concat) and len(set(names)) > 1:
        return f"joins {listed(names)}; all inputs have to be of one datatype"
    return None


def _refuse_padding(padding: Padding, kernel: tuple[int, int]) -> str | None:
    rows, columns = kernel
    if max(padding.top, padding.bottom) < rows and max(padding.left, padding.right) < columns:
        return None
    return f"pads as much as its kernel of {rows}×{columns} or more, so that a window would see nothing but padding"


def _refuse_convolution(op: Convolution | QConvolution, source: Node | QNode) -> str | None:
    if isinstance(source, QNode) and source.type.datatype.few == "BIPOLAR" and op.padding != Padding():
        return "pads BIPOLAR values with zeros, and BIPOLAR has no zero; take TERNARY, or a convolution without padding"
    return _refuse_padding(op.padding, (int(op.weights.shape[2]), int(op.weights.shape[3])))
