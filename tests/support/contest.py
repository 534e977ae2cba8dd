"""A chain of layers that UltraNet's own exporter can write, and a comparison of all integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from cnn.ops import QConvolution
from cnn.quantized import QuantizedNetwork
from tests.support.exported import convolution

LINEAR = {"type": "dense", "weight_bits": 4}
CHAIN = (
    convolution(4, padding=1),
    {"type": "max_pool", "size": 2},
    convolution(6, stride=2, padding=1, bias=True),
    {**LINEAR, "outputs": 5, "output_bits": 4},
    {**LINEAR, "outputs": 3},
)
FORM: dict[str, Any] = {
    "input": {"channels": 3, "height": 8, "width": 8, "order": "BGR"},
    "batch_norm": {"added_to": "root"},
}


def check_equal(network: QuantizedNetwork, expected: QuantizedNetwork) -> None:
    """Assert that all integers of all layers are equal."""
    assert [node.type for node in network.nodes] == [node.type for node in expected.nodes]
    for node, other in zip(network.nodes, expected.nodes, strict=True):
        assert type(node.op) is type(other.op)
        if isinstance(node.op, QConvolution) and isinstance(other.op, QConvolution):
            np.testing.assert_array_equal(node.op.weights, other.op.weights, node.name)
            for key, values in vars(node.op.requantiser).items():
                np.testing.assert_array_equal(values, getattr(other.op.requantiser, key), f"{node.name} {key}")
