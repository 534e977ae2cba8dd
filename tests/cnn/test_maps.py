"""Tests of cnn/maps.py: the repr of nodes and operations has the shapes of their arrays, and none of their values."""

from __future__ import annotations

import numpy as np

from cnn.maps import Padding
from cnn.network import Node
from cnn.ops import Convolution, QConvolution
from cnn.ops.weights import BatchNorm
from cnn.quantized import QNode
from cnn.requantise import Thresholds
from cnn.tables import Table
from systolic.loading import load_model


def test_repr_of_a_convolution_names_shapes_and_data_types() -> None:
    ones = np.ones(16, np.float32)
    op = Convolution(
        np.ones((16, 8, 3, 3), np.float32), ones, BatchNorm(ones, ones, ones), 1, Padding(1, 1, 1, 1), 1, "leaky"
    )
    assert repr(op).startswith(
        "Convolution(weights=float32[16, 8, 3, 3], bias=float32[16], "
        "batch_norm=BatchNorm(scale=float32[16], mean=float32[16], variance=float32[16], epsilon=1e-06), stride=1, "
    )
    assert repr(Table(np.arange(256))) == "Table(values=int64[256], slopes=None)"
    thresholds = Thresholds(np.zeros((4, 15), np.int64), np.zeros(4, bool))
    assert repr(thresholds) == "Thresholds(thresholds=int64[4, 15], flip=bool[4])"


def test_repr_of_every_node_of_a_network_has_no_values_of_arrays() -> None:
    model = load_model("shapes-w4a4")
    assert model.quantized is not None
    nodes: list[Node | QNode] = [*model.network.nodes, *model.quantized.nodes]
    assert any(isinstance(node.op, Convolution) for node in nodes)
    assert any(isinstance(node.op, QConvolution) for node in nodes)
    for node in nodes:
        assert "array(" not in repr(node), node.name
