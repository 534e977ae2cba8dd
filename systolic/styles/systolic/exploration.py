"""Schedules by search: the best one, the Pareto front, and boards, arrays and formats side by side.

What ``systolic schedule`` and ``systolic compare`` call; everything told of it is *modelled* unless it says otherwise.
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
from scheduler.systolic.search.space import Space, pin, space_for
from scheduler.systolic.search.workers import Workers
from scheduler.systolic.workload import workload_of
from systolic.styles.comparison import Candidate
from systolic.styles.options import saved_text
from systolic.styles.systolic.comparison import ParetoFront, SystolicComparison
from systolic.styles.systolic.mapping import SystolicMapping, price
from systolic.styles.systolic.options import Alternatives, SystolicOptions, with_dsps, words_of_pins
from systolic.styles.systolic.priced import Holds

# --- one schedule --------------------------------------------------------------------------------------------------


def explore(
    network: QuantizedNetwork,
    board: Board,
    clock_mhz: float | None = None,
    options: SystolicOptions | None = None,
    executor: Executor | None = None,
    tell: Progress = silent,
) -> SystolicMapping:
    """The schedule that the options ask for: a saved one, or the best.

    clock_mhz: if it is None, that of the board which gives the least time per frame, the highest for objectives at a
    rate and for a saved schedule.

    Raises:
        DoesNotFitError: Nothing fits.
        MismatchError: A saved schedule is for another batch or another array than the options ask for.
        SystolicError: One of the errors of ``Board.nearest_clock``, ``SystolicOptions``, ``search`` and ``from_json``.
    """
    options = options or SystolicOptions()
    if options.schedule is not None:
        schedule, saved = _saved(network, options)
        ddr = _ddr(board, clock_mhz, options.ddr_rate(board, saved), schedule.array.dsp_clock)
        return price(schedule, board, ddr, budget=options.budget)
    best = _best(network, board, clock_mhz, options, Workers(executor, tell))
    mapping = price(best.schedule, board, best.ddr, best.proof, options.budget)
    return replace(mapping, holds=_holds(best.schedule, board, options)) if options.fps else mapping


def _best(
    network: QuantizedNetwork, board: Board, clock_mhz: float | None, options: SystolicOptions, workers: Workers
) -> SearchResult:
    """Of the ways to add maps the first that fits: the Saver adds without a pass of its own, which is never slower.
    Where the least resources are asked for, the better one."""
    results: list[SearchResult] = []
    ways = ways_to_add(network, options)
    for fused in ways:
        try:
            problem = _problem(network, fused, board, options)
            results.append(_search(problem, clock_mhz, options, workers))
        except SystolicError:  # whatever refuses one way to add, the next one may do; the last one's error is raised
            if fused == ways[-1] and not results:
                raise
        if results and options.objective != "resources":
            break
    return min(results, key=lambda result: result.key)


def ways_to_add(network: QuantizedNetwork, options: SystolicOptions) -> tuple[bool, ...]:
    """Whether the Saver adds maps: what is tried, in this order; of a network of which it could add none no more than
    that."""
    return options.fused if fused_additions(network) else (False,)


def _problem(network: QuantizedNetwork, fused: bool, board: Board, options: SystolicOptions) -> Problem:
    """Return what is searched within the budget. fused: whether the Saver adds maps where it can."""
    workload = workload_of(with_copies(network, fused), options.frames, fused)
    check_products(workload.network, workload.layers, board.dsp.kind, options.dsp_products)
    return problem_of(workload, room(board, options.budget), pin(space_for(workload, board), **options.pinned))


def _search(problem: Problem, clock_mhz: float | None, options: SystolicOptions, workers: Workers) -> SearchResult:
    """Search within the budget, which the error names if nothing fits."""
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
    """Return the schedule, and the memory that it was made for; MismatchError if the options ask for another batch or
    another array than the file's."""
    assert options.schedule is not None
    text, name = saved_text(options.schedule, "schedule", "systolic schedule --save FILE")
    schedule = from_json(text, with_copies(network, saved_fused(text, name)), name)
    if options.batch not in (None, schedule.batch):
        raise MismatchError(
            "--batch",
            options.batch,
            schedule.batch,
            where=name,
            remedy="leave --batch out, or save a schedule of that batch",
        )
    for number in ("dsp_clock", "dsp_products"):
        built, pinned = getattr(schedule.array, number), options.pins.get(number)
        if pinned not in (None, built):
            option = f"--{number.replace('_', '-')}"
            remedy = f"leave {option} out, or save a schedule with it"
            raise MismatchError(option, pinned, built, where=name, remedy=remedy)
    return replace(schedule, array=array_in(schedule, options.engine)), saved_ddr(text, name)


