"""Small streaming designs for the tests: a network, its folding, and the generated folder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from boards.board import Board, load
from cnn.maps import Padding
from cnn.quantized import QuantizedNetwork
from scheduler.streaming import graph as g
from scheduler.streaming.lower import lower
from scheduler.streaming.result import Goal
from scheduler.streaming.search import exact
from scheduler.streaming.search.candidates import Options
from systolic.files import write
from systolic.model import DesignInputs
from systolic.styles.streaming.generation.generate import FoldedNetwork, generate
from systolic.styles.streaming.simulate import StreamingDesign, open_design
from tests.support.low_bit import Layers

BOARD = load("zcu104")
CLOCK = BOARD.clocks()[-1]
ESTIMATE = {"dsp": 1, "lut": 1, "lutram": 0, "bram36": 0, "uram": 0}


def every_block() -> QuantizedNetwork:
    """Return a network of windows, a depthwise layer, a table, pools, joins, slices, an upsample and a dense layer.

    It has two outputs.
    """
    made = Layers(3, 12, 16).conv(8, 3).pool()
    first = made.last
    made.depthwise().curve().conv(8, 1).sum(first, made.last)
    added = made.last
    made.slice(0, 4, added)
    low = made.last
    made.slice(4, 4, added)
    high = made.last
    made.concat(high, low).conv(8, 3, 2)
    coarse = made.last
    made.upsample(2).conv(6, 1).wide()
    made.conv(8, 5, 1, None, False, coarse).conv(12, 1, 2).dense(10).wide()
    return made.network("every_block")


def choosing() -> QuantizedNetwork:
    """Return a network of choices: a class per position, an image's three best classes with values, and values only."""
    made = Layers(3, 6, 8).conv(12, 3)
    fork = made.last
    made.conv(6, 1, 1, None, False, fork).choose(1)
    made.conv(5, 1, 1, None, False, fork).choose(2, False)
    made.conv(8, 3, 2, None, False, fork).dense(10).wide()
    last = made.last
    return made.choose(3, False, last).choose(3, True, last).network("choosing")


def sharing() -> QuantizedNetwork:
    """Return a network with a softmax of each method per position, and one over an image's classes with choices.

    A layer reads one of them.
    """
    made = Layers(3, 6, 8).conv(12, 3)
    fork = made.last
    made.conv(6, 1, 1, None, False, fork).shares("stable").conv(4, 1)
    made.conv(5, 1, 1, None, False, fork).shares("latency")
    made.conv(2, 1, 1, None, False, fork).wide().shares("argmax")
    made.conv(8, 3, 2, None, False, fork).dense(10).shares("stable")
    last = made.last
    return made.choose(3, False, last).choose(3, True, last).network("sharing")


def skip() -> QuantizedNetwork:
    """Return a network in which a map waits for the result of a longer path."""
    made = Layers(3, 16, 16).conv(8, 3)
    fork = made.last
    made.conv(8, 3).conv(8, 3).sum(fork, made.last)
    return made.conv(5, 1).wide().network("skip")


def bipolar() -> QuantizedNetwork:
    made = Layers(3, 10, 10, "TERNARY", "TERNARY").conv(8, 3, 1, Padding()).conv(6, 3).wide()
    return made.network("ternary")


def folded(
    network: QuantizedNetwork, cycles: int | None, board: Board = BOARD, **options: object
) -> g.StreamingFolding:
    wanted = Options(uram_weights=False, **options)  # type: ignore[arg-type]
    return exact.fold(lower(network), board, Goal(cycles), wanted).folding


@dataclass(frozen=True, eq=False)
class Made:
    network: QuantizedNetwork
    folding: g.StreamingFolding
    picture: npt.NDArray[np.uint8]
    pipeline: StreamingDesign


def make(network: QuantizedNetwork, folding: g.StreamingFolding, folder: Path, **depths: int) -> Made:
    shape = network.input_shape
    picture = np.random.default_rng(1).integers(0, 256, (shape.channels, shape.height, shape.width), np.uint8)
    design = generate(FoldedNetwork(network, folding, BOARD, CLOCK), DesignInputs({}, picture), ESTIMATE, depths)
    write(design, folder)
    return Made(network, folding, picture, open_design(folder))


def with_memory(folding: g.StreamingFolding, **memory: tuple[str, str]) -> g.StreamingFolding:
    """Return the folding with other weight memories for some layers, given as name=(memory, ram)."""
    folds = tuple(
        replace(fold, memory=memory[block.name][0], ram=memory[block.name][1]) if block.name in memory else fold
        for block, fold in zip(folding.graph.blocks, folding.folds, strict=True)
    )
    return replace(folding, folds=folds)
