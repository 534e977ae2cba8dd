"""Bits by layer: the best choice by hand and by trying all, and integers that have them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from boards.errors import QuantiseError
from cnn.quantisation.calibration import observe
from cnn.quantisation.mixed import choose_bits, quantise_mixed, weighted
from cnn.quantized import QConvolution
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