def _holds(schedule: SystolicSchedule, board: Board, options: SystolicOptions) -> Holds | None:
    clock = lowest_clock(schedule, board, options.fps, options.ddr_rate(board))
    return Holds(options.fps, clock.mhz) if clock else None


def _ddr(board: Board, clock_mhz: float | None, rate: DdrRate, dsp_clock: int = 1) -> DdrTiming:
    """Return the memory at the clock, the highest if none is given. Raises the errors of ``check_dsp_clock``."""
    highest = board.clocks(highest_mhz(board, dsp_clock))[-1]
    clock = highest if clock_mhz is None else board.nearest_clock(clock_mhz)
    check_dsp_clock(board, clock.mhz, dsp_clock)
    return ddr_timing(board, clock.mhz, rate)


# --- several -------------------------------------------------------------------------------------------------------


def compare(
    networks: Mapping[int, QuantizedNetwork],
    alternatives: Alternatives,
    options: SystolicOptions | None = None,
    executor: Executor | None = None,
    tell: Progress = silent,
) -> SystolicComparison:
    """Every alternative for every network. networks: by the bits that it was quantised to.

    A combination that does not fit is a row with its error. A clock that a board does not make ends the comparison with
    the error of ``Board.nearest_clock``.
    """
    options, rows = options or SystolicOptions(), []
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
        tell(ProgressStep(f"comparing, {number} of {len(choices)} done", number, len(choices)))
        wishes = replace(with_dsps(options, alternatives.engine, dsp), array=array, batch=batch, ddr_gbps=gbps)
        clock = None if clock_mhz is None else board.nearest_clock(clock_mhz).mhz
        try:
            rows.append(Candidate(asked, explore(network, board, clock, wishes, executor)))
        except SystolicError as error:  # whatever refuses one combination is the content of its row
            rows.append(Candidate(asked, None, error))
    names = {network.name for network in networks.values()}
    return SystolicComparison(", ".join(sorted(names)), tuple(rows))


def pareto_front(
    network: QuantizedNetwork,
    board: Board,
    ddr: DdrTiming,
    space: Space | None = None,
    batch: int = 1,
    budget: Budget = Budget(),  # noqa: B008 (frozen)
) -> tuple[SystolicMapping, ...]:
    """The best schedule of every geometry that no other beats in both frames/s and DSPs, the fastest first.

    batch: frames that share the weights' passage; ``space`` is one of the same batch, in which the Saver adds no maps.
    Without a space it does, as for ``front``, where an array that adds fits.
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
    tell: Progress = silent,
) -> ParetoFront:
    """The front of the arrays that the options allow (their pins, batch, memory and budget), as a coarse search finds
    it.

    clock_mhz: the board's highest if it is None. Raises the errors of ``explore``.
    """
    options = options or SystolicOptions()
    ddr = _ddr(board, clock_mhz, options.ddr_rate(board), options.dsp_clock)
    schedules: tuple[SystolicSchedule, ...] = ()
    for fused in ways_to_add(network, options):
        schedules = pareto.pareto_front(_problem(network, fused, board, options), ddr, tell)
        if schedules:
            break
    points = tuple(price(schedule, board, ddr, budget=options.budget) for schedule in schedules)
    if not points:
        _check_some_fit(network, board, clock_mhz or ddr.clock_mhz, options)
        raise UnsupportedError(
            f"a Pareto front of {network.name} on {board.title} with these pins",
            "none of the few arrays that it tries fits, and others do",
            remedy="pin fewer numbers",
        )
    return ParetoFront(points)


def _check_some_fit(network: QuantizedNetwork, board: Board, clock_mhz: float, options: SystolicOptions) -> None:
    """Raise the error of ``explore`` if none of all arrays fits."""
    _best(network, board, clock_mhz, replace(options, objective="fps"), Workers())
