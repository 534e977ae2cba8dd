"""The search against pricing every candidate by itself, its sentences, and workers that die."""

from __future__ import annotations

from dataclasses import replace

import pytest
from quantised import Builder

from boards.board import load
from boards.errors import ScheduleError
from scheduler.brute_force import brute_force
from scheduler.cost import cost, link_of
from scheduler.search import search
from scheduler.space import Goal, Space

ZCU104 = load("zcu104")
LINK = link_of(ZCU104, 300)

SMALL = Space(
    rows=(3, 4),
    shapes=((8, 8), (8, 4)),
    save_rows=(1, 2),
    chunks=(8,),
    map_ports=(1, 2),
    weight_ports=(2,),
    row_depths=(64, 512),
    weight_depths=(128, 512),
    kept_depths=(32,),
    strips=2,
)

NETWORKS = {
    "pools": Builder(3, 13, 12).conv(16, 3).pool().conv(24, 3).pool(1).network(),
    "strides": Builder(3, 15, 9).conv(8, 3, 2).conv(16, 5, 2).network(),
    "dense": Builder(2, 6, 6).conv(8, 1).pool().dense(10).network(),
}
GOALS = (Goal(), Goal("latency"), Goal("ddr", 20_000), Goal("resources", 20_000), Goal("ddr", 40_000))


@pytest.mark.parametrize("goal", GOALS, ids=lambda g: f"{g.objective}-{g.frames_per_second:g}")
@pytest.mark.parametrize("name", NETWORKS)
def test_the_search_finds_what_pricing_everything_finds(name: str, goal: Goal) -> None:
    link = replace(LINK, milli_bytes=6_000)  # a memory that matters
    wanted = brute_force(NETWORKS[name], ZCU104, link, goal, SMALL)
    if wanted is None:
        with pytest.raises(ScheduleError, match="does not reach"):
            search(NETWORKS[name], ZCU104, link, goal, SMALL)
        return
    found = search(NETWORKS[name], ZCU104, link, goal, SMALL)
    assert found.key == wanted
    priced = cost(found.schedule, link)
    assert {priced.cycles, priced.traffic.total} <= set(found.key)
