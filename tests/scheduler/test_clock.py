"""Clocks: the lowest clock for a frame rate, and the search over all clocks."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import pytest

from boards.board import Board, load
from cnn.quantized import QuantizedNetwork
from scheduler.hardware.ddr import DdrRate, DdrTiming, ddr_rate, ddr_timing
from scheduler.systolic.array import Array
from scheduler.systolic.model.clock import lowest_clock
from scheduler.systolic.model.cost import cost
from scheduler.systolic.search.search import search, search_clocks
from scheduler.systolic.search.space import Goal, Space, pin
from scheduler.systolic.search.workers import Workers
from tests.support.quantised import Builder
from tests.support.schedules import first_fit
from tests.support.searches import problem, space_of

ZCU104 = load("zcu104")


@pytest.mark.parametrize(("board", "efficiency"), [("zcu104", 0.85), ("ultra96-v2", 0.3)])
def test_lowest_clock_is_the_first_that_reaches_the_rate(board: str, efficiency: float) -> None:
    # The required rate is between the rates of two neighbouring clocks.
    on = load(board)
    memory = ddr_rate(on, efficiency=efficiency)
    schedule = first_fit(NETWORKS["pools"], Array(3, 8, 8, chunk=8))
    clocks = on.clocks()[-40::8]
    rates = [cost(schedule, ddr_timing(on, clock.mhz, memory)).frames_per_second for clock in clocks]
    assert rates == sorted(rates)
    for below, rate in pairwise(rates):
        lowest = lowest_clock(schedule, on, (below + rate) / 2, memory)
        assert lowest is not None
        for clock, its_rate in zip(clocks, rates, strict=True):
            assert (its_rate >= (below + rate) / 2) == (clock.mhz >= lowest.mhz)


def few(network: QuantizedNetwork, board: Board) -> Space:
    """Return a space of about four geometries, so that searching every clock is quick."""
    pinned = pin(space_of(network, board), save_rows=1, chunk=8, map_ports=1, weight_ports=2)
    return replace(pinned, rows=(3, 7), shapes=((8, 8),), row_depths=(1024, 8192), column_tiles=2)


def test_lowest_clock_unreachable_rate_gives_none() -> None:
    schedule = first_fit(NETWORKS["pools"], Array(3, 8, 8, chunk=8))
    assert lowest_clock(schedule, ZCU104, 1e6) is None


NETWORKS = {
    "pools": Builder(3, 13, 12).conv(16, 3).pool().conv(24, 3).pool(1).network(),
    "weights": Builder(3, 8, 8).conv(16, 3).dense(256).network(),
}
CASES = [
    ("pools", "pynq-z2", 1000, False),
    ("weights", "ultra96-v2", 1000, False),
    ("weights", "ultra96-v2", 116, True),
]


@pytest.mark.engine
@pytest.mark.parametrize(("network", "board", "axi", "lower"), CASES)
def test_search_clocks_equals_the_best_search_of_every_clock(
    network: str, board: str, axi: float, lower: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All clocks of the board down to a fifth of the target are searched. A lower clock wins if the memory moves only
    # an eighth of the bytes per cycle at the highest clock.
    on, drawn = load(board), NETWORKS[network]
    on = replace(on, fmax=replace(on.fmax, axi=min(axi, on.fmax.axi)))
    space = few(drawn, on)
    made = [clock.mhz for clock in on.target_clocks()]

    def timing(board: Board, mhz: float, rate: DdrRate | None = None) -> DdrTiming:
        ddr = ddr_timing(board, mhz, rate)
        return replace(ddr, milli_bytes=ddr.milli_bytes // 8) if lower and mhz == made[-1] else ddr

    monkeypatch.setattr("scheduler.systolic.search.search.ddr_timing", timing)
    clocks = [mhz for mhz in made if mhz >= made[-1] / 5]
    times = [search(problem(drawn, on, space), timing(on, mhz)).key[0] / mhz for mhz in clocks]
    told: list[str] = []
    found = search_clocks(problem(drawn, on, space), workers=Workers(progress=told.append))
    parts = list(dict.fromkeys(words.split("searching, ")[0] for words in told))
    assert parts[0] == ""
    assert all(re.fullmatch(r"at [\d.]+ MHz: |cheapest of the fastest: ", part) for part in parts[1:])
    for part in parts:  # the numbers of a part never go back, and each part says which it is
        priced = [
            int(re.findall(r"searching, (\d+) of", words)[0]) for words in told if words.startswith(f"{part}searching")
        ]
        assert priced == sorted(priced)
    assert found.key[0] / found.ddr.clock_mhz == min(times)
    assert (found.ddr.clock_mhz < clocks[-1]) == lower


def test_search_clocks_required_rate_takes_the_highest_clock() -> None:
    drawn = NETWORKS["pools"]
    found = search_clocks(problem(drawn, ZCU104, few(drawn, ZCU104)), Goal("resources", 1000))
    assert found.ddr.clock_mhz == ZCU104.target_clocks()[-1].mhz
