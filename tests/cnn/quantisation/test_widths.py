"""Tests of the bits of activations for 16-bit lanes: they depend on the 32-bit sums, and reduce the error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from boards.errors import ChoiceError
from cnn.maps import Shape
from cnn.network import Network
from cnn.ops import AveragePool, QConvolution
from cnn.quantisation.batch_norm import fold_batch_norms
from cnn.quantisation.calibration import CalibratedRanges, calibrate
from cnn.quantisation.fidelity import fidelity
from cnn.quantisation.quantise import FORMATS, quantise, quantise_format
from cnn.quantisation.widths import shared_bits
from systolic.loading import load_model
from systolic.model import sample_pictures
from systolic.pictures import calibration_inputs
from tests.support import networks
from tests.support.cases import cases
from tests.support.errors import raises


def layered(channels: int) -> Network:
    """Return two 3×3 convolutions, of which the second reads ``channels`` channels."""
    random = np.random.default_rng(channels)
    return networks.network(
        Shape(3, 8, 8),
        ("conv1", networks.convolution(random, 3, channels), (0,), Shape(channels, 8, 8)),
        ("conv2", networks.convolution(random, channels, 4), (1,), Shape(4, 8, 8)),
    )


def test_wider_filters_leave_fewer_bits() -> None:
    found = []
    for channels in (4, 64, 512):
        network = layered(channels)
        ranges = calibrate(network, networks.pictures(network.input_shape))
        found.append(shared_bits(fold_batch_norms(network), ranges)[1])
    assert found[0] > found[1] > found[2] >= 10
    assert found[0] <= 16


@cases(
    "weights, bias, reach, bits",
    [
        ([1.0], 0.0, 1.0, 16),  # r = 1 would allow more than 16
        ([4.0] * 512, 0.0, 1.0, 13),  # r = 512: 1 + (31 − 9 + 2) / 2
        ([4.0] * 1024, 0.0, 1.0, 12),  # r = 1024: 1 + ⌊(31 − 10 + 2) / 2⌋
        ([-4.0, *[4.0] * 512], 0.0, 1.0, 12),  # r = 513
        ([4.0, *[2.0] * 2044, 4.0], 0.0, 1.0, 12),  # r = 1024
        ([4.0], 2046.0, 0.5, 12),  # r = 1 + 2046 / (0.5 · 4) = 1024
        ([1.0], -2048.0, 0.0, 11),  # r = 2049; an observed range of 0 counts as 1
        ([1.0], 1e9, 1.0, 8),
    ],
)
def test_shared_bits_follow_from_the_greatest_filter(
    weights: list[float], bias: float, reach: float, bits: int
) -> None:
    """Add two filters of zeros, which must not change the result."""
    rows = np.zeros((3, len(weights), 1, 1), np.float32)
    rows[0, :, 0, 0] = weights
    first = networks.convolution(np.random.default_rng(1), 3, len(weights), kernel=1)
    op = replace(first, weights=rows, bias=np.array([bias, 7.0, 0.0], np.float32), batch_norm=None)
    network = networks.network(
        Shape(3, 4, 4),
        ("conv1", first, (0,), Shape(len(weights), 4, 4)),
        ("conv2", op, (1,), Shape(3, 4, 4)),
    )
    assert shared_bits(network, CalibratedRanges("max", (1.0, reach, 1.0), (1.0, reach, 1.0)))[1:] == (bits, 16)


def test_sums_stay_within_32_bits_and_use_most_of_them() -> None:
    network = layered(128)
    q = quantise_format(network, calibrate(network, networks.pictures(network.input_shape)), 16)
    op = q.nodes[2].op
    assert isinstance(op, QConvolution)
    bound = op.accumulator_bound(q.nodes[1].type.datatype)
    assert 1 << 28 < bound < 1 << 31


def test_average_pool_over_a_large_map_gets_fewer_bits() -> None:
    network = networks.network(
        Shape(3, 300, 300),
        ("conv1", networks.convolution(np.random.default_rng(1), 3, 2, kernel=1), (0,), Shape(2, 300, 300)),
        ("average2", AveragePool(), (1,), Shape(2, 1, 1)),
    )
    ranges = calibrate(network, networks.pictures(network.input_shape, 1))
    assert shared_bits(fold_batch_norms(network), ranges)[1] == 31 - 17 + 1


@cases("bits", FORMATS)
def test_maps_and_weights_of_each_format_fit_its_bits(bits: int) -> None:
    network = layered(16)
    q = quantise_format(network, calibrate(network, networks.pictures(network.input_shape)), bits)
    assert q.nodes[1].type.datatype.bits <= bits
    assert int(np.abs(q.nodes[1].op.weights).max()) <= (1 << (bits - 1)) - 1  # type: ignore[union-attr]
    assert q.nodes[-1].type.datatype.name == "INT16"


def test_unknown_format_is_refused() -> None:
    network = layered(4)
    ranges = calibrate(network, networks.pictures(network.input_shape))
    with raises(ChoiceError, what="the bits of an accelerator's format", got=5, choices=FORMATS):
        quantise_format(network, ranges, 5)


def test_format_with_more_bits_has_a_higher_sqnr() -> None:
    """Expect more than 30 dB at 8 bits and 25 dB more at 16 bits for the last layer of the built-in network.

    Activations of the full 16 bits must be worse than the shared bits.
    """
    model = load_model("shapes")
    inputs = list(calibration_inputs(model.network, sample_pictures()[:2], model.fit))
    picture = np.rint(inputs[0] * 255).astype(np.uint8)
    ranges = {bits: calibrate(model.network, inputs, "mse", bits=min(bits, 12)) for bits in FORMATS}
    last = {
        bits: fidelity(model.network, quantise_format(model.network, ranges[bits], bits), picture)[-1].sqnr_db
        for bits in FORMATS
    }
    assert last[4] < 15 < 30 < last[8]
    assert last[16] > last[8] + 25
    greedy = quantise(model.network, ranges[16], bits=16, activation_bits=16)
    assert fidelity(model.network, greedy, picture)[-1].sqnr_db < last[16]
