"""Tests of bits per layer: the choices, by hand and by exhaustive search, and the quantised networks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from cnn.float_model import run_float
from cnn.integer_model import dequantise, run_integer
from cnn.maps import Shape
from cnn.network import Network
from cnn.ops import Concat, QConvolution
from cnn.quantisation import mixed
from cnn.quantisation.calibration import observe
from cnn.quantisation.mixed import (
    Bits,
    LayerBits,
    activation_bits,
    quantise_mixed,
    sensitivities,
    unbeaten_bits,
    uniform_bits,
    weighted,
)
from cnn.quantized import QuantizedNetwork
from tests.support import networks
from tests.support.cases import cases

FEW, WIDE, MOST = LayerBits(4, 4), LayerBits(4, 8), LayerBits(8, 8)
CHOICES = (FEW, WIDE, MOST)


@cases("seed", range(10))
def test_unbeaten_bits_equal_exhaustive_search(seed: int) -> None:
    """Compare with all 3⁵ choices: each result is the best of its cost, and the best within any cost is a result."""
    network, random = two_heads(), np.random.default_rng(seed)
    layers = weighted(network)
    losses = {layer: {MOST: 0.0, WIDE: float(random.random()), FEW: float(random.random())} for layer in layers}
    costs = {layer: {bits: float(random.integers(1, 9)) for bits in CHOICES} for layer in layers}

    def sums(bits: Sequence[LayerBits]) -> tuple[float, float]:
        pairs = list(zip(layers, bits, strict=True))
        return sum(costs[layer][each] for layer, each in pairs), sum(losses[layer][each] for layer, each in pairs)

    tried = [sums(bits) for bits in product(CHOICES, repeat=len(layers))]
    unbeaten = [sums([bits[layer] for layer in layers]) for bits in unbeaten_bits(network, losses, costs)]
    assert unbeaten == sorted(unbeaten)
    assert [loss for _, loss in unbeaten] == sorted((loss for _, loss in unbeaten), reverse=True)
    for cost in range(5, 41):
        within = [loss for total, loss in tried if total <= cost]
        kept = [loss for total, loss in unbeaten if total <= cost]
        assert (min(kept) if kept else None) == (pytest.approx(min(within)) if within else None)


def test_unbeaten_bits_keep_one_of_equal_choices() -> None:
    """Use costs and losses that occur twice. Nodes without weights keep the most bits."""
    network = two_heads()
    layers = weighted(network)
    losses = {layer: {MOST: 0.0, WIDE: 0.25, FEW: 0.25} for layer in layers}
    costs = {layer: {MOST: 3.0, WIDE: 1.0, FEW: 1.0} for layer in layers}
    choices = unbeaten_bits(network, losses, costs)
    assert [sum(bits[layer] == MOST for layer in layers) for bits in choices] == [0, 1, 2, 3, 4, 5]
    assert {bits[node] for bits in choices for node in (0, 4)} == {MOST}
    alike = {layer: {MOST: 1.0, FEW: 1.0} for layer in layers}
    assert unbeaten_bits(network, {layer: {MOST: 0.0, FEW: 0.5} for layer in layers}, alike) == (
        uniform_bits(network, MOST),
    )


def test_layer_has_weights_and_an_input_of_its_bits() -> None:
    network = networks.tiny_yolo()
    first, second, *_ = weighted(network)
    bits = tuple(FEW if node == second else MOST for node in range(len(network.nodes)))
    integers = quantise_mixed(network, observe(network, networks.pictures(network.input_shape, 2)), "mse", bits)
    for layer, count in ((first, 8), (second, 4)):
        op = integers.nodes[layer].op
        assert isinstance(op, QConvolution)
        assert op.weight_type.bits == count
    assert integers.nodes[integers.nodes[second].inputs[0]].type.datatype.bits == 4


# --- slow definitions, on three layers --------------------------------------------------------------------------------


def two_heads() -> Network:
    """Return a layer with two readers, a concat of both, and two heads: one reads the concat, one reads the second."""
    random = np.random.default_rng(3)
    return networks.network(
        Shape(3, 6, 5),
        ("first", networks.convolution(random, 3, 4), [0], Shape(4, 6, 5)),
        ("second", networks.convolution(random, 4, 3, kernel=1), [1], Shape(3, 6, 5)),
        ("third", networks.convolution(random, 4, 2), [1], Shape(2, 6, 5)),
        ("joined", Concat(), [2, 3], Shape(5, 6, 5)),
        ("last", networks.convolution(random, 5, 2, kernel=1), [4], Shape(2, 6, 5)),
        ("beside", networks.convolution(random, 3, 2, kernel=1), [2], Shape(2, 6, 5)),
    )


@cases(
    "bits, wanted",
    [
        ((8, 8, 8, 8, 8, 8, 8), (8, 8, 8, 8, 8, 8, 8)),
        ((8, 8, 8, 8, 8, 4, 8), (8, 8, 4, 4, 4, 8, 8)),  # the concat passes its reader's bits on to its inputs
        ((8, 8, 8, 8, 8, 8, 4), (8, 8, 4, 8, 8, 8, 8)),
        ((8, 8, 4, 8, 8, 8, 8), (8, 4, 8, 8, 8, 8, 8)),
        ((8, 8, 8, 5, 8, 6, 7), (8, 5, 6, 6, 6, 8, 8)),
        ((4, 3, 3, 3, 4, 2, 3), (3, 3, 2, 2, 2, 4, 4)),
    ],
)
def test_map_has_the_fewest_bits_of_its_readers(bits: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    assert activation_bits(two_heads(), tuple(LayerBits(2, count) for count in bits)) == wanted


def test_sensitivity_is_the_loss_of_the_heads_with_one_layer_at_fewer_bits() -> None:
    network = two_heads()
    pictures = [(255 * picture).astype(np.uint8) for picture in networks.pictures(network.input_shape, 2)]
    statistics = observe(network, [picture.astype(np.float32) / np.float32(255) for picture in pictures])
    asked: list[Bits] = []
    told: list[str] = []

    def quantised(bits: Bits) -> QuantizedNetwork:
        asked.append(bits)
        return quantise_mixed(network, statistics, "max", bits)

    losses = sensitivities(network, quantised, pictures, CHOICES, told.append)
    names = ["first", "second", "third", "last", "beside"]
    layers = [1, 2, 3, 5, 6]
    assert told == [
        f"trying fewer bits in {name}, {share}%" for name, share in zip(names, (0, 20, 40, 60, 80), strict=True)
    ]
    tried = [(layer, fewer) for layer in layers for fewer in (FEW, WIDE)]
    assert asked == [tuple(fewer if node == layer else MOST for node in range(7)) for layer, fewer in tried]
    assert [loss[MOST] for loss in losses.values()] == [0.0] * 5
    for (layer, fewer), bits in zip(tried, asked, strict=True):
        integers = quantise_mixed(network, statistics, "max", bits)
        shares = []
        for picture in pictures:
            floats = run_float(network, picture.astype(np.float32) / np.float32(255))
            outputs = run_integer(integers, picture)
            exact = [value for head in (5, 6) for value in floats[head].astype(np.float64).ravel()]
            whole = []
            for head in (5, 6):
                array = outputs[head]
                assert array is not None
                whole += list(dequantise(array, integers.nodes[head].type).ravel())
            shares.append(sum((a - b) ** 2 for a, b in zip(exact, whole, strict=True)) / sum(a * a for a in exact))
        assert losses[layer][fewer] == pytest.approx(sum(shares) / 2, rel=1e-5)
        assert 0 < losses[layer][fewer] < 1


def test_sensitivity_of_heads_without_energy_is_zero() -> None:
    network = two_heads()
    pictures = [(255 * picture).astype(np.uint8) for picture in networks.pictures(network.input_shape, 1)]
    statistics = observe(network, [picture.astype(np.float32) / np.float32(255) for picture in pictures])
    integers = quantise_mixed(network, statistics, "max", uniform_bits(network, MOST))
    nothing = [np.zeros_like(array) for array in run_float(network, pictures[0].astype(np.float32))]
    assert mixed._lost(integers, nothing, pictures[0]) == 0.0
