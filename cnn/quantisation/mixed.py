"""Mixed precision: the bits of each layer that lose as little as possible at a given cost.

A layer has bits for its weights and bits for its input; the picture always has 8. The loss of a layer is measured with
fewer bits in that layer only and the most bits in all others. It is the energy of the error at the heads. Errors of
layers add up nearly as if they were independent, so the sum over the layers is minimised. Dynamic programming finds all
choices that no other choice beats in both cost and loss; its states are the unbeaten choices so far.
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
    """The bit widths of a layer: the bits of its weights, and of its input's values."""

    weights: int
    inputs: int


Bits = tuple[LayerBits, ...]
"""The bits of every node. The entry of a node without weights has no effect."""

Losses = Mapping[int, Mapping[LayerBits, float]]
"""The loss at the heads by node index and bits: the share of the heads' energy that is error."""

Costs = Mapping[int, Mapping[LayerBits, float]]
"""The cost of a layer by node index and bits, in the caller's unit."""


def weighted(network: Network) -> tuple[int, ...]:
    """Return the indices of the nodes that have weights."""
    return tuple(i for i, node in enumerate(network.nodes) if isinstance(node.op, (Convolution, Dense)))


def uniform_bits(network: Network, bits: LayerBits) -> Bits:
    """Return ``bits``, the widths of weights and input, once for each node of the network."""
    return (bits,) * len(network.nodes)


def quantise_mixed(
    network: Network, statistics: Statistics, method: str, bits: Bits, pictures: Pictures = ()
) -> QuantizedNetwork:
    """Return the integer network with the given bit widths per node, and with every range chosen for its width.

    Raises the errors of ``quantise``.

    Args:
        network: The float network.
        statistics: The observed values of the network.
        method: The method by which ranges are chosen.
        bits: The bits of each node.
        pictures: The pictures that weights are fitted to; none rounds weights to the nearest integer.
    """
    values = activation_bits(network, bits)
    ranges = ranges_by_bits(statistics, method, values)
    weights = tuple(each.weights for each in bits)
    return quantise(network, ranges, bits=weights, activation_bits=values, pictures=pictures)


def activation_bits(network: Network, bits: Bits) -> tuple[int, ...]:
    """Return the bit width of every node's output: the least width that a reading layer has for its input.

    An output that no layer with weights reads gets the most bits that any layer has.
    """
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
    """Return, per layer and choice of bits for it alone, the share of the outputs' energy that becomes error.

    Only this layer has fewer bits, and all others have the most.

    Args:
        network: The float network.
        quantised: Returns the integer network for the bits of each node.
        pictures: uint8 [channels, height, width] each.
        choices: The bits to try, in ascending order; the last ones are the most.
        progress: Receives which layer is tried.
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
    """Return the error of the accelerator's outputs for one image as a share of their energy: Σ error² / Σ float²."""
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
    """Return the Pareto front of bit widths over total cost and total loss, the cheapest first."""
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
"""Total cost and total loss so far, and the bits of the layers so far."""


def _unbeaten(states: list[_State]) -> list[_State]:
    """Return the Pareto front of partial choices: those for which no other costs no more and loses no more."""
    front: list[_State] = []
    for state in sorted(states, key=lambda state: state[:2]):
        if not front or state[1] < front[-1][1]:
            front.append(state)
    return front
