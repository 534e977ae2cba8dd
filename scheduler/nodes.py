"""The nodes of float and quantised networks, and the checks of them that both styles share."""

from __future__ import annotations

from collections.abc import Sequence

from boards.errors import SeveralFaultsError, UnsupportedError
from cnn.network import Network, Node
from cnn.ops import Concat, Custom, Input, QInput
from cnn.quantized import QNode, QuantizedNetwork


def nodes_of(network: Network | QuantizedNetwork) -> Sequence[Node | QNode]:
    """Return the nodes of a float network or of a quantised one."""
    return network.nodes


def resolve(network: Network | QuantizedNetwork, index: int) -> int:
    """Return the node whose map node ``index`` has: a concat of one input has the map of that input."""
    node = network.nodes[index]
    alone = isinstance(node.op, Concat) and len(node.inputs) == 1
    return resolve(network, node.inputs[0]) if alone else index


def kind_of(node: Node | QNode) -> str:
    """Return the kind of a layer, as errors name it: "convolution", or the name of a package's layer."""
    return node.op.layer if isinstance(node.op, Custom) else type(node.op).__name__.removeprefix("Q").lower()


def check_refused(refused: Sequence[tuple[Node | QNode, str]], subject: str, remedy: str = "") -> None:
    """Raise SeveralFaultsError with an UnsupportedError for each refused layer, if there is one.

    Args:
        refused: Each layer with the reason.
        subject: The beginning of the error's sentence.
        remedy: What to do about all of them.
    """
    if refused:
        faults = [UnsupportedError(f"{kind_of(node)} {node.name!r}", why, where=node.source) for node, why in refused]
        raise SeveralFaultsError(faults, subject, remedy=remedy)


def check_computes(network: Network | QuantizedNetwork) -> None:
    """Raise UnsupportedError if an accelerator would compute nothing, because all layers run on the host or only
    join maps."""
    idle = (Input, QInput, Concat)
    if all(isinstance(node.op, idle) or node.op.on_host for node in network.nodes):
        raise UnsupportedError(
            f"the network {network.name}",
            "it has no layer that an accelerator could compute",
            remedy="add a convolution",
        )
