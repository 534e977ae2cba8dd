"""Tests of dense layers, padded pools, darknet's heads and images of many channels in the exported form."""

from __future__ import annotations

import numpy as np
import pytest

from boards.errors import (
    InvalidValueError,
    MismatchError,
    MissingValueError,
    RangeError,
    ShapeError,
    UnknownKeyError,
)
from cnn.exported.network import Exported, make_exported
from cnn.exported.seed import seeded_arrays
from cnn.exported.topology_file import parse_topology
from cnn.exported.topology_writer import topology_text
from cnn.float_model import run_float
from cnn.integer_model import run_integer
from cnn.maps import Padding, Shape
from cnn.ops import Detection, IntegerSoftmax, MaxPool, QSoftmax, Region, Segmentation, Softmax, TopK, Yolo, label_type
from cnn.ops.softmax import SHARES
from tests.support.errors import Refusal, check_refusals, raises
from tests.support.exported import convolution, parsed

SQUARE = {"channels": 3, "height": 8, "width": 8}
DENSE = {"type": "dense", "outputs": 6, "weight_bits": 4, "output_bits": 4}
ANCHORS = [[1.5, 2], [3, 4]]
LAYER = "small.json: layer 1"


def exported(*layers: dict[str, object], **others: object) -> Exported:
    topology = parsed(*layers, **others)
    return make_exported(topology, seeded_arrays(topology, 1))


def test_dense_equals_a_convolution_over_the_whole_map() -> None:
    picture = np.random.default_rng(1).integers(0, 256, (3, 8, 8), np.uint8)
    pool = {"type": "max_pool", "size": 2}
    dense = exported(convolution(5, padding=1), pool, DENSE, {**DENSE, "outputs": 4}, input=SQUARE)
    window = exported(convolution(5, padding=1), pool, convolution(6, 4), convolution(4, 1), input=SQUARE)
    outputs, expected = (run_integer(network.quantized, picture) for network in (dense, window))
    assert outputs[-1] is not None
    assert outputs[-1].shape == (4, 1, 1)
    assert outputs[-1].any()
    np.testing.assert_array_equal(np.asarray(outputs[-1]), np.asarray(expected[-1]))


def test_padded_pool_keeps_the_size_of_the_map() -> None:
    topology = parsed(convolution(4), {"type": "max_pool", "size": 3, "stride": 1, "padding": 1})
    assert topology.layers[1].op == MaxPool(3, 1, Padding(1, 1, 1, 1))
    assert topology.layers[1].shape == topology.layers[0].shape


