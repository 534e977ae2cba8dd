from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boards.errors import (
    DoesNotFitError,
    InvalidValueError,
    MismatchError,
    RangeError,
    SeveralFaultsError,
    UnsupportedError,
)
from cnn.datatype import INT8, INT16, UINT8, DataType, TensorType
from cnn.integer_model import run_integer
from cnn.maps import Padding, Shape
from cnn.network import Network
from cnn.ops import (
    Add,
    Concat,
    Convolution,
    Dense,
    MaxPool,
    QAdd,
    QAveragePool,
    QConvolution,
    QDense,
    Softmax,
    Upsample,
)
from cnn.ops.convolution import convolve
from cnn.quantisation.batch_norm import fold_batch_norms
from cnn.quantisation.calibration import CalibratedRanges, calibrate
from cnn.quantisation.quantise import quantise, requantiser_for
from cnn.quantized import QNode, QuantizedNetwork
from cnn.quantized_check import check_quantized
from cnn.requantise import Requantiser
from tests.support import networks
from tests.support.cases import cases
from tests.support.errors import faults_of, raises
from tests.support.kinds import as_kind

SEEDS = st.integers(0, 1 << 30)


def calibrated(network: Network) -> CalibratedRanges:
    return calibrate(network, networks.pictures(network.input_shape))


def one_layer(op: Convolution, size: int = 6) -> Network:
    channels, filters = op.weights.shape[1] * op.groups, op.weights.shape[0]
    shape = Shape(filters, size, size)
    after = networks.convolution(np.random.default_rng(9), filters, 2, activation="linear")
    layers = (("conv", op, [0], shape), ("head", after, [1], Shape(2, size, size)))
    return networks.network(Shape(channels, size, size), *layers)


def flat(network: Network, value: float = 1.0) -> CalibratedRanges:
    return CalibratedRanges("max", (value,) * len(network.nodes), (value,) * len(network.nodes))


def by_name(network: QuantizedNetwork, name: str) -> QNode:
    return next(node for node in network.nodes if node.name == name)


def convolution_of(network: QuantizedNetwork, index: int) -> QConvolution:
    return as_kind(QConvolution, network.nodes[index].op)


def requantiser_of(op: QConvolution | QDense | QAveragePool | QAdd) -> Requantiser:
    return as_kind(Requantiser, op.requantiser)


# ---------------------------------------------------------------- weights, bias and multipliers


@cases("bits, high, carrier", [(4, 7, "i1"), (8, 127, "i1"), (16, 32767, "i2")])
def test_weights_are_narrow_and_use_their_whole_range_per_channel(bits: int, high: int, carrier: str) -> None:
    network = networks.tiny_yolo()
    q = quantise(network, calibrated(network), bits=bits)
    for node in q.nodes:
        if isinstance(node.op, QConvolution):
            greatest = np.abs(node.op.weights.astype(int)).reshape(node.op.weights.shape[0], -1).max(axis=1)
            assert greatest.tolist() == [high] * len(greatest)
            assert node.op.weight_type == DataType(bits, True)
            assert node.op.weights.dtype == np.dtype(carrier)


@settings(max_examples=25)
@given(SEEDS, st.sampled_from(["linear", "leaky", "relu"]))
def test_integers_times_scales_equal_the_floats(seed: int, activation: str) -> None:
    """Check weights · scale ≈ weights, bias · scale ≈ bias, and m / 2^s ≈ accumulator scale / output scale."""
    random = np.random.default_rng(seed)
    op = networks.convolution(random, 3, 4, activation=activation)
    network = one_layer(op)
    q = convolution_of(quantise(network, flat(network, 3.0)), 1)
    scale = np.abs(op.weights).reshape(4, -1).max(axis=1).astype(float) / 127
    wide = scale[:, None, None, None]
    assert np.all(np.abs(q.weights * wide - op.weights) <= wide * 0.5001)
    r = requantiser_of(q)
    np.testing.assert_allclose(r.bias * scale / 255, op.bias, atol=float(scale.max()) / 255)
    ratio = scale / 255 / (3.0 / 127)
    np.testing.assert_allclose(r.multiplier / 2.0**r.shift, ratio, rtol=2**-16)
    assert np.all(r.multiplier >= 1 << 15), "m must use all its 16 bits"
    slope = {"linear": 1.0, "leaky": 0.1, "relu": 0.0}[activation]
    np.testing.assert_allclose(r.negative / 2.0**r.shift, slope * ratio, atol=float((0.5 / 2.0**r.shift).max()))


