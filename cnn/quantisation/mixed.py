"""Mixed precision: how many bits each layer gets, so that as little as possible is lost at a given cost.

A layer has bits of its weights and of the input that it reads (the picture keeps its 8). What it loses is measured with
that layer alone at fewer bits and all others at the most: the energy of the error at the heads. Errors of layers add up
nearly as if they were independent, so the sum over the layers is what is minimised. Of all choices those are found that
no other one beats in both cost and loss, by dynamic programming whose states are just these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from boards.progress import Progress, ProgressStep, silent
from cnn.float_model import run_float
from cnn.integer_model import dequantise, run_integer
from cnn.network import Network
from cnn.ops import Convolution, Dense
from cnn.quantisation.calibration import Statistics, ranges_by_bits
from cnn.quantisation.fidelity import heads
from cnn.quantisation.quantise import quantise
from cnn.quantized import QuantizedNetwork

Pictures = Sequence[npt.NDArray[np.uint8]]


@dataclass(frozen=True, order=True)
class LayerBits:
    """Of a layer's weights, and of the input that it reads."""

    weights: int
    inputs: int


Bits = tuple[LayerBits, ...]
"""Of every node. Nodes without weights take what comes."""

Losses = Mapping[int, Mapping[LayerBits, float]]
"""By layer, by bits: what the heads lose."""

Costs = Mapping[int, Mapping[LayerBits, float]]
"""By layer, by bits: what the layer takes."""


def weighted(network: Network) -> tuple[int, ...]:
    """Nodes that have weights."""
    return tuple(i for i, node in enumerate(network.nodes) if isinstance(node.op, (Convolution, Dense)))


def everywhere(network: Network, bits: LayerBits) -> Bits:
    """The same in all layers."""
    return (bits,) * len(network.nodes)


def quantise_mixed(
    network: Network, statistics: Statistics, method: str, bits: Bits, pictures: Pictures = ()
) -> QuantizedNetwork:
    """The integer network of these bits, every range chosen for its own. pictures: what weights are fitted to.

    Errors as of ``quantise``.
    """
    values = activation_bits(network, bits)
    ranges = ranges_by_bits(statistics, method, values)
    weights = tuple(each.weights for each in bits)
    return quantise(network, ranges, bits=weights, activation_bits=values, pictures=pictures)


def activation_bits(network: Network, bits: Bits) -> tuple[int, ...]:
    """Of every node's output: the fewest that one of its readers takes; the most there are where none has weights."""
    values = [max(each.inputs for each in bits)] * len(network.nodes)
    for index in weighted(network):
        for source in network.nodes[index].inputs:
            values[source] = min(values[source], bits[index].inputs)
    for index, node in reversed(tuple(enumerate(network.nodes))):
        for source in node.inputs if node.op.passes_on else ():
            values[source] = min(values[source], values[index])
    return tuple(values)


def sensitivities(
    network: Network,
    quantised: Callable[[Bits], QuantizedNetwork],
    pictures: Pictures,
    choices: Sequence[LayerBits],
    progress: Progress = silent,
) -> dict[int, dict[LayerBits, float]]:
    """By layer and bits, the share of the heads' energy that is lost where this layer alone has so many; all others
    have the last of ``choices``, the most.

    quantised: makes the integers. pictures: uint8 [channels, height, width]. progress: told which layer is tried.
    """
    exact = [run_float(network, picture.astype(np.float32) / np.float32(255)) for picture in pictures]
    layers, most = weighted(network), choices[-1]
    losses: dict[int, dict[LayerBits, float]] = {}
    for layer in layers:
        progress(ProgressStep(f"trying fewer bits in {network.nodes[layer].name}", layers.index(layer), len(layers)))
        losses[layer] = {most: 0.0}
        for fewer in choices[:-1]:
            integers = quantised(tuple(fewer if node == layer else most for node in range(len(network.nodes))))
            losses[layer][fewer] = sum(
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


def unbeaten_bits(network: Network, losses: Losses, costs: Costs) -> tuple[Bits, ...]:
    """All choices that no other one beats in the sums of both costs and losses, the cheapest first."""
    states: list[_State] = [(0.0, 0.0, {})]
    for layer in weighted(network):
        grown = [
            (cost + costs[layer][choice], loss + losses[layer][choice], {**bits, layer: choice})
            for cost, loss, bits in states
            for choice in costs[layer]
        ]
        states = _unbeaten(grown)
    most = max(choice for cost in costs.values() for choice in cost)
    return tuple(tuple(bits.get(node, most) for node in range(len(network.nodes))) for _, _, bits in states)


_State = tuple[float, float, dict[int, LayerBits]]
"""Cost and loss so far, and the bits of the layers so far."""


def _unbeaten(states: list[_State]) -> list[_State]:
    """Without those that cost as much as another one that loses no more."""
    front: list[_State] = []
    for state in sorted(states, key=lambda state: state[:2]):
        if not front or state[1] < front[-1][1]:
            front.append(state)
    return front
