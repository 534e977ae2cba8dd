"""Schedules for people: the best one, why it is, and what others would cost. What ``systolic schedule`` and
``systolic compare`` call; everything printed is *modelled* unless it says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from itertools import product
from typing import Any

from boards.board import Board
from boards.errors import ScheduleError
from cnn.quantized import QuantizedNetwork
from scheduler.hardware.ddr import DDR_EFFICIENCY, DdrTiming, ddr_timing
from scheduler.systolic.area.fabric import fabric
from scheduler.systolic.area.placement import place
from scheduler.systolic.baselines import baselines
from scheduler.systolic.layers import check_batch
from scheduler.systolic.model.clock import lowest_clock
from scheduler.systolic.model.cost import cost
from scheduler.systolic.rules import check_schedule
from scheduler.systolic.schedule import SystolicSchedule
from scheduler.systolic.schedule_file import to_json
from scheduler.systolic.search.pareto import pareto_front
from scheduler.systolic.search.runner_up import runners_up
from scheduler.systolic.search.search import Proof, search, search_clocks
from scheduler.systolic.search.space import Goal, Request, Space, pin, space_of
from scheduler.systolic.search.workers import Workers
from systolic.styles.systolic.explored import Comparison, Holds, PricedSchedule, Row
from systolic.styles.systolic.flow import given_schedule


class ShownSchedule(PricedSchedule):
    """As Jupyter shows it; what draws it stands above the values that it draws."""

    def _repr_html_(self) -> str:
        from systolic.report.page import explored_html

        return explored_html(self)


class ShownComparison(Comparison):
    """As Jupyter shows it."""

    def _repr_html_(self) -> str:
        from systolic.report.page import comparison_html

        return comparison_html(self)


# --- one schedule --------------------------------------------------------------------------------------------------


def explore(
    network: QuantizedNetwork,
    board: Board,
    clock_mhz: float | None = None,
    objective: str = "fps",
    frames_per_second: float = 0.0,
    pins: Mapping[str, int | str | None] | None = None,
    efficiency: float | None = None,
    executor: Executor | None = None,
    tell: Callable[[str], None] = lambda _: None,
    batch: int = 1,
) -> ShownSchedule:
    """The best schedule.

    clock_mhz: where it is None, that of the board which gives the least time a frame, the highest for objectives at a
    rate. pins: see scheduler/systolic/search/space.py, ``pin``. batch: frames that
    share the weights' passage.
    Raises BoardError for a clock that the board does not make, ScheduleError for an unknown objective, an impossible
    pin, and where nothing fits.
    """
    goal = Goal(objective, frames_per_second)
    ddr = None if clock_mhz is None else _ddr(board, clock_mhz, efficiency)
    request = Request(goal, pin(space_of(network, board, batch=batch), **(pins or {})), batch)
    if ddr is None:
        given = DDR_EFFICIENCY if efficiency is None else efficiency
        found = search_clocks(network, board, request, Workers(executor, tell), given)
    else:
        found = search(network, board, ddr, request, Workers(executor, tell))
    priced = price(found.schedule, board, found.ddr, found.proof)
    return replace(priced, holds=_holds(found.schedule, board, goal, efficiency)) if frames_per_second else priced


def _holds(schedule: SystolicSchedule, board: Board, goal: Goal, efficiency: float | None) -> Holds | None:
    given = DDR_EFFICIENCY if efficiency is None else efficiency
    clock = lowest_clock(schedule, board, goal.frames_per_second, given)
    return Holds(goal.frames_per_second, clock.mhz) if clock else None


def _ddr(board: Board, clock_mhz: float | None, efficiency: float | None) -> DdrTiming:
    clock = board.clocks()[-1] if clock_mhz is None else board.nearest_clock(clock_mhz)
    return ddr_timing(board, clock.mhz) if efficiency is None else ddr_timing(board, clock.mhz, efficiency)


def explore_given(
    network: QuantizedNetwork,
    board: Board,
    text: str,
    name: str,
    clock_mhz: float | None = None,
    batch: int | None = None,
) -> ShownSchedule:
    """A schedule saved as JSON, priced; ScheduleError names the rule that a hand edit breaks. batch: what the file's
    has to be, where it is not None."""
    return price(given_schedule(network, (text, name), batch), board, _ddr(board, clock_mhz, None), None)


def price(schedule: SystolicSchedule, board: Board, ddr: DdrTiming, proof: Proof | None = None) -> ShownSchedule:
    check_schedule(schedule)
    placement, used = place(schedule.array, board)
    priced = cost(schedule, ddr)
    return ShownSchedule(
        board,
        schedule,
        priced,
        used,
        fabric(schedule.array),
        baselines(schedule.network, schedule.array, ddr),
        runners_up(schedule, priced),
        proof,
        placement,
    )


def saved(explored: PricedSchedule) -> str:
    """The schedule as JSON, for an editor and ``generate --schedule``."""
    return to_json(explored.schedule)


# --- several -------------------------------------------------------------------------------------------------------


def compare(
    networks: Mapping[int, QuantizedNetwork],
    boards: Sequence[Board],
    arrays: Sequence[str] = (),
    clock_mhz: float | None = None,
    objective: str = "fps",
    frames_per_second: float = 0.0,
    executor: Executor | None = None,
    batches: Sequence[int] = (1,),
) -> ShownComparison:
    """Every board × array × bits × batch; an empty ``arrays`` searches the geometry too. networks: the network
    quantised to so many bits. batches: frames that share the weights' passage. A combination that does not fit is a row
    with its sentence; ScheduleError for what is no array or no batch."""
    rows = []
    for batch in batches:
        check_batch(batch)
    for (bits, network), board, array, batch in product(networks.items(), boards, arrays or ("best",), batches):
        asked = f"{board.name}, {array}, int{bits}" + (f", batch {batch}" if tuple(batches) != (1,) else "")
        pins: dict[str, int | str | None] = {} if array == "best" else dict(geometry_pins(array))
        try:
            one = explore(network, board, clock_mhz, objective, frames_per_second, pins, executor=executor, batch=batch)
            rows.append(Row(asked, one))
        except ScheduleError as error:
            rows.append(Row(asked, None, str(error)))
    names = {network.name for network in networks.values()}
    return ShownComparison(", ".join(sorted(names)), tuple(rows))


def geometry_pins(text: str) -> dict[str, int]:
    """ "13x16x16" → rows, columns, lanes."""
    parts = text.lower().replace("×", "x").split("x")
    if len(parts) != 3 or not all(part.isdigit() for part in parts):
        raise ScheduleError(f"an array is ROWSxCOLUMNSxLANES, such as 13x16x16, not {text!r}")
    return dict(zip(("rows", "columns", "lanes"), map(int, parts), strict=True))


def front(
    network: QuantizedNetwork, board: Board, ddr: DdrTiming, space: Space | None = None, batch: int = 1
) -> tuple[ShownSchedule, ...]:
    """The best schedule of every geometry that no other beats in both frames/s and DSPs, the fastest first.

    batch: frames that share the weights' passage; ``space`` is one of the same batch.
    """
    schedules = pareto_front(network, board, ddr, Request(space=space, batch=batch))
    return tuple(price(schedule, board, ddr) for schedule in schedules)


@contextmanager
def workers(count: int = 1, dask: str | None = None, seconds: float = 10) -> Iterator[Executor | None]:
    """An executor for the search: processes of this machine, or a Dask cluster's; None for one process.

    seconds: how long a Dask scheduler may take to answer; ScheduleError where it does not.
    """
    if dask is not None:
        with _dask(dask, seconds) as executor:
            yield executor
    elif count > 1:
        from concurrent.futures import ProcessPoolExecutor

        with ProcessPoolExecutor(count) as pool:
            yield pool
    else:
        yield None


@contextmanager
def _dask(address: str, seconds: float) -> Iterator[Executor]:
    try:
        distributed: Any = import_module("distributed")  # partly typed, and an extra
    except ImportError as error:
        raise ScheduleError("--dask needs the package distributed: pip install -e '.[dask]'") from error
    try:
        client = distributed.Client(address, timeout=seconds)
    except (OSError, ValueError) as error:
        raise ScheduleError(
            f"no Dask scheduler answers at {address!r}: {error}; start one with: dask scheduler"
        ) from error
    with client:
        # Not pure: a task that is given again after its worker died is to run again, and not to be the one that failed.
        yield client.get_executor(pure=False)