def test_leaky_slope_is_rounded_from_the_exact_ratio() -> None:
    """Use many channels, so that rounding 0.1 · m instead of 0.1 · ratio · 2^s differs for some of them."""
    random = np.random.default_rng(1)
    op = networks.convolution(random, 1, 256)
    network = one_layer(op)
    r = requantiser_of(convolution_of(quantise(network, flat(network)), 1))
    scale = np.abs(op.weights.astype(np.float64)).reshape(256, -1).max(axis=1) / 127
    exact = scale * (1 / 255) / (1 / 127) * 2.0**r.shift
    assert r.negative.tolist() == np.rint(0.1 * exact).astype(int).tolist()
    assert r.negative.tolist() != np.rint(0.1 * r.multiplier).astype(int).tolist()


def test_nearly_dead_channel_keeps_its_bias() -> None:
    """Use a bias of 2^40 accumulator steps, which does not fit, so that the scale of the weights must grow."""
    op = networks.convolution(np.random.default_rng(2), 3, 4)
    weights, bias = op.weights.copy(), op.bias.copy()
    weights[1], bias[1] = 1e-12, -0.75
    weights[2], bias[2] = 0, 0.51
    weights[3], bias[3] = 0, 0
    network = one_layer(replace(op, weights=weights, bias=bias, activation="linear"))
    q = quantise(network, flat(network))
    result = run_integer(q, np.full((3, 6, 6), 200, np.uint8))[1]
    assert result is not None
    assert set(result[1].ravel()) == {round(-0.75 * 127)}
    assert set(result[2].ravel()) == {round(0.51 * 127)}
    assert not result[3].any()
    assert convolution_of(q, 1).accumulator_bound(UINT8) <= (1 << 31) - 1


def test_wide_weights_shrink_until_the_accumulator_fits() -> None:
    random = np.random.default_rng(3)
    weights = random.choice([-1.0, 1.0], (2, 1024, 3, 3)).astype(np.float32)
    op = Convolution(weights, np.ones(2, np.float32), None, 1, Padding(1, 1, 1, 1), 1, "leaky")
    network = one_layer(op, 3)
    q = convolution_of(quantise(network, flat(network), bits=16), 1)
    assert (1 << 30) < q.accumulator_bound(UINT8) < 1 << 31
    assert np.abs(q.weights).max() == (1 << 31) // (1024 * 9 * 255)


def test_documented_example_gives_its_integers() -> None:
    """Use the example "Before → after" in docs/explanation/quantisation.md, after an identity layer of scale 0.02."""
    eye = np.eye(2, dtype=np.float32)[:, :, None, None]
    none = np.zeros(2, np.float32)
    pass_on = Convolution(eye, none, None, 1, Padding(), 1, "linear")
    weights = np.array([[0.5, -1.27]], np.float32)[:, :, None, None]
    op = Convolution(weights, np.array([0.1], np.float32), None, 1, Padding(), 1, "leaky")
    shape = Shape(2, 1, 1)
    layers = (("in", pass_on, [0], shape), ("conv", op, [1], Shape(1, 1, 1)))
    after = ("head", Convolution(eye[:1, :1], none[:1], None, 1, Padding(), 1, "linear"), [2], Shape(1, 1, 1))
    q = quantise(networks.network(shape, *layers, after), flat(networks.network(shape, *layers, after), 2.54))
    conv = convolution_of(q, 2)
    r = requantiser_of(conv)
    assert conv.weights.ravel().tolist() == [50, -127]
    assert [int(a[0]) for a in (r.bias, r.multiplier, r.negative, r.shift)] == [500, 41943, 4194, 22]
    for inputs, output in (((50, 15), 11), ((15, 50), -5)):
        array = np.array(inputs, np.int8).reshape(2, 1, 1)
        assert convolve(array, INT8, conv, q.nodes[2].shape, INT8).item() == output


