"""Mixed precision: how many bits each layer gets, so that as little as possible is lost at a given cost.

A layer of b bits has weights of b bits and reads an input of b bits (the picture keeps its 8). What it loses is
measured with that layer alone at b bits and all others at the most: the energy of the error at the heads. Errors of
layers add up nearly as if they were independent, so the sum over the layers is what is minimised; over all choices, by
dynamic programming whose states are the sums that no other one beats in both cost and loss.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from boards.errors import QuantiseError
from cnn.float_model import run_float
from cnn.integer_model import dequantise, run_integer
from cnn.network import Convolution, Dense, Network
from cnn.quantisation.calibration import Ranges, Statistics, choose_ranges
from cnn.quantisation.fidelity import heads
from cnn.quantisation.quantise import quantise
from cnn.quantisation.tensor_types import PASSES_ON
from cnn.quantized import QuantizedNetwork

Pictures = Sequence[npt.NDArray[np.uint8]]
Bits = tuple[int, ...]
"""Of every node: of its weights, and of the input that it reads. Nodes without weights take what comes."""

Losses = Mapping[int, Mapping[int, float]]
"""By layer, by bits: what the heads lose."""

Costs = Mapping[int, Mapping[int, float]]
"""By layer, by bits: what the layer takes."""


def weighted(network: Network) -> tuple[int, ...]:
    """Nodes that have weights."""
    return tuple(i for i, node in enumerate(network.nodes) if isinstance(node.op, (Convolution, Dense)))


def quantise_mixed(
    network: Network, statistics: Statistics, method: str, bits: Bits, pictures: Pictures = ()
) -> QuantizedNetwork:
    """The integer network of these bits, every range chosen for its own. pictures: what weights are fitted to.

    Raises QuantiseError as ``quantise`` does.
    """
    values = activation_bits(network, bits)
    by_bits = {count: choose_ranges(statistics, method, bits=count) for count in set(values)}
    ranges = Ranges(
        method,
        tuple(by_bits[count].values[i] for i, count in enumerate(values)),
        next(iter(by_bits.values())).greatest,
    )
    return quantise(network, ranges, bits=bits, activation_bits=values, pictures=pictures)


def activation_bits(network: Network, bits: Bits) -> Bits:
    """Of every node's output: the fewest that one of its readers takes; the most there are where none has weights."""
    values = [max(bits)] * len(network.nodes)
    for index in weighted(network):
        for source in network.nodes[index].inputs:
            values[source] = min(values[source], bits[index])
    for index, node in reversed(tuple(enumerate(network.nodes))):
        for source in node.inputs if isinstance(node.op, PASSES_ON) else ():
            values[source] = min(values[source], values[index])
    return tuple(values)


def sensitivities(
    network: Network,
    quantised: Callable[[Bits], QuantizedNetwork],
    pictures: Pictures,
    choices: Sequence[int],
    progress: Callable[[str], None] = lambda _: None,
) -> dict[int, dict[int, float]]:
    """By layer and bits, the share of the heads' energy that is lost where this layer alone has so many.

    quantised: makes the integers. pictures: uint8 [channels, height, width]. progress: told which layer is tried.
    """
    exact = [run_float(network, picture.astype(np.float32) / np.float32(255)) for picture in pictures]
    layers, most = weighted(network), max(choices)
    losses: dict[int, dict[int, float]] = {}
    for layer in layers:
        progress(f"trying fewer bits in {network.nodes[layer].name}, {layers.index(layer) / len(layers):.0%}")
        losses[layer] = {most: 0.0}
        for count in set(choices) - {most}:
            bits = tuple(count if node == layer else most for node in range(len(network.nodes)))
            integers = quantised(bits)
            losses[layer][count] = sum(
                _lost(integers, floats, picture) for floats, picture in zip(exact, pictures, strict=True)
            ) / len(pictures)
    return losses


def _lost(
    integers: QuantizedNetwork, floats: Sequence[npt.NDArray[np.float32]], picture: npt.NDArray[np.uint8]
) -> float:
    """Σ error² / Σ float² over the heads."""
    outputs = run_integer(integers, picture)
    noise = signal = 0.0
    for head in heads(integers):
        array = outputs[head]
        assert array is not None
        approximate = dequantise(array, integers.nodes[head].type)
        noise += float(np.sum((floats[head].astype(np.float64) - approximate) ** 2))
        signal += float(np.sum(floats[head].astype(np.float64) ** 2))
    return noise / signal if signal else 0.0


def choose_bits(network: Network, losses: Losses, costs: Costs, most_cost: float) -> Bits:
    """The bits whose losses sum up to the least, of all whose costs sum up to at most ``most_cost``.

    QuantiseError where even the cheapest cost more.
    """
    states: list[tuple[float, float, dict[int, int]]] = [(0.0, 0.0, {})]
    for layer in weighted(network):
        grown = [
            (cost + costs[layer][count], loss + losses[layer][count], {**bits, layer: count})
            for cost, loss, bits in states
            for count in costs[layer]
        ]
        states = _unbeaten(grown, most_cost)
    if not states:
        cheapest = sum(min(cost.values()) for cost in costs.values())
        raise QuantiseError(
            f"no choice of bits costs {most_cost:g} or less, the cheapest costs {cheapest:g}; allow more"
        )
    _, _, bits = min(states, key=lambda state: (state[1], state[0]))
    most = max(count for cost in costs.values() for count in cost)
    return tuple(bits.get(node, most) for node in range(len(network.nodes)))


def _unbeaten(
    states: list[tuple[float, float, dict[int, int]]], most_cost: float
) -> list[tuple[float, float, dict[int, int]]]:
    """Without those that cost too much, or as much as another one that loses no more."""
    front: list[tuple[float, float, dict[int, int]]] = []
    for state in sorted(states, key=lambda state: state[:2]):
        if state[0] <= most_cost * (1 + 1e-9) and (not front or state[1] < front[-1][1]):
            front.append(state)
    return front
