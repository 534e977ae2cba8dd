"""The search for the best schedule, the comparison of boards, arrays and bits, and the Pareto front.

``systolic schedule``, ``systolic compare`` and ``systolic pareto`` call these functions. All cycles and rates are
modelled.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import replace
from itertools import product

from boards.board import Board
from boards.errors import DoesNotFitError, MismatchError, SystolicError, UnsupportedError
from boards.progress import Progress, ProgressStep, silent
from cnn.quantized import QuantizedNetwork
from scheduler.hardware.budget import Budget, room
from scheduler.hardware.ddr import DdrRate, DdrTiming, ddr_timing
from scheduler.systolic.formats import check_products
from scheduler.systolic.model.clock import check_dsp_clock, highest_mhz, lowest_clock
from scheduler.systolic.network.additions import fused_additions
from scheduler.systolic.network.copies import with_copies
from scheduler.systolic.schedule import SystolicSchedule, array_in
from scheduler.systolic.schedule_file import from_json, saved_ddr, saved_fused
from scheduler.systolic.search import pareto
from scheduler.systolic.search.problem import Problem, problem_of
from scheduler.systolic.search.search import SearchResult, search, search_clocks
from scheduler.systolic.search.space import Goal, Space, pin, space_for
from scheduler.systolic.search.workers import Workers
from scheduler.systolic.workload import workload_of
from systolic.styles.comparison import ComparisonRow
from systolic.styles.options import saved_text
from systolic.styles.systolic.comparison import ParetoFront, SystolicComparison
from systolic.styles.systolic.mapping import SystolicMapping, price
from systolic.styles.systolic.options import Alternatives, SystolicOptions, with_dsps, words_of_pins
from systolic.styles.systolic.priced import HeldRate

# --- one schedule --------------------------------------------------------------------------------------------------


def explore(
    network: QuantizedNetwork,
    board: Board,
    clock_mhz: float | None = None,
    options: SystolicOptions | None = None,
    executor: Executor | None = None,
    progress: Progress = silent,
) -> SystolicMapping:
    """Return the schedule that the options ask for, with its cost: a saved schedule, or the best one of a search.

    Args:
        network: The quantised network.
        board: The board.
        clock_mhz: The target clock. None means the clock with the least time per frame. For a saved schedule, and for
            an objective with a requested frame rate, None means the highest clock.
        options: The user's requests; None for the defaults.
        executor: Runs parts of the search in other processes; None for this process alone.

    Raises:
        DoesNotFitError: No array fits into the budget.
        MismatchError: The batch or the DSP options differ from the saved schedule.
        SystolicError: One of the errors of ``Board.nearest_clock``, ``SystolicOptions``, ``search`` and ``from_json``.
    """
    options = options or SystolicOptions()
    if options.schedule is not None:
        schedule, saved = _saved(network, options)
        ddr = _ddr(board, clock_mhz, options.ddr_rate(board, saved), schedule.array.dsp_clock)
        return price(schedule, board, ddr, budget=options.budget)
    best = _best(network, board, clock_mhz, options, Workers(executor, progress))
    mapping = price(best.schedule, board, best.ddr, best.proof, options.budget)
    return replace(mapping, holds=_holds(best.schedule, board, options)) if options.fps else mapping


def _best(
    network: QuantizedNetwork, board: Board, clock_mhz: float | None, options: SystolicOptions, workers: Workers
) -> SearchResult:
    """Return the best schedule, with residual adds in the output stage (Saver) if such an array fits, else as layers.

    The Saver is tried first, because it adds a map without a separate pass and so is never slower. For the objective
    "resources" both ways are tried, and the better one is the result.
    """
    results: list[SearchResult] = []
    ways = ways_to_add(network, options)
    for fused in ways:
        try:
            problem = _problem(network, fused, board, options)
            results.append(_search(problem, clock_mhz, options, workers))
        except SystolicError:  # the other way to add may still fit, so only the last error is raised
            if fused == ways[-1] and not results:
                raise
        if results and options.objective != "resources":
            break
    return min(results, key=lambda result: result.key)


def ways_to_add(network: QuantizedNetwork, options: SystolicOptions) -> tuple[bool, ...]:
    """Return how residual adds may be computed, in the order tried: True in the output stage, False as layers.

    Without an addition that the Saver can compute, only False is tried.
    """
    return options.fused if fused_additions(network) else (False,)


def _problem(network: QuantizedNetwork, fused: bool, board: Board, options: SystolicOptions) -> Problem:
    """Return the search problem: layers, board and array space. fused: whether the Saver computes residual adds."""
    workload = workload_of(with_copies(network, fused), options.frames, fused)
    check_products(workload.network, workload.layers, board.dsp.kind, options.dsp_products)
    return problem_of(workload, room(board, options.budget), pin(space_for(workload, board), **options.pinned))


def _search(problem: Problem, clock_mhz: float | None, options: SystolicOptions, workers: Workers) -> SearchResult:
    """Search the best schedule at a clock, or at the best clock. If none fits, the error names the budget."""
    goal, rate = options.goal, options.ddr_rate(problem.board)
    try:
        if clock_mhz is None:
            return search_clocks(problem, goal, workers, rate)
        return search(problem, _ddr(problem.board, clock_mhz, rate, options.dsp_clock), goal, workers)
    except DoesNotFitError as error:
        allowance = f"a design may take {options.budget} of the board: --dsp-share and so on"
        remedy = f"{error.remedy} ({allowance})" if error.remedy else allowance
        raise replace(error, remedy=remedy) from error


def _saved(network: QuantizedNetwork, options: SystolicOptions) -> tuple[SystolicSchedule, DdrRate | None]:
    """Return the saved schedule, and the DDR rate that it was made for, or None if its file has no rate.

    Raises:
        MismatchError: The batch or the DSP options differ from the file.
    """
    assert options.schedule is not None
    text, name = saved_text(options.schedule, "schedule", "systolic schedule --save FILE")
    schedule = from_json(text, with_copies(network, saved_fused(text, name)), name)
    if options.batch not in (None, schedule.batch):
        raise MismatchError(
            "--batch",
            options.batch,
            schedule.batch,
            where=name,
            remedy="remove --batch, or save a schedule of that batch",
        )
    for number in ("dsp_clock", "dsp_products"):
        built, pinned = getattr(schedule.array, number), options.pins.get(number)
        if pinned not in (None, built):
            option = f"--{number.replace('_', '-')}"
            remedy = f"remove {option}, or save a schedule with it"
            raise MismatchError(option, pinned, built, where=name, remedy=remedy)
    return replace(schedule, array=array_in(schedule, options.engine)), saved_ddr(text, name)


def _holds(schedule: SystolicSchedule, board: Board, options: SystolicOptions) -> HeldRate | None:
    """Return the requested rate and the lowest clock at which the schedule reaches it; None if no clock does."""
    clock = lowest_clock(schedule, board, options.fps, options.ddr_rate(board))
    return HeldRate(options.fps, clock.mhz) if clock else None


def _ddr(board: Board, clock_mhz: float | None, rate: DdrRate, dsp_clock: int = 1) -> DdrTiming:
    """Return the DDR's timing at a clock; None means the board's target. Raises the errors of ``check_dsp_clock``."""
    clock = board.design_clock(clock_mhz, highest_mhz(board, dsp_clock))
    check_dsp_clock(board, clock.mhz, dsp_clock)
    return ddr_timing(board, clock.mhz, rate)


# --- several -------------------------------------------------------------------------------------------------------


def compare(
    networks: Mapping[int, QuantizedNetwork],
    alternatives: Alternatives,
    options: SystolicOptions | None = None,
    executor: Executor | None = None,
    progress: Progress = silent,
) -> SystolicComparison:
    """Return the best schedule of each combination of network bits, board, clock, DDR rate, array and batch.

    A combination without a schedule is a row with its error.

    Args:
        networks: The networks by their bits: one network that was quantised in several ways.
        alternatives: The hardware to compare.
        options: The user's requests; None for the defaults.
        executor: Runs parts of each search in other processes; None for this process alone.

    Raises:
        SystolicError: ``Board.nearest_clock`` refuses a clock, or no combination can use an option that all share.
    """
    options, rows = options or SystolicOptions(), []
    for board, gbps in product(alternatives.boards, alternatives.ddr_gbps):
        _check_shared(replace(options, ddr_gbps=gbps), board)
    hardware = product(alternatives.boards, alternatives.clocks_mhz, alternatives.ddr_gbps)
    choices = list(
        product(networks.items(), hardware, alternatives.arrays or (None,), alternatives.dsps, alternatives.batches)
    )
    for number, ((bits, network), (board, clock_mhz, gbps), array, dsp, batch) in enumerate(choices):
        parts = [board.name, array or "best", f"int{bits}", *words_of_pins(dsp)]
        parts += [f"batch {batch}"] if alternatives.batches != (1,) else []
        parts += [f"{clock_mhz:g} MHz"] if clock_mhz is not None and len(alternatives.clocks_mhz) > 1 else []
        parts += [f"{gbps:g} GB/s"] if gbps is not None and len(alternatives.ddr_gbps) > 1 else []
        asked = ", ".join(parts)
        progress(ProgressStep(f"comparing, {number} of {len(choices)} done", number, len(choices)))
        row_options = replace(with_dsps(options, alternatives.engine, dsp), array=array, batch=batch, ddr_gbps=gbps)
        clock = None if clock_mhz is None else board.nearest_clock(clock_mhz).mhz
        try:
            rows.append(ComparisonRow(asked, explore(network, board, clock, row_options, executor)))
        except SystolicError as error:  # one failed combination must not end the comparison
            rows.append(ComparisonRow(asked, None, error))
    names = {network.name for network in networks.values()}
    return SystolicComparison(", ".join(sorted(names)), tuple(rows))


def _check_shared(options: SystolicOptions, board: Board) -> None:
    """Raise an error of ``Goal`` or of ``ddr_rate`` if the objective, its frame rate or the DDR rate is not usable."""
    Goal(options.objective, options.fps)
    options.ddr_rate(board)


def pareto_front(
    network: QuantizedNetwork,
    board: Board,
    ddr: DdrTiming,
    space: Space | None = None,
    batch: int = 1,
    budget: Budget = Budget(),  # noqa: B008 (frozen)
) -> tuple[SystolicMapping, ...]:
    """Return the best schedule of each array size that no other beats in both frames/s and DSPs, fastest first.

    Args:
        network: The quantised network.
        board: The board.
        ddr: The timing of the memory at the clock.
        space: The arrays to search, for the same batch. With a space, the Saver computes no residual adds. None means
            the default space, in which the Saver computes them if such an array fits.
        batch: The number of frames that share each load of the weights.
        budget: The share of the board that a design may use.
    """
    schedules: tuple[SystolicSchedule, ...] = ()
    for fused in ways_to_add(network, SystolicOptions()) if space is None else (False,):
        workload = workload_of(with_copies(network, fused), batch, fused)
        schedules = pareto.pareto_front(problem_of(workload, room(board, budget), space), ddr)
        if schedules:
            break
    return tuple(price(schedule, board, ddr, budget=budget) for schedule in schedules)


def front(
    network: QuantizedNetwork,
    board: Board,
    clock_mhz: float | None = None,
    options: SystolicOptions | None = None,
    progress: Progress = silent,
) -> ParetoFront:
    """Return the Pareto front of frames/s and DSPs over the arrays that the options allow, from a coarse search.

    Args:
        network: The quantised network.
        board: The board.
        clock_mhz: The clock; None for the board's target clock.
        options: The user's requests, of which pins, batch, memory and budget are used; None for the defaults.

    Raises:
        UnsupportedError: None of the few arrays of the coarse search fits, although others do.
        SystolicError: One of the errors of ``explore``.
    """
    options = options or SystolicOptions()
    ddr = _ddr(board, clock_mhz, options.ddr_rate(board), options.dsp_clock)
    schedules: tuple[SystolicSchedule, ...] = ()
    for fused in ways_to_add(network, options):
        schedules = pareto.pareto_front(_problem(network, fused, board, options), ddr, progress)
        if schedules:
            break
    points = tuple(price(schedule, board, ddr, budget=options.budget) for schedule in schedules)
    if not points:
        _check_some_fit(network, board, clock_mhz or ddr.clock_mhz, options)
        raise UnsupportedError(
            f"a Pareto front of {network.name} on {board.title} with these pins",
            "none of the few arrays that the coarse search tries fits, although others do",
            remedy="pin fewer numbers",
        )
    return ParetoFront(points)


def _check_some_fit(network: QuantizedNetwork, board: Board, clock_mhz: float, options: SystolicOptions) -> None:
    """Raise the error of ``explore`` if the full search also finds no array that fits."""
    _best(network, board, clock_mhz, replace(options, objective="fps"), Workers())
