"""The sentence about the next best tiling, by hand, and compared with all other tilings of a schedule."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from boards.board import load
from scheduler.hardware.ddr import ddr_timing
from scheduler.systolic.array import Array
from scheduler.systolic.model.cost import cost, layer_cost
from scheduler.systolic.model.cycles import PARTS
from scheduler.systolic.needs import fits
from scheduler.systolic.search.runner_up import _comparison, runners_up
from scheduler.systolic.shape import steps_after
from scheduler.systolic.tiling import BufferNeeds
from tests.support.cases import cases
from tests.support.quantised import Builder
from tests.support.schedules import first_fit, legal_tilings

ARRAY = Array(3, 8, 8, row_depth=64, weight_depth=128, kept_depth=64, chunk=8, channel_tiles=8)
DDR = ddr_timing(load("zcu104"), 300)


def costed(total: int, traffic: int, overlap: bool = True, count: int = 2, **parts: int) -> Any:
    """Return the cost of a layer under a tiling."""
    return SimpleNamespace(
        total=total,
        traffic=SimpleNamespace(total=traffic),
        tiling=SimpleNamespace(order="weights-resident", overlap=overlap, columns=SimpleNamespace(count=count)),
        cycles=SimpleNamespace(**{**dict.fromkeys(PARTS, 0), **parts}),
    )


CHOSEN = costed(1000, 5000, count=1, compute=700, ddr=300)


@cases(
    "rival, line",
    [
        (costed(1000, 5000), "as fast, +0 bytes"),
        (costed(1000, 6500), "as fast, +1,500 bytes"),
        (costed(1000, 4000), "as fast, -1,000 bytes"),
        (costed(3500, 5010, compute=800, ddr=2700), "+2,500 cycles (ddr +2,400), +10 bytes"),
        (costed(1100, 5000, compute=900, ddr=200), "+100 cycles (compute +200), +0 bytes"),
        (costed(900, 5000, compute=700, ddr=200), "-100 cycles (fill +0), +0 bytes"),
    ],
)
def test_comparison_names_the_part_that_grows_most(rival: Any, line: str) -> None:
    assert _comparison(CHOSEN, rival) == f"weights-resident, 2 column tile(s): {line}"


@cases("ours", [True, False])
@cases("theirs", [True, False])
def test_comparison_says_no_overlap_if_only_the_rival_lacks_it(ours: bool, theirs: bool) -> None:
    line = _comparison(costed(10, 10, overlap=ours), costed(10, 10, overlap=theirs))
    assert (", no overlap" in line) == (ours and not theirs)


def test_fits_is_false_if_any_buffer_is_one_word_short() -> None:
    array: Any = SimpleNamespace(row_depth=4, weight_depth=5, kept_depth=6, channel_tiles=7, map_depth=8)
    needs = BufferNeeds(4, 5, 6, 7, 8)
    assert fits(needs, array)
    for name in needs.__dataclass_fields__:
        shallow: Any = SimpleNamespace(**{**vars(array), name: getattr(array, name) - 1})
        assert not fits(needs, shallow)


def test_runners_up_are_the_cheapest_other_tilings_that_fit() -> None:
    network = Builder(3, 4, 2).conv(12, 3).conv(12, 1).network()
    schedule = first_fit(network, ARRAY)
    costs, shapes = cost(schedule, DDR), [layer.shape for layer in schedule.layers]
    lines = runners_up(schedule, costs)
    assert len(lines) == len(shapes) == 2
    for index, (line, legal) in enumerate(zip(lines, legal_tilings(network, ARRAY), strict=True)):
        following = steps_after(shapes, index)
        others = [tiling for tiling in legal if tiling != schedule.layers[index].tiling]
        rivals = [layer_cost(ARRAY, shapes[index], way, following, DDR, index == 0) for way in others]
        assert len(rivals) > 1
        least = min((rival.total, rival.traffic.total) for rival in rivals)
        lost = least[0] - costs.layers[index].total
        assert (f": {lost:+,} cycles (" in line) if lost else (": as fast, " in line)
        assert line.endswith(f"{least[1] - costs.layers[index].traffic.total:+,} bytes")