@cases("below", [2.0**-20, 2.0**-18, 0.0])
def test_ratio_just_below_a_power_of_two_keeps_m_below_65536(below: float) -> None:
    """Choose the weight w so that ratio = w/127 · 1/255 / (output scale) = (1 − below) / 4."""
    ratio = (1 - below) / 4
    weight = np.full((1, 1, 1, 1), ratio * 255 / 127, np.float32)
    op = Convolution(weight, np.zeros(1, np.float32), None, 1, Padding(), 1, "relu")
    network = networks.network(
        Shape(1, 2, 2),
        ("conv", op, [0], Shape(1, 2, 2)),
        ("head", replace(op, activation="linear"), [1], Shape(1, 2, 2)),
    )
    reach = float(weight.item()) / 127 / 255 / ratio * 127
    r = requantiser_of(convolution_of(quantise(network, flat(network, reach)), 1))
    assert 1 << 15 <= r.multiplier[0] <= 65535
    assert r.multiplier[0] / 2.0 ** r.shift[0] == pytest.approx(ratio, rel=2**-16)


# ---------------------------------------------------------------- types


def test_types_are_pixels_then_int8_then_int16_for_the_head() -> None:
    network = networks.tiny_yolo()
    ranges = calibrated(network)
    types = [node.type for node in quantise(network, ranges).nodes]
    assert types[0] == TensorType(UINT8, 1 / 255)
    assert types[1] == types[2] == TensorType(INT8, max(ranges.values[1], 0) / 127)
    assert types[3] == types[4]
    assert types[5] == TensorType(INT16, 2 * ranges.greatest[5] / 32767)
    assert types[6] == types[5], "a layer on the host has the type of its input"


def test_concat_has_the_greatest_scale_of_its_inputs() -> None:
    network = networks.branches()
    ranges = calibrated(network)
    q = quantise(network, ranges)
    index = {node.name: i for i, node in enumerate(network.nodes)}
    tied = ["add", "reorg", "down", "deep", "up", "concat"]
    expected = max(ranges.values[index[name]] for name in ("add", "down", "deep")) / 127
    assert [by_name(q, name).type.scale for name in tied] == [expected] * 6
    assert by_name(q, "stem").type == by_name(q, "half").type
    assert by_name(q, "stem").type != by_name(q, "mix").type


def test_output_that_another_layer_reads_is_not_int16() -> None:
    random = np.random.default_rng(0)
    network = networks.network(
        Shape(3, 4, 4),
        ("conv", networks.convolution(random, 3, 2), [0], Shape(2, 4, 4)),
        ("softmax", Softmax(), [1], Shape(2, 4, 4)),
        ("head", networks.convolution(random, 2, 2), [1], Shape(2, 4, 4)),
        ("pool", MaxPool(2, 2, Padding()), [3], Shape(2, 2, 2)),
    )
    names = [node.type.datatype.name for node in quantise(network, flat(network)).nodes]
    assert names == ["UINT8", "INT8", "INT8", "INT16", "INT16"]


def test_relu6_saturates_exactly_at_six() -> None:
    network = networks.classifier()
    q = quantise(network, calibrated(network))
    assert q.nodes[1].type == q.nodes[2].type == TensorType(INT8, 6 / 127)
    bright = quantise(network, flat(network))
    op = convolution_of(bright, 1)
    strong = replace(requantiser_of(op), bias=np.full(8, 1 << 28))
    nodes = list(bright.nodes)
    nodes[1] = replace(nodes[1], op=replace(op, requantiser=strong))
    out = run_integer(replace(bright, nodes=tuple(nodes)), np.full((3, 12, 12), 255, np.uint8))[1]
    assert out is not None
    assert set((out * nodes[1].type.scale).ravel()) == {6.0}


def test_average_pool_divides_by_the_positions_of_the_map() -> None:
    network = networks.classifier()
    q = quantise(network, calibrated(network))
    pool = by_name(q, "pool")
    by = requantiser_of(as_kind(QAveragePool, pool.op))
    ratio = by.multiplier / 2.0**by.shift
    np.testing.assert_allclose(ratio, 6 / 127 / 36 / pool.type.scale, rtol=2**-16)
    assert isinstance(by_name(q, "dense").op, QDense)
    assert by_name(q, "dense").type.datatype == INT16


@cases("bits, most, tolerance", [(4, 7, 0.15), (8, 127, 5e-3), (16, 1 << 14, 1e-4)])
def test_add_converts_its_inputs_to_one_scale(bits: int, most: int, tolerance: float) -> None:
    """Expect multipliers as narrow as the weights, and of all such pairs the nearest to the ratio of the scales."""
    q = quantise(networks.branches(), calibrated(networks.branches()), bits=bits, activation_bits=bits)
    add = by_name(q, "add")
    assert isinstance(add.op, QAdd)
    scales = [by_name(q, name).type.scale for name in ("half", "mix")]
    assert max(add.op.multipliers) <= most
    by = requantiser_of(add.op)
    m = by.multiplier / 2.0**by.shift
    for one, scale in zip(add.op.multipliers, scales, strict=True):
        np.testing.assert_allclose(one * m * add.type.scale, scale, rtol=tolerance)
    ratio = min(scales) / max(scales)
    nearest = min(
        abs(n / unit - ratio) for unit in range(1, most + 1) for n in (int(ratio * unit), int(ratio * unit) + 1) if n
    )
    np.testing.assert_allclose(abs(min(add.op.multipliers) / max(add.op.multipliers) - ratio), nearest, atol=1e-12)


