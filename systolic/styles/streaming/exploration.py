"""Foldings by search: the one that was asked for, and all searches side by side. What ``systolic fold`` calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from boards.board import Board
from boards.errors import ChoiceError, SystolicError
from boards.facts import Clock
from boards.progress import Progress, ProgressStep, silent
from cnn.quantized import QuantizedNetwork
from scheduler.streaming import graph as g
from scheduler.streaming.folding_file import from_json, saved_ddr
from scheduler.streaming.lower import lower
from scheduler.streaming.model.waiting import UNTRACED, TracedStreams
from scheduler.streaming.result import FoldingResult, evaluate
from scheduler.streaming.search import annealing, exact, greedy
from systolic.styles.comparison import Candidate
from systolic.styles.options import saved_text
from systolic.styles.streaming.arguments import SEARCHES
from systolic.styles.streaming.comparison import StreamingComparison
from systolic.styles.streaming.mapping import StreamingMapping
from systolic.styles.streaming.options import StreamingOptions

MADE_BY = f"systolic fold --save FILE, or take {', '.join(SEARCHES)}"

# --- one folding ---------------------------------------------------------------------------------------------------


def explore(
    network: QuantizedNetwork,
    board: Board,
    clock_mhz: float | None = None,
    options: StreamingOptions | None = None,
    tell: Progress = silent,
) -> StreamingMapping:
    """The folding that the options ask for: a saved one, or the cheapest, or the fastest.

    clock_mhz: the board's highest if it is None. Raises the errors of ``Board.nearest_clock`` for a clock that the
    board does not make, and those of ``fold``.
    """
    clock = _clock(board, clock_mhz)
    options = options or StreamingOptions()
    options = with_saved_ddr(options, board)
    folded = fold(lower(network), board, clock, options, tell)
    return StreamingMapping(network, board, clock, folded, options, fps=options.fps)


def _clock(board: Board, clock_mhz: float | None) -> Clock:
    return board.clocks()[-1] if clock_mhz is None else board.nearest_clock(clock_mhz)


def with_saved_ddr(options: StreamingOptions, board: Board) -> StreamingOptions:
    """The options with the memory that counts: what they ask for, else that of the saved folding, else the board's."""
    saved = None if options.folding is None else saved_ddr(*saved_text(options.folding, "folding", MADE_BY))
    rate = options.ddr_rate(board, saved)
    return replace(options, ddr_gbps=rate.gbps, ddr_efficiency=rate.efficiency)


def fold(
    graph: g.StreamGraph,
    board: Board,
    clock: Clock,
    options: StreamingOptions,
    tell: Progress = silent,
    traced: TracedStreams = UNTRACED,
) -> FoldingResult:
    """The folding of a graph that was lowered already; errors as of ``explore``. traced: FIFOs that are known."""
    goal = options.goal(board, clock.mhz, traced)
    _check_external(graph, options.external)
    if options.folding is not None:
        text, name = saved_text(options.folding, "folding", MADE_BY)
        return evaluate(graph, from_json(text, graph, name).folds, board, goal)
    if options.search == "greedy":
        return greedy.fold(graph, board, goal, external=options.external)
    if options.search == "annealing":
        return annealing.fold(graph, board, goal, options.choices, annealing.Effort(options.effort, options.attempts))
    tell(ProgressStep("folding", limit=options.deadline))
    return exact.fold(graph, board, goal, options.choices, options.deadline)


def _check_external(graph: g.StreamGraph, external: tuple[str, ...]) -> None:
    """A misspelt layer would stay on the chip without a word."""
    known = [block.name for block in graph.blocks if isinstance(block.op, g.MatrixVector)]
    unknown = [name for name in external if name not in known]
    if unknown:
        raise ChoiceError(f"--external, a layer of {graph.name} whose weights can come from DDR,", unknown[0], known)


# --- several -------------------------------------------------------------------------------------------------------


def compare(
    network: QuantizedNetwork,
    board: Board,
    clock_mhz: float | None = None,
    options: StreamingOptions | None = None,
    searches: Sequence[str] = SEARCHES,
    tell: Progress = silent,
) -> StreamingComparison:
    """Compare the foldings that each of ``searches`` finds with the same options; one that finds nothing has its error
    in its row, and the others go on.

    A saved folding among the options is one more.
    """
    clock, graph, options = _clock(board, clock_mhz), lower(network), options or StreamingOptions()
    wishes = [replace(options, search=search, folding=None) for search in searches]
    wishes += [options] if options.folding is not None else []
    rows = []
    for number, wish in enumerate(with_saved_ddr(wish, board) for wish in wishes):
        tell(f"folding: {wish.label}, {number} of {len(wishes)} searches done")  # they take unlike long: no share
        try:
            mapping = StreamingMapping(network, board, clock, fold(graph, board, clock, wish, tell), wish, fps=wish.fps)
            rows.append(Candidate(wish.label, mapping))
        except SystolicError as error:  # whatever refuses one search is the content of its row
            rows.append(Candidate(wish.label, None, error))
    return StreamingComparison(graph.name, tuple(rows), board, clock, options.fps)


def alone(mapping: StreamingMapping, options: StreamingOptions) -> StreamingComparison:
    """A comparison of one, as ``systolic fold`` shows it."""
    rows = (Candidate(options.label, mapping),)
    return StreamingComparison(mapping.network.name, rows, mapping.board, mapping.clock, options.fps)
