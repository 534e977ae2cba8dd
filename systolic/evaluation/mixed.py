"""Which bits each layer of a network gets, so that the pipeline of them keeps a share of the rate of 4 bits.

The rate is that of the folding search itself: 4 bits fold to the fewest cycles that fit the board; bits by layer must
fold to at most so many more. What a layer takes, the area of its blocks at that rate, only puts the choices in order.
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
    everywhere,
    quantise_mixed,
    sensitivities,
    unbeaten_bits,
    weighted,
)
from cnn.quantized import QuantizedNetwork
from scheduler.streaming import graph as g
from scheduler.streaming.lower import lower
from scheduler.streaming.search import exact
from scheduler.streaming.search.space import least_area
from systolic.styles.streaming.options import StreamingOptions

CHOICES = (LayerBits(4, 4), LayerBits(4, 8), LayerBits(8, 8))
"""That a layer has, the fewest first. Weights of 8 bits on inputs of 4 take more than the other way round, and lose
more."""

PICTURES = 4
"""That the sensitivity of a layer is measured on."""


@dataclass(frozen=True)
class Pipeline:
    """Whose rate is meant: the fastest folding on a board. clock_mhz: the board's highest where it is None. options:
    what the folding search may use, and how long it takes for each choice of bits."""

    board: Board
    clock_mhz: float | None = None
    options: StreamingOptions = field(default_factory=StreamingOptions)

    def fewest_cycles(self, network: QuantizedNetwork) -> int:
        """Return the fewest cycles per frame; raises the errors of ``least_cycles`` if nothing fits."""
        goal = replace(self.options, fps=None).goal(self.board, self._clock_mhz)
        return exact.least_cycles(lower(network), self.board, goal, self.options.choices, self.options.deadline)

    def keeps(self, network: QuantizedNetwork, cycles: int) -> bool:
        """Whether a folding was found that takes so many cycles a frame, or fewer."""
        goal = replace(replace(self.options, fps=None).goal(self.board, self._clock_mhz), cycles=cycles)
        return exact.keeps(lower(network), self.board, goal, self.options.choices, self.options.deadline)

    def layer_areas(self, network: QuantizedNetwork, cycles: int) -> dict[int, float]:
        """By node with weights, what its unit takes and the window that feeds it."""
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
        board = self.board
        return (board.clocks()[-1] if self.clock_mhz is None else board.nearest_clock(self.clock_mhz)).mhz


@dataclass(frozen=True, eq=False)
class Trial:
    """What integers are made and measured with. statistics, method: of calibration. pictures: at the network's input
    size, that losses are measured on. views: that weights are fitted to in the end; none where they are rounded."""

    statistics: Statistics
    method: str
    pictures: Pictures
    views: Pictures = ()


def quantise_for(
    network: Network, trial: Trial, share: float, pipeline: Pipeline, tell: Progress = silent
) -> QuantizedNetwork:
    """The integers that lose least of those whose pipeline keeps this share of the rate of 4 bits.

    RangeError for a share that is not above 0 and at most 1; the errors of ``least_cycles`` if not even 4 bits fit.
    """
    if not 0 < share <= 1:
        raise RangeError("--mixed, a share of the rate of 4 bits,", share, 0, 1, exclusive=True)
    bits = _chosen(network, trial, share, pipeline, tell)
    tell("making the integers of the chosen bits")
    return quantise_mixed(network, trial.statistics, trial.method, bits, trial.views)


def _chosen(network: Network, trial: Trial, share: float, pipeline: Pipeline, tell: Progress) -> Bits:
    def quantised(bits: Bits) -> QuantizedNetwork:
        return quantise_mixed(network, trial.statistics, trial.method, bits)

    tell(f"folding 4 bits on {pipeline.board.title}")
    cycles = int(pipeline.fewest_cycles(quantised(everywhere(network, CHOICES[0]))) / share)
    most = everywhere(network, CHOICES[-1])
    if pipeline.keeps(quantised(most), cycles):
        return most
    losses = sensitivities(network, quantised, trial.pictures, CHOICES, tell)
    areas = {choice: pipeline.layer_areas(quantised(everywhere(network, choice)), cycles) for choice in CHOICES}
    costs = {layer: {choice: areas[choice][layer] for choice in CHOICES} for layer in weighted(network)}
    choices = unbeaten_bits(network, losses, costs)
    low, high = 0, len(choices)
    while high - low > 1:
        tell(f"folding bits by layer, {high - low - 1} choices left")
        middle = (low + high) // 2
        low, high = (middle, high) if pipeline.keeps(quantised(choices[middle]), cycles) else (low, middle)
    return choices[low]