def test_pool_with_unequal_sides_survives_writing_and_reading() -> None:
    pool = {"type": "max_pool", "size": [3, 2], "stride": 2, "padding": [2, 0, 1, 1]}
    topology = parsed(convolution(4), pool)
    assert topology.layers[1].op == MaxPool(3, 2, Padding(2, 0, 1, 1), 2)
    before = topology.layers[0].shape
    assert topology.layers[1].shape == Shape(4, before.height // 2 + 1, (before.width - 1) // 2 + 1)
    again = parse_topology(topology_text(topology), "small.json")
    assert again.layers[1].op == topology.layers[1].op


@pytest.mark.parametrize("labels", [True, False])
def test_top_k_gives_labels_or_integers(labels: bool) -> None:
    last = {"type": "convolution", "filters": 14, "kernel": 1, "weight_bits": 4}
    network = exported(convolution(4), last, {"type": "top_k", "k": 3, "labels": labels})
    *_, sums, choice = network.quantized.nodes
    assert (choice.op, choice.shape.channels) == (TopK(3, labels), 3)
    assert choice.type == (label_type(14) if labels else sums.type)
    assert network.network.nodes[-1].op == TopK(3, labels)
    assert parse_topology(topology_text(network.topology), "again").layers[-1].op == TopK(3, labels)


@pytest.mark.parametrize("method", ["none", "stable", "latency", "argmax"])
def test_softmax_runs_on_the_host_or_on_integers(method: str) -> None:
    layers = [convolution(4), {"type": "average_pool"}, {"type": "softmax", "method": method}]
    network = exported(*layers)
    *_, pooled, last = network.quantized.nodes
    if method == "none":
        assert (last.op, last.type) == (Softmax(), pooled.type)
    else:
        assert isinstance(last.op, QSoftmax)
        assert (last.op.method, last.type) == (method, SHARES)
        assert network.network.nodes[-1].op == IntegerSoftmax(method)
    written = parse_topology(topology_text(network.topology), "again").layers[-1].op
    assert written == network.topology.layers[-1].op


def test_host_softmax_is_over_the_channels_of_each_position() -> None:
    sums = {"type": "convolution", "filters": 14, "kernel": 1, "weight_bits": 4}
    network = exported(convolution(4), sums, {"type": "softmax"})
    assert network.network.nodes[-1].op == network.quantized.nodes[-1].op == Softmax(each=True)
    picture = np.random.default_rng(3).random((3, 12, 20), np.float32)
    *_, values, shares = run_float(network.network, picture)
    powers = np.exp(values - values.max(axis=0))
    np.testing.assert_allclose(shares, powers / powers.sum(axis=0), atol=1e-6)
    written = parse_topology(topology_text(network.topology), "again").layers[-1].op
    assert written == Softmax(each=True)


def test_softmax_of_wide_sums_needs_argmax() -> None:
    sums = {"type": "convolution", "filters": 14, "kernel": 1, "weight_bits": 4}
    what = "the bits that a softmax by stable looks up"
    with raises(RangeError, what=what, got=16, high=8, where="small.json: layer 3"):
        exported(convolution(4), sums, {"type": "softmax", "method": "stable"})
    by_argmax = exported(convolution(4), sums, {"type": "softmax", "method": "argmax"}).quantized.nodes[-1]
    assert (by_argmax.shape.channels, by_argmax.type) == (14, SHARES)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (
            {"type": "region", "anchors": ANCHORS, "classes": 2, "softmax": True},
            Region(((1.5, 2.0), (3.0, 4.0)), 2, True),
        ),
        (
            {"type": "yolo", "anchors": ANCHORS, "classes": 2, "scale_xy": 1.05},
            Yolo(((1.5, 2.0), (3.0, 4.0)), 2, False, scale_xy=1.05),
        ),
        ({"type": "segmentation"}, Segmentation((), 14, True)),
    ],
)
def test_head_becomes_a_detection_head(head: dict[str, object], expected: Detection) -> None:
    last = {"type": "convolution", "filters": 14, "kernel": 1, "weight_bits": 4}
    network = exported(convolution(4), last, head)
    op = network.quantized.nodes[-1].op
    assert isinstance(op, Detection)
    assert len(op.bias) == 14  # the host adds the bias of the last convolution
    assert network.topology.layers[-1].op == expected


def test_image_of_64_channels_is_read() -> None:
    network = exported(convolution(4), input={"channels": 64, "height": 6, "width": 6})
    picture = np.random.default_rng(2).integers(0, 256, (64, 6, 6), np.uint8)
    last = run_integer(network.quantized, picture)[-1]
    assert last is not None
    assert last.shape == (4, 4, 4)


def test_wrong_layer_is_refused() -> None:
    pool, uneven = {"type": "max_pool", "size": 2}, {"type": "max_pool", "size": [3, 2], "stride": 1}
    refusals: list[Refusal] = [
        (DENSE, ShapeError, {"what": "the map that a dense reads", "got": "shape 3×12×20"}),
        ({**pool, "padding": 2}, RangeError, {"what": "'padding'", "got": 2, "high": 1}),
        ({**pool, "padding": [0, 2, 0, 0]}, InvalidValueError, {"what": "'padding'", "got": [0, 2, 0, 0]}),
        ({**uneven, "padding": 2}, InvalidValueError, {"what": "'padding'", "got": [2, 2, 2, 2]}),
        ({"type": "max_pool", "size": [3, 2]}, MissingValueError, {"what": "'stride'", "where": LAYER}),
        ({**uneven, "size": [3]}, InvalidValueError, {"what": "'size'", "got": [3]}),
        ({**uneven, "size": [3, True]}, InvalidValueError, {"what": "'size'", "got": [3, True]}),
        ({**uneven, "size": [13, 1]}, InvalidValueError, {"what": "the window", "got": "13×1"}),
        ({"type": "region", "anchors": ANCHORS}, MismatchError, {"where": LAYER, "got": 3, "expected": 12}),
        ({"type": "yolo", "anchors": ANCHORS, "scale_xy": 11}, RangeError, {"what": "'scale_xy'", "high": 10}),
        ({"type": "segmentation", "classes": 3}, UnknownKeyError, {"keys": ["classes"]}),
    ]
    check_refusals(parsed, refusals)


def test_image_of_65_channels_is_refused() -> None:
    with raises(RangeError, what="'channels'", got=65, low=1, high=64):
        parsed(convolution(4), input={"channels": 65, "height": 6, "width": 6})
