"""What a user may ask of a folding."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from boards.board import Board
from boards.errors import ChoiceError, RangeError, UnsupportedError
from cnn.softmax import METHODS
from scheduler.streaming.model.waiting import UNTRACED, TracedStreams
from scheduler.streaming.result import Goal
from scheduler.streaming.search.candidates import Options
from systolic.styles.options import Argument, HardwareOptions, budget_from

SEARCHES = ("exact", "greedy", "annealing")
"""How a folding is searched for."""

ARGUMENTS = (
    Argument(
        "--fps",
        "frames/s to reach; default: as many as fit the board",
        settings={"type": float, "metavar": "RATE"},
    ),
    Argument(
        "--folding",
        f"{', '.join(SEARCHES)}, or a file of systolic fold --save (default: %(default)s)",
        "exact",
        {"metavar": "SEARCH|FILE"},
    ),
    Argument("--deadline", "seconds to search (%(default)s)", 60.0, {"type": float, "metavar": "S"}),
    Argument(
        "--effort", "annealing alone: evaluations for each block (%(default)s)", 200, {"type": int, "metavar": "N"}
    ),
    Argument(
        "--attempts",
        "annealing alone: how often it goes through all blocks (%(default)s)",
        2,
        {"type": int, "metavar": "N"},
    ),
    Argument("--max-padding", "channels that may be added to a map", 0, {"type": int, "metavar": "N"}),
    Argument(
        "--max-pixels",
        "most pixels in a word of a stream (default: %(default)s)",
        2,
        {"type": int, "metavar": "M"},
    ),
    Argument("--pad-ends", "add channels also to the first map and to the last ones", False, {"action": "store_true"}),
    Argument("--external", "layers whose weights stay in DDR", [], {"nargs": "+", "metavar": "LAYER"}),
    Argument(
        "--softmax",
        "who computes a softmax at the network's end, and how: none, the host in float; stable, latency or argmax, the "
        "pipeline in integers (default: %(default)s)",
        "none",
        {"metavar": "METHOD"},
        "the host does the softmax behind an array, whose Saver has neither a divider nor a pass over channels",
    ),
    Argument(
        "--estimated-fifos",
        "take FIFO depths as estimated; the trace only shows whether they deadlock, and how slow they are",
        False,
        {"action": "store_true"},
    ),
)
"""The options of ``systolic fold``, and of ``systolic generate`` in this style."""


MOST_CYCLES = 1 << 40
"""Of a frame: a rate of hours a frame asks for no less than that of seconds a frame."""


@dataclass(frozen=True)
class StreamingOptions(HardwareOptions):
    """What is wanted of a folding, beside the ``HardwareOptions``.

    fps: frames a second at the target clock, with least resources; None for the highest rate that fits. search: one of
    SEARCHES. folding: a saved one, as a file or as its JSON, instead of a search. deadline: seconds that the exact
    search may take. effort, attempts: of annealing. max_padding: channels that may be added to a map; pad_ends: also to
    what the network reads and gives. max_pixels: that may travel in a word. external: layers whose weights stay in DDR.
    softmax: "none", or by which method of cnn.softmax the pipeline computes one; a folding covers its block.
    estimated_fifos: FIFO depths as the search estimates them, if they do not deadlock, instead of by the cycle trace.
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
        """Return what a search is asked for; RangeError for a rate that leaves no cycle for a frame."""
        cycles = None if self.fps is None else int(min(MOST_CYCLES, clock_mhz * 1e6 / self.fps))
        if cycles == 0:
            raise RangeError(f"--fps in frames/s at {clock_mhz:g} MHz", self.fps, 0, clock_mhz * 1e6, exclusive=True)
        return Goal(cycles, clock_mhz, self.budget, self.ddr_rate(board), traced)

    @property
    def choices(self) -> Options:
        """What a search may use."""
        return Options(self.max_padding, self.pad_ends, self.max_pixels, self.external, uram_weights=False)

    @property
    def label(self) -> str:
        """How the folding comes to be: the search, or the file that it is taken from."""
        return self.search if self.folding is None else str(self.folding)


def check_softmax(method: str) -> None:
    """Raise UnsupportedError or ChoiceError if a pipeline has no such softmax."""
    if method == "legacy":
        raise UnsupportedError(
            "--softmax legacy",
            "it is the function of stable with a look-up for each pair of channels",
            remedy="take --softmax stable",
        )
    if method not in ("none", *METHODS):
        raise ChoiceError("--softmax", method, ("none", *METHODS))


def options_from(options: argparse.Namespace) -> StreamingOptions:
    """Of ``systolic fold`` and ``systolic generate``: --folding is a search, or a file that fold --save wrote."""
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
        budget=budget_from(options),
    )
