"""What the manifests of both styles say alike."""

from __future__ import annotations

from collections.abc import Mapping

from cnn.network import Detection
from cnn.quantisation.fidelity import heads as leaves
from cnn.quantized import QuantizedNetwork, on_host
from host.contract.parts import NetworkHead
from host.vision.heads.head import Head
from scheduler.systolic.network.views import resolve


def heads(network: QuantizedNetwork, layer_of: Mapping[int, int]) -> tuple[NetworkHead, ...]:
    """Each detection head with the layers (by index in ``layers``) whose outputs it reads.

    layer_of: node → index in ``layers``.
    """
    return tuple(
        NetworkHead(tuple(layer_of[resolve(network, source)] for source in node.inputs), head_of(node.op))
        for node in network.nodes
        if on_host(node.op) and isinstance(node.op, Detection)
    )


def outputs(network: QuantizedNetwork, layer_of: Mapping[int, int]) -> tuple[int, ...]:
    """The layers whose maps leave without a head; () where that is the last one alone, or none."""
    read = {source for node in network.nodes if isinstance(node.op, Detection) for source in node.inputs}
    leaving = dict.fromkeys(resolve(network, node) for node in leaves(network) if node not in read)
    layers = tuple(layer_of[node] for node in leaving)
    return () if not read and len(layers) == 1 else layers


def head_of(op: Detection) -> Head:
    """What the host decodes by."""
    anchors = tuple((float(width), float(height)) for width, height in op.anchors)
    bias, sizes = tuple(op.bias), (op.scale_xy, op.bins)
    return Head(op.kind, anchors, op.classes, op.coords, op.softmax, bias, *sizes)
