"""Tests of seeded numbers: they are the same on every machine, and no layer's values vanish or saturate."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from boards.errors import RangeError
from cnn.exported.network import make_exported
from cnn.exported.seed import MAX_SEED, seeded_arrays
from cnn.exported.topology import Topology
from cnn.exported.topology_file import parse_topology
from cnn.integer_model import run_integer
from cnn.ops import QAveragePool
from cnn.requantise import MultiplyShift
from tests.support.errors import raises
from tests.support.exported import convolution, described
from tests.support.kinds import as_kind

KINDS = ((8, "unit"), (1, "symmetric"), (2, "symmetric"), (1, "unit"))


def two_convolutions(output_bits: int, activation: str, *between: str) -> Topology:
    """Return a convolution of the given kind, pools of the given kinds, and a 1×1 convolution with one weight per
    filter.

    A max pool is 2×2. An average pool covers the whole map.
    """
    pools = [
        {"type": "max_pool", "size": 2} if kind == "max" else {"type": "average_pool", "name": "mean"}
        for kind in between
    ]
    first = convolution(16, padding=1, output_bits=output_bits, activation=activation)
    last = convolution(64, 1, groups=16, output_bits=4)
    return parse_topology(json.dumps(described(first, *pools, last, requantise="thresholds")), "net.json")


# Mean and standard deviation that the generator assumes of a layer's input values, by the layers that produce them.
VALUES = {
    (): {(8, "unit"): (0.33, 0.3), (1, "symmetric"): (0, 1), (2, "symmetric"): (0, 0.75), (1, "unit"): (0.33, 0.3)},
    ("max",): {
        (8, "unit"): (0.33, 0.3),
        (1, "symmetric"): (0.6, 0.7),
        (2, "symmetric"): (0.6, 0.7),
        (1, "unit"): (0.33, 0.3),
    },
    ("average",): {
        (8, "unit"): (0.33, 0.15),
        (1, "symmetric"): (0, 0.5),
        (2, "symmetric"): (0, 0.375),
        (1, "unit"): (0.33, 0.15),
    },
}


@pytest.mark.parametrize("between", VALUES)
@pytest.mark.parametrize("kind", KINDS)
def test_batch_norm_fits_the_mean_and_spread_of_its_sums(kind: tuple[int, str], between: tuple[str, ...]) -> None:
    """Use filters with one weight w, in steps of 1/7 (4 bits), so that a sum is w · x.

    The mean may differ by less than a third of the spread, and the variance by 30 to 40 per cent.
    """
    middle, spread = VALUES[between][kind]
    topology = two_convolutions(*kind, *between)
    arrays = seeded_arrays(topology, 1)
    kernel = topology.kernels[-1][1]
    assert kernel.weights == (64, 1, 1, 1)
    weights = np.tanh(arrays["conv1_w"].ravel().astype(float))
    steps = np.round(7 * weights / np.abs(weights).max())
    found = arrays["bn1_mean"], arrays["bn1_var"]
    for step, mean, variance in zip(steps, *found, strict=True):
        wanted = max(abs(step), 1) * spread / 7
        assert 0.7 * wanted**2 * 0.999 <= variance <= 1.4 * wanted**2 * 1.001
        assert abs(mean - step * middle / 7) <= 0.3001 * wanted
    off = (found[0] - steps * middle / 7) / (np.maximum(np.abs(steps), 1) * spread / 7)
    assert off.min() < -0.2
    assert off.max() > 0.2


def test_channels_of_the_image_are_assumed_correlated() -> None:
    topology = parse_topology(json.dumps(described(convolution(64, 1), requantise="thresholds")), "net.json")
    arrays = seeded_arrays(topology, 3)
    weights = np.tanh(arrays["conv0_w"].reshape(64, 3).astype(float))
    steps = np.round(7 * weights / np.abs(weights).max())
    wanted = np.sqrt(np.maximum((steps**2).sum(1), 1)) * 0.12 / 7
    assert (np.abs(arrays["bn0_mean"] - steps.sum(1) * 0.45 / 7) <= 0.3001 * wanted).all()
    assert (arrays["bn0_var"] <= 1.4001 * wanted**2).all()
    assert (arrays["bn0_var"] >= 0.6999 * wanted**2).all()


@pytest.mark.parametrize("kind", KINDS)
def test_gains_have_both_signs_and_double_size_for_symmetric_activations(kind: tuple[int, str]) -> None:
    arrays = seeded_arrays(two_convolutions(*kind), 5)
    factor, lower = (1, 0.0) if kind[1] == "unit" else (2, 0.3)
    sizes = np.abs(arrays["bn0_gamma"]) / factor
    assert 0.25 <= sizes.min() < sizes.max() <= 0.45
    assert {-1.0, 1.0} == set(np.sign(arrays["bn0_gamma"]))
    shifts = arrays["bn0_beta"] + lower
    assert 0.1499 <= shifts.min() < shifts.max() <= 0.4501


@pytest.mark.parametrize(("channels", "kernel"), [(3, 3), (3, 1), (1, 1), (1, 2)])
def test_filters_have_mean_0_unless_they_have_one_weight(channels: int, kernel: int) -> None:
    """Expect sums of two integers from −127 to 127, divided by 127.

    The values stay below 4 even after the mean is subtracted.
    """
    topology = parse_topology(
        json.dumps(described(convolution(400, kernel), input={"channels": channels, "height": 12, "width": 20})),
        "net.json",
    )
    weights = seeded_arrays(topology, 2)["conv0_w"].reshape(400, -1).astype(float)
    fan = channels * kernel**2
    assert np.abs(weights).max() < 4
    if fan == 1:
        drawn = weights * 127
        assert (np.abs(drawn - np.round(drawn)) < 1e-4).all()
        assert abs(weights.mean()) < 0.15
        assert (weights.min(), weights.max()) == pytest.approx((-2, 2), abs=0.3)
        return
    assert np.abs(weights.sum(1)).max() < 1e-5 * fan
    assert weights.std() == pytest.approx(math.sqrt(2 * (255**2 - 1) / 12 * (1 - 1 / fan)) / 127, rel=0.06)


def test_last_layer_has_biases_below_one() -> None:
    last = {"type": "convolution", "filters": 500, "kernel": 1, "weight_bits": 4, "name": "sums"}
    arrays = seeded_arrays(parse_topology(json.dumps(described(convolution(), last)), "net.json"), 4)
    assert -1 <= arrays["conv1_b"].min() < -0.9
    assert 0.4 < arrays["conv1_b"].max() <= 0.5


def test_seed_gives_recorded_numbers() -> None:
    """Compare with recorded numbers. PCG64 and float32 arithmetic give the same results on every machine."""
    arrays = seeded_arrays(two_convolutions(2, "symmetric", "max"), 9)
    assert arrays["conv0_w"].ravel()[:4].tolist() == pytest.approx(
        [-0.6972879, -1.2799650, -0.4059493, 0.2869641], rel=1e-6
    )
    for seed in (0, MAX_SEED):
        assert seeded_arrays(two_convolutions(8, "unit"), seed)["conv0_w"].shape == (16, 3, 3, 3)
    for seed in (-1, MAX_SEED + 1):
        with raises(RangeError, what="the seed", got=seed, low=0, high=MAX_SEED):
            seeded_arrays(two_convolutions(8, "unit"), seed)


def test_average_pool_multiplier_is_the_inverse_of_the_positions() -> None:
    """Expect a multiplier of 15 bits and no bias, so that the result is within half a step and 2⁻¹⁴ of the mean."""
    network = make_exported(
        *(lambda topology: (topology, seeded_arrays(topology, 6)))(two_convolutions(8, "unit", "average"))
    )
    (node,) = (node for node in network.quantized.nodes if isinstance(node.op, QAveragePool))
    requantiser = as_kind(MultiplyShift, as_kind(QAveragePool, node.op).requantiser)
    positions = 12 * 20
    assert requantiser.shift.tolist() == [14 + positions.bit_length()] * 16
    assert requantiser.multiplier.tolist() == [round((1 << (14 + positions.bit_length())) / positions)] * 16
    assert requantiser.bias.tolist() == [0] * 16
    picture = np.random.default_rng(1).integers(0, 256, (3, 12, 20), np.uint8)
    outputs = run_integer(network.quantized, picture)
    place = network.quantized.nodes.index(node)
    means = np.asarray(outputs[node.inputs[0]], np.float64).mean(axis=(1, 2))
    assert np.abs(np.asarray(outputs[place]).ravel() - means).max() <= 0.5 + 255 * 2**-14
