"""The options of the streaming style."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from boards.board import Board
from boards.errors import ChoiceError, RangeError, UnsupportedError
from cnn.ops.softmax import METHODS
from scheduler.streaming.model.waiting import UNTRACED, TracedStreams
from scheduler.streaming.result import Goal
from scheduler.streaming.search.candidates import Options
from systolic.styles.options import HardwareOptions, budget_from
from systolic.styles.streaming.arguments import SEARCHES

MAX_CYCLES = 1 << 40
"""Limit for the requested cycles per frame. No pipeline is so slow, so a lower rate would not make it smaller."""


@dataclass(frozen=True)
class StreamingOptions(HardwareOptions):
    """The options of the streaming style: they choose a folding, and how its pipeline is generated.

    Attributes:
        fps: Frames per second to reach at the target clock with the fewest resources; None for the highest rate that
            fits.
        search: The name of the search, one of SEARCHES.
        folding: A saved folding to use instead of a search, as a file or as its JSON; None to search.
        deadline: Limit for the time of the exact search, in seconds; None for no limit.
        effort: Number of foldings that annealing evaluates per block.
        attempts: Number of sweeps of annealing over all blocks.
        max_padding: Limit for the channels of zeros that are added to a map.
        max_pixels: Limit for the pixels in one word of a stream.
        pad_ends: Whether channels may also be added to the network's input and outputs.
        external: Names of the layers whose weights stay in DDR.
        estimated_fifos: Whether to keep the FIFO depths that the search estimates, instead of sizing them by a trace.
        softmax: "none", or the method of ``cnn.ops.softmax`` by which the pipeline computes the final softmax.
    """

    fps: float | None = None
    search: str = "exact"
    folding: Path | str | None = None
    deadline: float | None = 60.0
    effort: int = 200
    attempts: int = 2
    max_padding: int = 0
    max_pixels: int = 2
    pad_ends: bool = False
    external: tuple[str, ...] = ()
    estimated_fifos: bool = False
    softmax: str = "none"

    def __post_init__(self) -> None:
        if self.search not in SEARCHES:
            raise ChoiceError("the search for a folding", self.search, SEARCHES)
        if self.fps is not None and not self.fps > 0:
            raise RangeError("--fps in frames/s", self.fps, 0, exclusive=True, remedy="or leave it out")
        if self.deadline is not None and not self.deadline > 0:
            raise RangeError("--deadline in seconds", self.deadline, 0, exclusive=True)
        check_softmax(self.softmax)
        for option, value, least in (
            ("--max-pixels", self.max_pixels, 1),
            ("--max-padding", self.max_padding, 0),
            ("--effort", self.effort, 1),
            ("--attempts", self.attempts, 1),
        ):
            if value < least:
                raise RangeError(option, value, least)

    def goal(self, board: Board, clock_mhz: float, traced: TracedStreams = UNTRACED) -> Goal:
        """Return the goal of a folding search: the required cycles per frame, the budget and the DDR rate.

        Args:
            board: The board.
            clock_mhz: The target clock.
            traced: FIFO depths from a trace, which the search counts in place of its own estimates.

        Raises:
            RangeError: The requested rate allows less than one cycle per frame.
        """
        cycles = None if self.fps is None else int(min(MAX_CYCLES, clock_mhz * 1e6 / self.fps))
        if cycles == 0:
            raise RangeError(f"--fps in frames/s at {clock_mhz:g} MHz", self.fps, 0, clock_mhz * 1e6, exclusive=True)
        return Goal(cycles, clock_mhz, self.budget, self.ddr_rate(board), traced)

    @property
    def choices(self) -> Options:
        """The folds that a search may choose: limits for padding, pixels per word and external weights."""
        return Options(self.max_padding, self.pad_ends, self.max_pixels, self.external, uram_weights=False)

    @property
    def label(self) -> str:
        """The name of the search method, or of the file with the saved folding."""
        return self.search if self.folding is None else str(self.folding)


def check_softmax(method: str) -> None:
    """Raise an error unless ``method`` is "none" or a softmax method that a pipeline can compute.

    Raises:
        UnsupportedError: The method is hls4ml's "legacy".
        ChoiceError: The method is unknown.
    """
    if method == "legacy":
        raise UnsupportedError(
            "--softmax legacy",
            "it computes the function of stable, with a table look-up for each pair of channels",
            remedy="take --softmax stable",
        )
    if method not in ("none", *METHODS):
        raise ChoiceError("--softmax", method, ("none", *METHODS))


def options_from(options: argparse.Namespace) -> StreamingOptions:
    """Return the streaming options of a ``systolic fold`` or ``systolic generate`` command line."""
    searched = options.folding in SEARCHES
    return StreamingOptions(
        fps=options.fps,
        search=options.folding if searched else SEARCHES[0],
        folding=None if searched else Path(options.folding),
        deadline=options.deadline,
        effort=options.effort,
        attempts=options.attempts,
        max_padding=options.max_padding,
        max_pixels=options.max_pixels,
        pad_ends=options.pad_ends,
        external=tuple(options.external),
        estimated_fifos=options.estimated_fifos,
        softmax=options.softmax,
        ddr_gbps=options.ddr_gbps,
        ddr_efficiency=options.ddr_efficiency,
        ddr_profile=options.ddr_profile,
        budget=budget_from(options),
    )
