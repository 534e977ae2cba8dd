"""What the manifests of both styles say alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cnn.network import Detection
from cnn.quantized import QuantizedNetwork, on_host
from scheduler.systolic.layers import resolve


def heads(network: QuantizedNetwork, layer_of: Mapping[int, int]) -> list[dict[str, Any]]:
    """One object a detection head: the layer (by index in ``layers``) whose output it reads, and how.

    layer_of: node → index in ``layers``.
    """
    found = []
    for node in network.nodes:
        if on_host(node.op) and isinstance(node.op, Detection):
            op = node.op
            found.append(
                {
                    "layer": layer_of[resolve(network, node.inputs[0])],
                    "kind": op.kind,
                    "anchors": [list(pair) for pair in op.anchors],
                    "classes": op.classes,
                    "coords": op.coords,
                    "softmax": op.softmax,
                    **({"bias": list(op.bias)} if op.bias else {}),
                }
            )
    return found
