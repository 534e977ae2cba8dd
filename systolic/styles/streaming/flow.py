"""The streaming pipeline, as a table of contents: model → integers → graph → folding → design, and FIFO depths."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from boards.board import Board
from boards.errors import ScheduleError
from boards.facts import Clock
from cnn.quantized import QuantizedNetwork
from host.vision.picture import FITS, load_picture
from scheduler.streaming import graph as g
from scheduler.streaming.area.budget import Budget, area, fits, limits
from scheduler.streaming.area.total import usage_with
from scheduler.streaming.folding_file import from_json
from scheduler.streaming.lower import lower
from scheduler.streaming.result import FoldingResult, Goal, evaluate
from scheduler.streaming.search import annealing, exact, greedy
from scheduler.streaming.search.candidates import Options
from systolic.files import DesignFiles, write
from systolic.model import Calibration, Model, Progress, quantise_model
from systolic.styles.streaming.fifos import Fifos, size_fifos
from systolic.styles.streaming.generate import Streaming, generate_pipeline
from systolic.styles.streaming.measure import trace_pipeline
from systolic.styles.streaming.simulate import open_pipeline
from systolic.trace.report import board_memory

FOLDERS = ("exact", "greedy", "annealing")


@dataclass(frozen=True)
class StreamingOptions:
    """What is wanted of a folding.

    fps: at the target clock, with least resources; None for the highest frame rate that fits. folder: one of FOLDERS.
    deadline: seconds that the exact search may take. given: a saved folding as (JSON, name of its file), instead of a
    search. sized: FIFO depths from the cycle trace; otherwise as the folder estimates them. effort, attempts: of
    annealing.
    """

    fps: float | None = None
    folder: str = "exact"
    deadline: float | None = 60.0
    max_padding: int = 0
    max_pixels: int = 2
    pad_ends: bool = False
    external: tuple[str, ...] = ()
    given: tuple[str, str] | None = None
    sized: bool = True
    effort: int = 200
    attempts: int = 2

    def __post_init__(self) -> None:
        if self.fps is not None and not self.fps > 0:
            raise ScheduleError(f"a frame rate is above 0, not {self.fps:g}; give --fps RATE, or leave it out")
        if self.deadline is not None and not self.deadline > 0:
            raise ScheduleError(f"a search needs more than 0 seconds, not {self.deadline:g}; give --deadline S")
        if self.max_pixels < 1:
            raise ScheduleError(f"--max-pixels counts pixels of a word, 1 or more, not {self.max_pixels}")
        if self.max_padding < 0:
            raise ScheduleError(f"--max-padding counts channels that are added, 0 or more, not {self.max_padding}")
        if min(self.effort, self.attempts) < 1:
            raise ScheduleError(
                f"annealing needs an effort and attempts of at least 1, not {self.effort} and {self.attempts}"
            )


@dataclass(frozen=True, eq=False)
class StreamingPlan:
    """fifos: None where they were not sized by the trace."""

    network: QuantizedNetwork
    folded: FoldingResult
    board: Board
    clock: Clock
    design: DesignFiles
    fifos: Fifos | None

    def _repr_html_(self) -> str:
        from systolic.styles.streaming.report import fifos_html, folded_html

        parts = folded_html(self.folded, self.board, self.clock.mhz)
        return parts if self.fifos is None else parts + fifos_html(self.fifos)


def fold_network(graph: g.StreamGraph, board: Board, clock: Clock, asked: StreamingOptions) -> FoldingResult:
    """The folding that was asked for; ScheduleError says what a board lacks, or which rule a given one breaks."""
    cycles = None if asked.fps is None else int(clock.mhz * 1e6 / asked.fps)
    if cycles == 0:
        raise ScheduleError(f"{asked.fps:g} frames/s leave no cycle for a frame at {clock.mhz:g} MHz; ask for less")
    _check_external(graph, asked.external)
    goal = Goal(cycles, clock.mhz, Budget())
    options = Options(asked.max_padding, asked.pad_ends, asked.max_pixels, asked.external, uram_weights=False)
    if asked.given is not None:
        folds = from_json(asked.given[0], graph, asked.given[1]).folds
        return evaluate(graph, folds, board, goal)
    if asked.folder == "greedy":
        return greedy.fold(graph, board, goal, external=asked.external)
    if asked.folder == "annealing":
        return annealing.fold(graph, board, goal, options, annealing.Effort(asked.effort, asked.attempts))
    return exact.fold(graph, board, goal, options, asked.deadline)


def _check_external(graph: g.StreamGraph, external: tuple[str, ...]) -> None:
    """A misspelt layer would stay on the chip without a word."""
    known = [block.name for block in graph.blocks if isinstance(block.op, g.MatrixVector)]
    unknown = [name for name in external if name not in known]
    if unknown:
        raise ScheduleError(
            f"--external {unknown[0]}: {graph.name} has no such layer whose weights can come from DDR; "
            f"there are {', '.join(known)}"
        )


def make_pipeline(
    model: Model,
    board: Board,
    clock_mhz: float | None,
    calibration: Calibration,
    asked: StreamingOptions,
    tell: Progress = lambda _: None,
) -> StreamingPlan:
    """Everything between a model and the files of its pipeline; the errors are those of each step."""
    clock = board.clocks()[-1] if clock_mhz is None else board.nearest_clock(clock_mhz)
    fit = calibration.fit or model.fit
    tell("quantising")
    network = quantise_model(model, calibration, fit, tell)
    graph = lower(network)
    tell("folding")
    found = fold_network(graph, board, clock, asked)
    shape = network.input_shape
    picture, _ = FITS[fit](load_picture(calibration.pictures[0]), shape.height, shape.width)
    made = Streaming(network, found.folding, board, clock, fit)
    tell("generating")
    design = generate_pipeline(made, model.files, picture, estimate(found))
    if not asked.sized:
        return StreamingPlan(network, found, board, clock, design, None)
    fifos = _sized(design, picture, clock, tell)
    found = recounted(found, board, fifos)
    deep = replace(made, depths=fifos.depths)
    whole = generate_pipeline(deep, model.files, picture, estimate(found))
    return StreamingPlan(network, found, board, clock, whole, fifos)


WHOLE_BOARD = Budget(lut=1.0, dsp=1.0, bram=1.0, uram=1.0)


def recounted(found: FoldingResult, board: Board, fifos: Fifos) -> FoldingResult:
    """With the FIFOs that the trace has sized, which the folder could not know; ``fits``: the board, all of it."""
    words = [(fifos.widths[name], depth) for name, depth in fifos.depths.items()]
    used = usage_with(found.folding, board, words)
    used = replace(used, ddr_bits=found.usage.ddr_bits)
    fit = fits(used, limits(board, WHOLE_BOARD))
    return replace(found, usage=used, area=area(used, board), fits=fit)


def estimate(found: FoldingResult) -> Mapping[str, int]:
    """Resources by name, as the manifest has them."""
    used = found.usage
    return {"dsp": used.dsp, "lut": used.lut, "lutram": used.lutram, "bram36": -(-used.bram18 // 2), "uram": used.uram}


def _sized(design: DesignFiles, picture: npt.NDArray[np.uint8], clock: Clock, tell: Progress) -> Fifos:
    """The depths that the trace of the design itself asks for."""
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "design"
        write(design, folder)
        pipeline = open_pipeline(folder)
        trace = trace_pipeline(pipeline, picture, tell)
        tell("sizing FIFOs")
        return size_fifos(trace, board_memory(pipeline), clock.mhz, pipeline.fifo_bits)
