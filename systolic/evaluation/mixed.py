"""The choice of 4 or 8 bits per layer, so that a pipeline keeps a given share of its all-4-bit frame rate.

The folding search decides. First it finds the fewest cycles per frame to which the all-4-bit pipeline folds on the
board. These cycles divided by the share are the limit for every mixed choice. The area of a layer's blocks at this
limit only sorts the choices.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from boards.board import Board
from boards.errors import RangeError
from boards.progress import Progress, silent
from cnn.network import Network
from cnn.quantisation.calibration import Statistics
from cnn.quantisation.mixed import (
    Bits,
    LayerBits,
    Pictures,
    quantise_mixed,
    sensitivities,
    unbeaten_bits,
    uniform_bits,
    weighted,
)
from cnn.quantized import QuantizedNetwork
from scheduler.streaming import graph as g
from scheduler.streaming.lower import lower
from scheduler.streaming.search import exact
from scheduler.streaming.search.space import least_area
from systolic.styles.streaming.options import StreamingOptions

CHOICES = (LayerBits(4, 4), LayerBits(4, 8), LayerBits(8, 8))
"""The bits that a layer can have, the cheapest first. 8-bit weights on 4-bit inputs are not a choice, because they cost
more area and lose more accuracy than 4-bit weights on 8-bit inputs."""

PICTURES = 4
"""The number of images on which the sensitivity of a layer is measured."""


@dataclass(frozen=True)
class Pipeline:
    """The board, clock and folding options of the streaming pipeline whose frame rate mixed precision must keep.

    Attributes:
        board: The board.
        clock_mhz: The clock in MHz. None means the board's target clock.
        options: The limits of the folding search, with its time limit for each choice of bits.
    """

    board: Board
    clock_mhz: float | None = None
    options: StreamingOptions = field(default_factory=StreamingOptions)

    def fewest_cycles(self, network: QuantizedNetwork) -> int:
        """Return the cycles per frame of the fastest folding of this network that fits the board.

        Raises:
            SystolicError: An error of ``least_cycles``, if no folding fits the board.
        """
        goal = replace(self.options, fps=None).goal(self.board, self._clock_mhz)
        return exact.least_cycles(lower(network), self.board, goal, self.options.choices, self.options.deadline)

    def keeps(self, network: QuantizedNetwork, cycles: int) -> bool:
        """Return whether a folding of this network with at most ``cycles`` cycles per frame fits the board."""
        goal = replace(replace(self.options, fps=None).goal(self.board, self._clock_mhz), cycles=cycles)
        return exact.has_folding(lower(network), self.board, goal, self.options.choices, self.options.deadline)

    def layer_areas(self, network: QuantizedNetwork, cycles: int) -> dict[int, float]:
        """Return {node: area} of each layer with weights: the least area at this limit of cycles per frame.

        The area is the sum of the layer's compute block and of the sliding window that feeds the block, if any.
        """
        graph = lower(network)
        areas: dict[int, float] = {}
        for index, block in enumerate(graph.blocks):
            if isinstance(block.op, (g.MatrixVector, g.VectorVector)) and block.node is not None:
                before = block.inputs[0].block
                blocks = (before, index) if isinstance(graph.blocks[before].op, g.Window) else (index,)
                areas[block.node] = sum(
                    least_area(graph, each, self.board, self.options.choices, cycles) for each in blocks
                )
        return areas

    @property
    def _clock_mhz(self) -> float:
        return self.board.design_clock(self.clock_mhz).mhz


@dataclass(frozen=True, eq=False)
class Trial:
    """The calibration data with which each choice of bits per layer is quantised and its loss is measured.

    Attributes:
        statistics: The statistics of activations that the calibration measured.
        method: The calibration method.
        pictures: The images that losses are measured on, at the network's input size.
        views: The images to which the weights of the final choice are fitted. Empty if weights are only rounded.
    """

    statistics: Statistics
    method: str
    pictures: Pictures
    views: Pictures = ()


def quantise_for(
    network: Network, trial: Trial, share: float, pipeline: Pipeline, progress: Progress = silent
) -> QuantizedNetwork:
    """Quantise the network with the 4 or 8 bits per layer that lose the least accuracy at the required frame rate.

    Args:
        network: The float network.
        trial: The calibration data.
        share: The fraction of the all-4-bit frame rate that the pipeline must reach.
        pipeline: The board, clock and options of the folding search.

    Raises:
        RangeError: The share is not above 0 and at most 1.
        SystolicError: An error of ``least_cycles``, if not even 4 bits in all layers fit the board.
    """
    if not 0 < share <= 1:
        raise RangeError("--mixed, a share of the rate of 4 bits,", share, 0, 1, exclusive=True)
    bits = _chosen(network, trial, share, pipeline, progress)
    progress("making the integers of the chosen bits")
    return quantise_mixed(network, trial.statistics, trial.method, bits, trial.views)


def _chosen(network: Network, trial: Trial, share: float, pipeline: Pipeline, progress: Progress) -> Bits:
    def quantised(bits: Bits) -> QuantizedNetwork:
        return quantise_mixed(network, trial.statistics, trial.method, bits)

    progress(f"folding 4 bits on {pipeline.board.title}")
    cycles = int(pipeline.fewest_cycles(quantised(uniform_bits(network, CHOICES[0]))) / share)
    most = uniform_bits(network, CHOICES[-1])
    if pipeline.keeps(quantised(most), cycles):
        return most
    losses = sensitivities(network, quantised, trial.pictures, CHOICES, progress)
    areas = {choice: pipeline.layer_areas(quantised(uniform_bits(network, choice)), cycles) for choice in CHOICES}
    costs = {layer: {choice: areas[choice][layer] for choice in CHOICES} for layer in weighted(network)}
    choices = unbeaten_bits(network, losses, costs)
    low, high = 0, len(choices)
    while high - low > 1:
        progress(f"folding bits by layer, {high - low - 1} choices left")
        middle = (low + high) // 2
        low, high = (middle, high) if pipeline.keeps(quantised(choices[middle]), cycles) else (low, middle)
    return choices[low]