def test_add_of_equal_scales_has_multipliers_1() -> None:
    random = np.random.default_rng(0)
    conv = networks.convolution(random, 3, 3, activation="relu")
    network = networks.network(
        Shape(3, 4, 4),
        ("conv", conv, [0], Shape(3, 4, 4)),
        ("pool", MaxPool(1, 1, Padding()), [1], Shape(3, 4, 4)),
        ("add", Add("linear"), [1, 2], Shape(3, 4, 4)),
    )
    assert as_kind(QAdd, quantise(network, flat(network)).nodes[3].op).multipliers == (1, 1)


@cases("make", [networks.tiny_yolo, networks.branches, networks.classifier])
@cases("bits", [4, 8, 16])
def test_quantised_network_keeps_the_limits_of_multipliers_and_accumulators(
    make: Callable[[], Network], bits: int
) -> None:
    network = make()
    q = quantise(network, calibrated(network), bits=bits, activation_bits=bits)
    assert check_quantized(q) is q
    picture = networks.picture(network.input_shape, 7)
    outputs = run_integer(q, picture)
    for node, array in zip(q.nodes, outputs, strict=True):
        if array is not None and hasattr(node.op, "requantiser"):
            assert np.ptp(array.astype(int)) > 0, f"{node.name} must not be constant"


# ---------------------------------------------------------------- accumulators


def plain(channels: int, bias: int = 0) -> Requantiser:
    one = np.ones(channels, np.int64)
    return Requantiser(one * bias, one, one, one)


@cases(
    "weight, bias, datatype, bits",
    [(127, 0, INT8, 17), (127, 0, UINT8, 18), (1, 0, INT8, 10), (1, 127, INT8, 10), (1, 128, INT8, 11)],
)
def test_accumulator_bits_count_weights_activations_and_bias(
    weight: int, bias: int, datatype: DataType, bits: int
) -> None:
    """Expect 17 bits for 3·127·128 = 48768, 18 for 3·127·255 = 97155, 10 for 3·128 + 127 = 511, and 11 for 512."""
    op = QDense(np.full((1, 3), -weight, np.int8), INT8, plain(1, -bias))
    assert op.accumulator_bound(datatype).bit_length() + 1 == bits


def test_accumulator_bits_of_pools_and_adds() -> None:
    assert QAveragePool(plain(2, 5)).accumulator_bound(INT8, positions=169) == 169 * 128 + 5
    assert QAdd((3, 5), plain(2)).accumulator_bound(UINT8, INT8) == 3 * 255 + 5 * 128
    assert QAveragePool(plain(2, 5)).accumulator_bound(INT8) == 128 + 5  # of a map of one position
    assert QAveragePool(plain(2)).accumulator_bound(INT8).bit_length() + 1 == 9  # the map has one position
    with pytest.raises(ValueError, match="zip"):
        QAdd((3, 5), plain(2)).accumulator_bound(UINT8)


