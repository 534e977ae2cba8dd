"""The nodes of float and quantised networks, and the checks of them that both styles share."""

from __future__ import annotations

from collections.abc import Sequence

from boards.errors import SeveralFaultsError, UnsupportedError
from cnn.network import Network, Node
from cnn.ops import Concat, Custom, Input, QInput
from cnn.quantized import QNode, QuantizedNetwork


def nodes_of(network: Network | QuantizedNetwork) -> Sequence[Node | QNode]:
    """Return the list of nodes of a float or quantised network, typed so that code can handle either kind."""
    return network.nodes


def resolve(network: Network | QuantizedNetwork, index: int) -> int:
    """Return the index of the node whose feature map is the output of node ``index``: its input for a concat of one
    input, else itself.

    This is ``index`` itself, except for a concat of a single input, which only passes its input on.
    """
    node = network.nodes[index]
    alone = isinstance(node.op, Concat) and len(node.inputs) == 1
    return resolve(network, node.inputs[0]) if alone else index


def kind_of(node: Node | QNode) -> str:
    """Return the noun that errors use for a node's kind of layer: "convolution", or the layer's name in the package
    that adds it."""
    return node.op.layer if isinstance(node.op, Custom) else type(node.op).__name__.removeprefix("Q").lower()


def check_refused(refused: Sequence[tuple[Node | QNode, str]], subject: str, remedy: str = "") -> None:
    """Raise SeveralFaultsError with one UnsupportedError per unsupported layer, unless the list ``refused`` is empty.

    Args:
        refused: Each refused layer with the reason.
        subject: The first part of the error's sentence.
        remedy: What the user can do about all refused layers.
    """
    if refused:
        faults = [UnsupportedError(f"{kind_of(node)} {node.name!r}", why, where=node.source) for node, why in refused]
        raise SeveralFaultsError(faults, subject, remedy=remedy)


def check_computes(network: Network | QuantizedNetwork) -> None:
    """Raise UnsupportedError if the network has no layer for an accelerator: all layers run on the host or are
    concats."""
    idle = (Input, QInput, Concat)
    if all(isinstance(node.op, idle) or node.op.on_host for node in network.nodes):
        raise UnsupportedError(
            f"the network {network.name}",
            "it has no layer that an accelerator could compute",
            remedy="add a convolution",
        )
