"""Tests of the zero points that calibration chooses: their layers, their values, and the smaller error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from boards.errors import RangeError
from cnn.datatype import DataType
from cnn.integer_model import run_integer
from cnn.maps import Padding, Shape
from cnn.network import Network
from cnn.ops import (
    Activate,
    Add,
    AveragePool,
    Concat,
    Convolution,
    MaxPool,
    Multiply,
    QActivate,
    QAveragePool,
    QConvolution,
)
from cnn.quantisation.calibration import CalibratedRanges, observe, ranges_by_bits
from cnn.quantisation.fidelity import heads_sqnr_db
from cnn.quantisation.quantise import quantise
from cnn.quantisation.zero_points import quantise_with_zero_points, zero_points
from cnn.quantized import QuantizedNetwork
from cnn.requantise import Requantiser
from tests.support import networks
from tests.support.cases import cases
from tests.support.errors import raises
from tests.support.kinds import as_kind

INT4, INT8 = DataType(4, True), DataType(8, True)


def quantised(network: Network, bits: int = 4, fitted: int = 0) -> QuantizedNetwork:
    shape = network.input_shape
    statistics = observe(network, networks.pictures(shape))
    views = [networks.picture(PICTURE, seed) for seed in range(fitted)]
    return quantise_with_zero_points(network, statistics, "mse", bits, views)


def symmetric(network: Network, bits: int) -> QuantizedNetwork:
    statistics = observe(network, networks.pictures(network.input_shape))
    ranges = ranges_by_bits(statistics, "mse", [bits] * len(network.nodes))
    return quantise(network, ranges, bits=bits, activation_bits=bits)


PICTURE = Shape(3, 9, 8)


def two(activation: str) -> Network:
    """Return two convolutions, of which the first has the activation."""
    r, inner = np.random.default_rng(3), Shape(8, 9, 8)
    return networks.network(
        PICTURE,
        ("conv1", networks.convolution(r, 3, 8, activation=activation), [0], inner),
        ("conv2", networks.convolution(r, 8, 5, activation="linear"), [1], replace(inner, channels=5)),
    )


def types(network: QuantizedNetwork) -> dict[str, tuple[str, int]]:
    return {node.name: (node.type.datatype.name, node.type.zero_point) for node in network.nodes}


def test_zero_point_after_relu_is_the_lowest_integer() -> None:
    integers = quantised(two("relu"))
    assert types(integers) == {"input": ("UINT8", 0), "conv1": ("INT4", -8), "conv2": ("INT16", 0)}
    conv1, conv2 = (as_kind(QConvolution, node.op) for node in integers.nodes[1:])
    assert conv2.around == -8
    by = as_kind(Requantiser, conv1.requantiser)
    assert np.array_equal(by.negative, by.multiplier)
    outputs = run_integer(integers, networks.picture(PICTURE))[1]
    assert outputs is not None
    assert (outputs.min(), outputs.max()) == (-8, 7)


def test_leaky_output_is_finer_and_a_table_adds_the_zero_point() -> None:
    network = networks.tiny_yolo()
    integers = quantised(network)
    assert types(integers) == {
        "input": ("UINT8", 0),
        "conv1": ("INT8", 0),
        "conv1_finer": ("INT4", -7),
        "pool1": ("INT4", -7),
        "conv2": ("INT8", 0),
        "conv2_finer": ("INT4", -7),
        "pool2": ("INT4", -7),
        "head": ("INT16", 0),
        "region": ("INT16", 0),
    }
    finer = integers.nodes[2]
    table = as_kind(QActivate, finer.op).table.values
    ratio = integers.nodes[1].type.scale / finer.type.scale
    expected = [min(7, max(-8, int(np.floor(x * ratio + 0.5)) - 7)) for x in range(-128, 128)]
    assert table.tolist() == expected


@cases("activation", ["relu", "relu6", "leaky"])
@cases("fitted", [0, 3])
def test_4_bits_with_zero_points_are_nearer_to_the_floats(activation: str, fitted: int) -> None:
    network = two(activation)
    pictures = [networks.picture(PICTURE, seed) for seed in range(4)]
    moved = heads_sqnr_db(network, quantised(network, fitted=fitted), pictures)["conv2"]
    around = heads_sqnr_db(network, symmetric(network, 4), pictures)["conv2"]
    assert moved > around + 1.5


def test_8_bits_have_a_zero_point_only_after_relu() -> None:
    assert types(quantised(two("relu"), 8))["conv1"] == ("INT8", -128)
    leaky = quantised(two("leaky"), 8)
    assert types(leaky) == {"input": ("UINT8", 0), "conv1": ("INT8", 0), "conv2": ("INT16", 0)}
    pictures = [networks.picture(PICTURE, seed) for seed in range(4)]
    ratios = [heads_sqnr_db(two("relu"), each(two("relu"), 8), pictures)["conv2"] for each in (quantised, symmetric)]
    assert ratios[0] > ratios[1] + 1


@cases("activation", ["relu", "relu6", "leaky"])
def test_convolution_of_a_map_with_a_zero_point_equals_the_floats(activation: str) -> None:
    """Compute the second convolution in floats from the integers of the first, including the padding.

    The outputs may differ by one step and by the rounding of the bias.
    """
    network = two(activation)
    integers = quantised(network)
    outputs = run_integer(integers, networks.picture(PICTURE))
    source, last = integers.nodes[-2].type, integers.nodes[-1].type
    read, got = outputs[-2], outputs[-1]
    assert read is not None
    assert got is not None
    op = as_kind(QConvolution, integers.nodes[-1].op)
    scales = np.abs(as_kind(Convolution, network.nodes[2].op).weights.reshape(5, -1)).max(axis=1) / 7
    x = np.pad((read.astype(np.float64) - source.zero_point) * source.scale, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
    weights = op.weights * scales[:, None, None, None]
    sums = np.einsum("chwyx,ocyx->ohw", windows, weights)
    floats = sums + as_kind(Convolution, network.nodes[2].op).bias[:, None, None]
    # A bias is a whole number of steps of the sum, and one of these steps is many steps of the output.
    steps = source.scale * scales / last.scale
    assert (np.abs(got - floats / last.scale).max(axis=(1, 2)) <= 1 + steps / 2).all()


def joined(*kinds: str, by: Add | Concat | Multiply | None = None) -> Network:
    """Return convolutions of the image with these activations, a layer that joins them, and a last convolution."""
    r, inner = np.random.default_rng(4), Shape(4, 6, 5)
    layers: list[networks.Layer] = [
        (f"conv{i}", networks.convolution(r, 3, 4, activation=kind), [0], inner) for i, kind in enumerate(kinds)
    ]
    joins = by or Concat()
    channels = 4 * len(kinds) if isinstance(joins, Concat) else 4
    layers.append(("join", joins, list(range(1, len(kinds) + 1)), Shape(channels, 6, 5)))
    end = networks.convolution(r, channels, 3, activation="linear")
    return networks.network(Shape(3, 6, 5), *layers, ("end", end, [len(kinds) + 1], Shape(3, 6, 5)))


@cases(
    "network, expected",
    [
        (joined("relu", "relu"), {"conv0": -8, "conv1": -8, "join": -8}),
        (joined("relu", "leaky"), {"conv0": -7, "conv1": 0, "conv1_finer": -7, "join": -7}),
        (joined("relu", "linear"), {"conv0": 0, "conv1": 0, "join": 0}),
        (joined("linear", "leaky"), {"conv0": 0, "conv1": 0, "join": 0}),
        (joined("relu", "relu6", by=Add("relu")), {"conv0": -8, "conv1": -8, "join": -8}),
        (joined("leaky", "linear", by=Add("leaky")), {"conv0": 0, "conv0_finer": -7, "conv1": 0, "join": 0}),
        (joined("relu", "leaky", by=Multiply("linear")), {"conv0": 0, "conv1": 0, "join": 0}),
    ],
)
def test_joined_maps_have_one_zero_point(network: Network, expected: dict[str, int]) -> None:
    integers = quantised(network)
    assert {node.name: node.type.zero_point for node in integers.nodes[1:-1]} == expected
    assert {node.type.datatype for node in integers.nodes[1:-1] if node.type.zero_point} <= {INT4}


def test_add_and_average_pool_subtract_zero_points() -> None:
    """Check that the sum and the average of a map of zeros are zero too."""
    r, inner = np.random.default_rng(5), Shape(4, 6, 6)
    network = networks.network(
        Shape(3, 6, 6),
        ("conv0", networks.convolution(r, 3, 4, activation="relu"), [0], inner),
        ("sum", Add("relu"), [1, 1], inner),
        ("average", AveragePool(), [2], Shape(4, 1, 1)),
        ("end", networks.dense(r, 4, 3), [3], Shape(3, 1, 1)),
    )
    integers = quantised(network)
    assert types(integers)["sum"] == ("INT4", -8)
    conv = as_kind(QConvolution, integers.nodes[1].op)
    nothing = replace(conv, requantiser=replace(as_kind(Requantiser, conv.requantiser), bias=np.full(4, -(1 << 30))))
    dark = replace(integers, nodes=(integers.nodes[0], replace(integers.nodes[1], op=nothing), *integers.nodes[2:]))
    outputs = run_integer(dark, np.zeros((3, 6, 6), np.uint8))
    assert [np.unique(np.asarray(outputs[i])).tolist() for i in (1, 2, 3)] == [[-8], [-8], [0]]
    assert isinstance(integers.nodes[3].op, QAveragePool)


def test_zero_point_of_a_function_follows_its_lowest_value() -> None:
    r, inner = np.random.default_rng(6), Shape(4, 6, 5)

    def curved(function: str, *parameters: float) -> Network:
        wide = networks.convolution(r, 3, 4, activation="linear")
        return networks.network(
            Shape(3, 6, 5),
            ("conv0", replace(wide, weights=9 * wide.weights), [0], inner),
            ("curve", Activate(function, parameters), [1], inner),
            ("pool", MaxPool(2, 2, Padding()), [2], Shape(4, 3, 2)),
            ("end", networks.convolution(r, 4, 3, activation="linear"), [3], Shape(3, 3, 2)),
        )

    assert types(quantised(curved("silu")))["conv0"] == ("INT8", 0)
    assert -8 < types(quantised(curved("silu")))["pool"][1] <= -6
    assert types(quantised(curved("logistic")))["curve"] == ("INT4", -8)
    assert types(quantised(curved("tanh")))["curve"] == ("INT4", 0)
    assert types(quantised(curved("affine", 1.0, -2.0)))["curve"][1] == 0


def test_name_of_an_added_layer_avoids_existing_names() -> None:
    network = networks.tiny_yolo()
    nodes = [replace(node, name="conv1_finer") if node.name == "pool1" else node for node in network.nodes]
    names = [node.name for node in quantised(replace(network, nodes=tuple(nodes))).nodes]
    assert names[1:4] == ["conv1", "conv1_finer_", "conv1_finer"]


def test_nearly_dead_filter_stays_within_its_sum() -> None:
    network = two("relu")
    conv = as_kind(Convolution, network.nodes[1].op)
    weights = conv.weights.copy()
    weights[0] *= 1e-9
    weights[1] = 0
    bias = np.where(np.arange(8) == 1, 0, conv.bias).astype(np.float32)
    nodes = (
        network.nodes[0],
        replace(network.nodes[1], op=replace(conv, weights=weights, bias=bias)),
        network.nodes[2],
    )
    integers = quantised(replace(network, nodes=nodes))
    assert as_kind(QConvolution, integers.nodes[1].op).accumulator_bound(DataType(8, False)) < 1 << 31
    outputs = run_integer(integers, networks.picture(PICTURE))[1]
    assert outputs is not None
    assert np.unique(outputs[1]).tolist() == [-8]


def test_layer_with_an_empty_range_has_the_lowest_zero_point() -> None:
    network = two("relu")
    ranges = CalibratedRanges("max", (1.0, 0.0, 1.0), (1.0, 0.0, 1.0))
    assert zero_points(network, ranges, [4, 4, 4]) == (0, -8, 0)


def test_zero_points_of_16_bits_are_refused() -> None:
    with raises(RangeError, what="the bits of activations with zero points", got=16, high=8):
        quantised(two("relu"), 16)