@cases(
    "ratio, multiplier, shift",
    [
        (1.0, 32768, 15),
        (0.75, 49152, 16),
        (24576.0, 49152, 1),
        (32767.5, 65535, 1),
        (0.99999, 65535, 16),  # 65536 · 0.99999 = 65535.34
        (0.999993, 32768, 15),  # 65536 · 0.999993 = 65535.54, which rounds to one too many
        (2.0**-31, 65536 // 2, 46),
        (2.0**-40, 128, 47),
        (2.0**-60, 1, 47),
    ],
)
def test_ratio_becomes_the_greatest_16_bit_multiplier(ratio: float, multiplier: int, shift: int) -> None:
    node = networks.tiny_yolo().nodes[1]
    by = requantiser_for(np.array([ratio]), np.zeros(1, np.int64), "relu", node)
    assert (by.multiplier.tolist(), by.shift.tolist(), by.negative.tolist()) == ([multiplier], [shift], [0])


def test_ratio_beyond_16_bits_is_refused() -> None:
    node = networks.tiny_yolo().nodes[1]
    with raises(RangeError, what="accumulator scale / output scale", got=32767.9, where="'conv1' (test:2)"):
        requantiser_for(np.array([1.0, 32767.9]), np.zeros(2, np.int64), "relu", node)


# ---------------------------------------------------------------- refusals


def test_unsupported_layers_are_reported_together() -> None:
    random = np.random.default_rng(0)
    network = networks.network(
        Shape(3, 4, 4),
        ("a", networks.convolution(random, 3, 2, activation="logistic"), [0], Shape(2, 4, 4)),
        ("up", Upsample(2, 0.5), [1], Shape(2, 8, 8)),
        ("softmax", Softmax(), [2], Shape(2, 8, 8)),
        ("b", networks.convolution(random, 2, 2), [3], Shape(2, 8, 8)),
    )
    with pytest.raises(SeveralFaultsError) as caught:
        quantise(network, flat(network))
    assert caught.value.subject == "3 layer(s) of 'tiny' cannot be quantised"
    assert [(type(error), error.where) for error in caught.value.errors] == [
        (UnsupportedError, "'a' (test:2)"),
        (UnsupportedError, "'up' (test:3)"),
        (UnsupportedError, "'b' (test:5)"),
    ]
    assert faults_of(caught.value, UnsupportedError, subject="Convolution with the activation logistic")
    assert faults_of(caught.value, UnsupportedError, subject="Upsample with the scale 0.5")
    assert faults_of(caught.value, UnsupportedError, subject="Convolution that reads 'softmax'")


def test_concat_of_the_image_and_a_layer_is_refused() -> None:
    random = np.random.default_rng(0)
    network = networks.network(
        Shape(3, 4, 4),
        ("conv", networks.convolution(random, 3, 2), [0], Shape(2, 4, 4)),
        ("concat", Concat(), [0, 1], Shape(5, 4, 4)),
    )
    with raises(UnsupportedError, subject="a concat of a layer with the picture", where="'conv' (test:2)"):
        quantise(network, flat(network))


def test_relu6_in_a_concat_with_a_greater_range_is_refused() -> None:
    random = np.random.default_rng(0)
    network = networks.network(
        Shape(3, 4, 4),
        ("six", networks.convolution(random, 3, 2, activation="relu6"), [0], Shape(2, 4, 4)),
        ("far", networks.convolution(random, 3, 2), [0], Shape(2, 4, 4)),
        ("concat", Concat(), [1, 2], Shape(4, 4, 4)),
        ("head", networks.convolution(random, 4, 2), [3], Shape(2, 4, 4)),
    )
    quantise(network, flat(network, 5.0))
    with raises(RangeError, what="the scale of a concat that joins relu6", high=6 / 127, where="'six' (test:2)"):
        quantise(network, flat(network, 12.7))


def test_dense_with_too_many_inputs_for_32_bits_is_refused() -> None:
    weights = np.ones((1, 1 << 17), np.float32)
    network = networks.network(
        Shape(2, 256, 256),
        ("conv", networks.convolution(np.random.default_rng(0), 2, 2, kernel=1), [0], Shape(2, 256, 256)),
        ("fc", Dense(weights, np.zeros(1, np.float32), None, "linear"), [1], Shape(1, 1, 1)),
    )
    with raises(
        DoesNotFitError, subject="a filter that reads INT16", need=131_072, have=131_070, where="'fc' (test:3)"
    ):
        quantise(network, flat(network), activation_bits=16)


@cases("wrong", [float("inf"), -1.0])
def test_range_that_is_infinite_or_negative_is_refused(wrong: float) -> None:
    network = networks.tiny_yolo()
    with raises(InvalidValueError, what="the range", got=wrong, where="'input' (test:1)"):
        quantise(network, flat(network, wrong))


def test_ranges_of_another_network_are_refused() -> None:
    with raises(MismatchError, got=11, expected=7, remedy="calibrate this network"):
        quantise(networks.tiny_yolo(), flat(networks.branches()))


def test_quantise_folds_batch_norms() -> None:
    network = networks.tiny_yolo()
    ranges = calibrated(network)
    ours, folded = quantise(network, ranges), quantise(fold_batch_norms(network), ranges)
    np.testing.assert_array_equal(convolution_of(ours, 1).weights, convolution_of(folded, 1).weights)
    assert requantiser_of(convolution_of(ours, 1)).bias.any()
