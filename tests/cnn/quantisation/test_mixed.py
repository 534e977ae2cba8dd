"""Bits by layer: the best choice by hand and by trying all, and integers that have them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from boards.errors import QuantiseError
from cnn.float_model import run_float
from cnn.integer_model import dequantise, run_integer
from cnn.network import Concat, Network, Shape
from cnn.quantisation import mixed
from cnn.quantisation.calibration import observe
from cnn.quantisation.mixed import activation_bits, choose_bits, quantise_mixed, sensitivities, weighted
from cnn.quantized import QConvolution, QuantizedNetwork
from tests.cnn import networks


@pytest.mark.parametrize("seed", range(10))
def test_no_other_choice_within_the_cost_loses_less(seed: int) -> None:
    network, random = networks.tiny_yolo(), np.random.default_rng(seed)
    layers = weighted(network)
    losses = {layer: {8: 0.0, 4: float(random.random())} for layer in layers}
    costs = {layer: {8: float(random.integers(4, 9)), 4: float(random.integers(1, 4))} for layer in layers}
    most = sum(cost[4] for cost in costs.values()) * 1.5
    bits = choose_bits(network, losses, costs, most)
    tried = [
        sum(losses[layer][count] for layer, count in zip(layers, counts, strict=True))
        for counts in product((4, 8), repeat=len(layers))
        if sum(costs[layer][count] for layer, count in zip(layers, counts, strict=True)) <= most
    ]
    assert sum(losses[layer][bits[layer]] for layer in layers) == pytest.approx(min(tried))
    assert sum(costs[layer][bits[layer]] for layer in layers) <= most


def test_a_cost_that_no_choice_keeps_is_refused() -> None:
    network = networks.tiny_yolo()
    costs = {layer: {4: 2.0, 8: 4.0} for layer in weighted(network)}
    with pytest.raises(QuantiseError, match=r"no choice of bits costs 1 or less, the cheapest costs"):
        choose_bits(network, {layer: {4: 1.0, 8: 0.0} for layer in costs}, costs, 1.0)


def test_a_layer_has_weights_and_an_input_of_its_bits() -> None:
    network = networks.tiny_yolo()
    first, second, *_ = weighted(network)
    bits = tuple(4 if node == second else 8 for node in range(len(network.nodes)))
    integers = quantise_mixed(network, observe(network, networks.pictures(network.input_shape, 2)), "mse", bits)
    for layer, count in ((first, 8), (second, 4)):
        op = integers.nodes[layer].op
        assert isinstance(op, QConvolution)
        assert op.weight_type.bits == count
    assert integers.nodes[integers.nodes[second].inputs[0]].type.datatype.bits == 4


# --- by slow definitions, on three layers -----------------------------------------------------------------------------


def two_heads() -> Network:
    """A layer, two that read it, and both joined: the second's map leaves beside the joined ones."""
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


@pytest.mark.parametrize(
    ("bits", "wanted"),
    [
        ((8, 8, 8, 8, 8, 8, 8), (8, 8, 8, 8, 8, 8, 8)),
        ((8, 8, 8, 8, 8, 4, 8), (8, 8, 4, 4, 4, 8, 8)),  # what joins passes on what its reader takes
        ((8, 8, 8, 8, 8, 8, 4), (8, 8, 4, 8, 8, 8, 8)),
        ((8, 8, 4, 8, 8, 8, 8), (8, 4, 8, 8, 8, 8, 8)),
        ((8, 8, 8, 5, 8, 6, 7), (8, 5, 6, 6, 6, 8, 8)),
        ((4, 3, 3, 3, 4, 2, 3), (3, 3, 2, 2, 2, 4, 4)),
    ],
)
def test_a_map_has_the_fewest_bits_that_a_reader_takes(bits: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    assert activation_bits(two_heads(), bits) == wanted


def test_a_layer_loses_what_the_heads_do_with_it_alone_at_fewer_bits() -> None:
    network = two_heads()
    pictures = [(255 * picture).astype(np.uint8) for picture in networks.pictures(network.input_shape, 2)]
    statistics = observe(network, [picture.astype(np.float32) / np.float32(255) for picture in pictures])
    asked: list[tuple[int, ...]] = []
    told: list[str] = []

    def quantised(bits: tuple[int, ...]) -> QuantizedNetwork:
        asked.append(bits)
        return quantise_mixed(network, statistics, "max", bits)

    losses = sensitivities(network, quantised, pictures, (4, 8), told.append)
    names = ["first", "second", "third", "last", "beside"]
    layers = [1, 2, 3, 5, 6]
    assert told == [
        f"trying fewer bits in {name}, {share}%" for name, share in zip(names, (0, 20, 40, 60, 80), strict=True)
    ]
    assert asked == [tuple(4 if node == layer else 8 for node in range(7)) for layer in layers]
    assert [loss[8] for loss in losses.values()] == [0.0] * 5
    for layer, bits in zip(layers, asked, strict=True):
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
        assert losses[layer] == {8: 0.0, 4: pytest.approx(sum(shares) / 2, rel=1e-5)}
        assert 0 < losses[layer][4] < 1


def test_heads_without_energy_lose_nothing() -> None:
    network = two_heads()
    pictures = [(255 * picture).astype(np.uint8) for picture in networks.pictures(network.input_shape, 1)]
    statistics = observe(network, [picture.astype(np.float32) / np.float32(255) for picture in pictures])
    integers = quantise_mixed(network, statistics, "max", (8,) * 7)
    nothing = [np.zeros_like(array) for array in run_float(network, pictures[0].astype(np.float32))]
    assert mixed._lost(integers, nothing, pictures[0]) == 0.0


def test_of_choices_that_are_as_good_any_is_taken_within_the_cost() -> None:
    """Every cost and loss comes twice; a cost that is the limit itself is within it, to rounding."""
    network = two_heads()
    layers = weighted(network)
    losses = {layer: {8: 0.0, 6: 0.25, 4: 0.25} for layer in layers}
    costs = {layer: {8: 0.3, 6: 0.1, 4: 0.1} for layer in layers}
    bits = choose_bits(network, losses, costs, 0.3 * 2 + 0.1 * 3)
    assert sorted(losses[layer][bits[layer]] for layer in layers) == [0.0, 0.0, 0.25, 0.25, 0.25]
    assert [bits[node] for node in (0, 4)] == [8, 8]
    assert choose_bits(network, losses, costs, 0.5)[1:4] in {(a, b, c) for a in (4, 6) for b in (4, 6) for c in (4, 6)}
    cheap = {layer: {8: 0.1, 4: 0.1} for layer in layers}
    assert choose_bits(network, {layer: {8: 0.0, 4: 0.5} for layer in layers}, cheap, 0.5) == (8,) * 7
    with pytest.raises(QuantiseError, match=r"costs 0.4 or less, the cheapest costs 0.5; allow more"):
        choose_bits(network, losses, costs, 0.4)
