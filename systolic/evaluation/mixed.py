"""Which bits each layer of a network gets, by what the streaming style pays for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from boards.errors import QuantiseError
from cnn.network import Network, macs
from cnn.quantisation.calibration import Statistics
from cnn.quantisation.mixed import Bits, Pictures, choose_bits, quantise_mixed, sensitivities, weighted
from cnn.quantized import QuantizedNetwork
from scheduler.streaming.area.packing import Operands, Unrolling, dsps

CHOICES = (4, 8)
"""Bits that a layer may have."""

PICTURES = 4
"""That the sensitivity of a layer is measured on."""

_DSP = "DSP48E2"
_SQUARE = Unrolling(pe=2, simd=1, pixels=2)  # in which a DSP does most: four products of 4 bits


def layer_costs(network: Network) -> dict[int, dict[int, float]]:
    """By layer and bits, DSPs times cycles of a frame: what a pipeline of a given rate needs, or how long it takes."""
    costs: dict[int, dict[int, float]] = {}
    for layer in weighted(network):
        node = network.nodes[layer]
        of_picture = node.inputs[0] == 0
        operands = {bits: Operands(bits, 8 if of_picture else bits, not of_picture) for bits in CHOICES}
        costs[layer] = {
            bits: macs(node) * dsps(_SQUARE, values, _DSP, "dsp") / _SQUARE.products
            for bits, values in operands.items()
        }
    return costs


@dataclass(frozen=True, eq=False)
class Trial:
    """What integers are made and measured with. statistics, method: of calibration. pictures: at the network's input
    size, that losses are measured on. views: that weights are fitted to in the end; none where they are rounded."""

    statistics: Statistics
    method: str
    pictures: Pictures
    views: Pictures = ()


def quantise_for(
    network: Network, trial: Trial, share: float, tell: Callable[[str], None] = lambda _: None
) -> QuantizedNetwork:
    """The integers that lose least of those that keep this share of the rate of 4 bits.

    QuantiseError for a share that is not 0…1.
    """
    if not 0 < share <= 1:
        raise QuantiseError(f"mixed precision keeps a share above 0 and at most 1 of the rate of 4 bits, not {share:g}")
    costs = layer_costs(network)
    cheapest = sum(cost[min(CHOICES)] for cost in costs.values())

    def quantised(bits: Bits) -> QuantizedNetwork:
        return quantise_mixed(network, trial.statistics, trial.method, bits)

    losses = sensitivities(network, quantised, trial.pictures, CHOICES, tell)
    bits = choose_bits(network, losses, costs, cheapest / share)
    tell("making the integers of the chosen bits")
    return quantise_mixed(network, trial.statistics, trial.method, bits, trial.views)
