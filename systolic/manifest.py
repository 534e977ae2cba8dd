"""What the manifests of both styles say alike."""

from __future__ import annotations

from collections.abc import Mapping

from cnn.network import Detection
from cnn.quantized import QuantizedNetwork, on_host
from host.contract.parts import NetworkHead
from host.vision.detection import Head
from scheduler.systolic.network.views import resolve


def heads(network: QuantizedNetwork, layer_of: Mapping[int, int]) -> tuple[NetworkHead, ...]:
    """Each detection head with the layer (by index in ``layers``) whose output it reads.

    layer_of: node → index in ``layers``.
    """
    return tuple(
        NetworkHead(layer_of[resolve(network, node.inputs[0])], head_of(node.op))
        for node in network.nodes
        if on_host(node.op) and isinstance(node.op, Detection)
    )


def head_of(op: Detection) -> Head:
    """What the host decodes by."""
    anchors = tuple((float(width), float(height)) for width, height in op.anchors)
    return Head(op.kind, anchors, op.classes, op.coords, op.softmax, tuple(op.bias), op.scale_xy)
