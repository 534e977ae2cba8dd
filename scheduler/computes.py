"""What both styles ask of a network before anything else."""

from __future__ import annotations

from boards.errors import UnsupportedError
from cnn.network import Network
from cnn.ops import Concat, Input, QInput
from cnn.quantized import QuantizedNetwork


def check_computes(network: Network | QuantizedNetwork) -> None:
    """Raise UnsupportedError if all layers run on the host, or move maps only: then there is no hardware to make."""
    idle = (Input, QInput, Concat)
    if all(isinstance(node.op, idle) or node.op.on_host for node in network.nodes):
        raise UnsupportedError(
            f"the network {network.name}",
            "it has no layer that an accelerator could compute",
            remedy="add a convolution",
        )
