"""The search for a folding, and the comparison of all search methods, for ``systolic fold``."""

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
from systolic.styles.comparison import ComparisonRow
from systolic.styles.options import saved_text
from systolic.styles.streaming.arguments import SEARCHES
from systolic.styles.streaming.comparison import StreamingComparison
from systolic.styles.streaming.mapping import StreamingMapping
from systolic.styles.streaming.options import StreamingOptions

MADE_BY = f"systolic fold --save FILE, or take {', '.join(SEARCHES)}"
"""The end of the remedy for errors about a saved folding: "write one with …"."""

# --- one folding ---------------------------------------------------------------------------------------------------


def explore(
    network: QuantizedNetwork,
    board: Board,
    clock_mhz: float | None = None,
    options: StreamingOptions | None = None,
    progress: Progress = silent,
) -> StreamingMapping:
    """Return the folding that the options ask for, with its modelled cost.

    It is a saved folding, the cheapest folding with a requested frame rate, or else the fastest folding.

    Args:
        network: The quantised network.
        board: The board.
        clock_mhz: The target clock; None for the board's target clock.
        options: The user's requests; None for the defaults.

    Raises:
        SystolicError: ``Board.nearest_clock`` refuses the clock, or ``fold`` finds no folding.
    """
    clock = board.design_clock(clock_mhz)
    options = options or StreamingOptions()
    options = with_saved_ddr(options, board)
    folded = fold(lower(network), board, clock, options, progress)
    return StreamingMapping(network, board, clock, folded, options, fps=options.fps)


def with_saved_ddr(options: StreamingOptions, board: Board) -> StreamingOptions:
    """Return the options with a DDR rate set: the requested one, else the saved folding's, else the board's."""
    saved = None if options.folding is None else saved_ddr(*saved_text(options.folding, "folding", MADE_BY))
    rate = options.ddr_rate(board, saved)
    return replace(options, ddr_gbps=rate.gbps, ddr_efficiency=rate.efficiency, ddr_profile=None)


def fold(
    graph: g.StreamGraph,
    board: Board,
    clock: Clock,
    options: StreamingOptions,
    progress: Progress = silent,
    traced: TracedStreams = UNTRACED,
) -> FoldingResult:
    """Return the folding of a graph of blocks: a saved one, or the result of the search method that the options name.

    Args:
        graph: The network as a graph of blocks.
        board: The board.
        clock: The target clock.
        options: The user's requests.
        traced: FIFO depths from a trace, which the exact search counts in place of its own estimates.

    Raises:
        ChoiceError: ``options.external`` names an unknown layer.
        SystolicError: The saved folding is wrong, or the search finds no folding.
    """
    goal = options.goal(board, clock.mhz, traced)
    _check_external(graph, options.external)
    if options.folding is not None:
        text, name = saved_text(options.folding, "folding", MADE_BY)
        return evaluate(graph, from_json(text, graph, name).folds, board, goal)
    if options.search == "greedy":
        return greedy.fold(graph, board, goal, external=options.external)
    if options.search == "annealing":
        return annealing.fold(graph, board, goal, options.choices, annealing.Effort(options.effort, options.attempts))
    progress(ProgressStep("folding", limit=options.deadline))
    return exact.fold(graph, board, goal, options.choices, options.deadline)


def _check_external(graph: g.StreamGraph, external: tuple[str, ...]) -> None:
    """Raise ChoiceError if ``external`` names an unknown layer, whose weights would silently stay on the chip."""
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
    progress: Progress = silent,
) -> StreamingComparison:
    """Return the foldings that several search methods find with the same options, as rows of a comparison.

    A search that finds no folding gives a row with its error. If the options name a saved folding, it is one more row.
    """
    clock, graph, options = board.design_clock(clock_mhz), lower(network), options or StreamingOptions()
    variants = [replace(options, search=search, folding=None) for search in searches]
    variants += [options] if options.folding is not None else []
    rows = []
    for number, variant in enumerate(with_saved_ddr(variant, board) for variant in variants):
        # The searches take very different times, so no share of the whole is reported.
        progress(f"folding: {variant.label}, {number} of {len(variants)} searches done")
        try:
            mapping = StreamingMapping(
                network, board, clock, fold(graph, board, clock, variant, progress), variant, fps=variant.fps
            )
            rows.append(ComparisonRow(variant.label, mapping))
        except SystolicError as error:  # one failed search must not end the comparison
            rows.append(ComparisonRow(variant.label, None, error))
    return StreamingComparison(graph.name, tuple(rows), board, clock, options.fps)


def single_row(mapping: StreamingMapping, options: StreamingOptions) -> StreamingComparison:
    """Return a comparison with one row, a single folding, as ``systolic fold`` shows it."""
    rows = (ComparisonRow(options.label, mapping),)
    return StreamingComparison(mapping.network.name, rows, mapping.board, mapping.clock, options.fps)
