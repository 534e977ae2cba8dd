"""The exact folding search, compared with a brute-force search, and with the other searches on well-known networks."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from boards.board import Board, load
from boards.errors import DoesNotFitError, MismatchError, RangeError, SystolicError, ToolError
from scheduler.hardware.budget import Budget
from scheduler.streaming import graph as g
from scheduler.streaming.area.budget import area, fits, limits
from scheduler.streaming.area.parts import block_usage
from scheduler.streaming.area.total import edge_usage, usage
from scheduler.streaming.area.usage import NOTHING
from scheduler.streaming.lower import lower
from scheduler.streaming.model.converters import edge_of
from scheduler.streaming.model.cycles import block_cycles, frame_cycles
from scheduler.streaming.model.depths import LEAST_UNIT_DEPTH, unit_depth
from scheduler.streaming.result import Goal
from scheduler.streaming.rules import violations
from scheduler.streaming.search import exact, greedy, solve
from scheduler.streaming.search.candidates import Options, candidates
from scheduler.streaming.search.exact import fold
from scheduler.streaming.search.space import space_of
from tests.support.errors import raises
from tests.support.low_bit import Layers, mobilenet, skipping, ultranet

ROOT = Path(__file__).resolve().parents[3]

# The solvers are imported here, because the import would add two seconds to the first test that solves.
pytest.importorskip("ortools.sat.python.cp_model", reason="exact folding needs OR-tools: pip install -e '.[solver]'")
pytest.importorskip("scipy.optimize", reason="exact folding needs scipy: pip install -e '.[solver]'")

ULTRA96 = load("ultra96-v2")
UNIT = LEAST_UNIT_DEPTH
LEAST = Options(max_pixels=1, uram_weights=False)


def brute_force(graph: g.StreamGraph, board: Board, goal: Goal, options: Options) -> int | None:
    """Return the least area over all combinations of all candidates, or None if none fits.

    The combinations are built block by block. Of the partial ones, those with the same folds on open streams and the
    same resources are kept once, because they are equal for the remaining blocks.
    """
    found: dict[tuple[g.Fold, ...], set[object]] = {(): {NOTHING}}
    last = {port.block: i for i, block in enumerate(graph.blocks) for port in block.inputs}
    limit = limits(board, goal.budget)
    for index in range(len(graph.blocks)):
        grown: dict[tuple[g.Fold | None, ...], set[object]] = {}
        for known, totals in found.items():
            for tried in candidates(graph, index, board, options):
                folds = [*known, tried]
                if goal.cycles and _cycles(graph, folds, index) > goal.cycles:
                    continue
                if list(_broken(graph, folds, index)):
                    continue
                more = block_usage(graph, index, tried, board)
                for port in range(len(graph.blocks[index].inputs)):
                    more += edge_usage(edge_of(graph, folds, index, port), board)
                key = tuple(f if last.get(i, -1) > index else None for i, f in enumerate(folds))
                fit = {total + more for total in totals if fits(total + more, limit)}  # type: ignore[operator]
                grown.setdefault(key, set()).update(fit)
        found = grown  # type: ignore[assignment]
    return min((area(total, board) for totals in found.values() for total in totals), default=None)  # type: ignore[arg-type]


def _cycles(graph: g.StreamGraph, folds: Sequence[g.Fold | None], index: int) -> int:
    made = [
        one.cycles
        for port in range(len(graph.blocks[index].inputs))
        for one in edge_of(graph, folds, index, port).converters  # type: ignore[arg-type]
    ]
    return max([block_cycles(graph, index, folds[index]), *made])  # type: ignore[arg-type]


def _broken(graph: g.StreamGraph, folds: Sequence[g.Fold | None], index: int) -> list[SystolicError]:
    """Return the errors of block ``index`` if the folds of the blocks before it are chosen."""
    full = [f or g.Fold() for f in folds] + [g.Fold()] * (len(graph.blocks) - len(folds))
    name = graph.blocks[index].name
    return [error for error in violations(graph, full) if error.where == name]


def small(layers: list[tuple[str, int]], channels: int) -> g.StreamGraph:
    made = Layers(channels, 4, 4)
    for kind, filters in layers:
        if kind == "conv":
            made.conv(filters, 3)
        elif kind == "point":
            made.conv(filters, 1)
        elif kind == "depthwise":
            made.depthwise()
        else:
            made.pool(2, 1)
    return lower(made.network())


KINDS = st.sampled_from(["conv", "point", "depthwise", "pool"])


@settings(max_examples=12, suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    st.lists(st.tuples(KINDS, st.sampled_from([1, 2, 3])), min_size=1, max_size=2), st.sampled_from([1, 2]), st.data()
)
def test_brute_force_agrees(layers: list[tuple[str, int]], channels: int, data: st.DataObject) -> None:
    graph = small(layers, channels)
    space = space_of(graph, ULTRA96, LEAST)
    goal = Goal(data.draw(st.sampled_from(space.cycle_counts())))
    expected = brute_force(graph, ULTRA96, goal, LEAST)
    assert expected is not None
    found = fold(graph, ULTRA96, goal, space=space)
    assert (found.state, found.area) == ("optimal", expected)
    assert found.cycles <= (goal.cycles or 0)


@pytest.mark.parametrize(
    "layers",
    [
        ["point", "pool", "point", "pool"],
        pytest.param(["point"] * 4, marks=pytest.mark.engine),
        pytest.param(["conv", "point", "point", "pool"], marks=pytest.mark.engine),
    ],
)
def test_brute_force_agrees_on_four_layers(layers: list[str]) -> None:
    graph = small([(kind, 2) for kind in layers], 1)
    space = space_of(graph, ULTRA96, LEAST)
    counts = space.cycle_counts()
    for cycles in (counts[0], counts[len(counts) // 2]):
        expected = brute_force(graph, ULTRA96, Goal(cycles), LEAST)
        assert fold(graph, ULTRA96, Goal(cycles), space=space).area == expected


def test_brute_force_agrees_with_a_tight_budget() -> None:
    graph = small([("conv", 4), ("point", 4)], 2)
    free = fold(graph, ULTRA96, Goal(64), LEAST)
    tight = Goal(64, budget=Budget(lut=(free.usage.lut - 60) / ULTRA96.resources.lut))
    expected = brute_force(graph, ULTRA96, tight, LEAST)
    assert expected is not None
    assert expected > free.area
    assert fold(graph, ULTRA96, tight, LEAST).area == expected


@pytest.mark.engine
def test_brute_force_agrees_with_channels_padded_and_two_pixels() -> None:
    options = Options(max_padding=1, max_pixels=2)
    graph = small([("point", 3), ("point", 2)], 1)
    for cycles in (40, 56, 96):
        expected = brute_force(graph, ULTRA96, Goal(cycles), options)
        assert fold(graph, ULTRA96, Goal(cycles), options).area == expected


def test_exact_area_is_the_area_of_the_folding() -> None:
    found = fold(lower(skipping()), ULTRA96, Goal(16_384))
    assert found.area == area(usage(found.folding, ULTRA96), ULTRA96)
    assert found.cycles == frame_cycles(found.folding.graph, found.folding.folds) <= 16_384
    assert found.folding.depths  # the map that waits before the concat


def test_exact_with_padding_is_smaller_for_seven_filters() -> None:
    """7 filters fold by 7 or by 1. With one padding channel, they also fold by 4."""
    graph = lower(Layers(8, 16, 16).conv(7, 3).conv(8, 3).network())
    plain, padded = (fold(graph, ULTRA96, Goal(2048 + UNIT), Options(max_padding=p)) for p in (0, 1))
    assert padded.area < plain.area
    assert any(f.pad_out for f in padded.folding.folds)


def test_exact_pads_the_ends_only_with_pad_ends() -> None:
    graph = lower(Layers(3, 16, 16).conv(7, 3).network())
    inner = fold(graph, ULTRA96, Goal(1024 + UNIT), Options(max_padding=1))
    assert not any(f.pad_in or f.pad_out for f in inner.folding.folds)
    free = fold(graph, ULTRA96, Goal(1024 + UNIT), Options(max_padding=1, pad_ends=True))
    assert any(f.pad_in or f.pad_out for f in free.folding.folds)
    assert free.area < inner.area


@pytest.mark.engine
def test_exact_area_is_at_most_that_of_greedy() -> None:
    graph = lower(mobilenet(32))
    space = space_of(graph, ULTRA96, Options())
    for target in (4000, 40_000):
        exact = fold(graph, ULTRA96, Goal(target), space=space)
        for strict in (True, False):
            published = greedy.fold(graph, ULTRA96, Goal(target), strict=strict)
            assert exact.cycles <= target
            assert exact.area <= published.area or not published.fits or published.cycles > target


def test_exact_highest_rate_is_proven_by_the_next_count() -> None:
    graph = lower(Layers(8, 16, 16).conv(16, 3).pool().conv(16, 3).network())
    board = load("pynq-z2")
    goal = Goal(None, budget=Budget(lut=0.05, dsp=0.1))
    found = fold(graph, board, goal)
    assert (found.state, found.rate_gap, found.fits) == ("optimal", 0.0, True)
    counts = space_of(graph, board, Options()).cycle_counts()
    below = [c for c in counts if c < found.cycles][-1]
    with raises(DoesNotFitError, nearest=f"{found.cycles:,} cycles per frame") as caught:
        fold(graph, board, Goal(below, budget=goal.budget))
    assert caught.value.subject.startswith(f"drawn on PYNQ-Z2 at {below:,} cycles per frame")
    assert caught.value.need is not None
    assert caught.value.have is not None
    assert caught.value.need > caught.value.have


def test_exact_refuses_a_target_below_every_count() -> None:
    graph = lower(Layers(8, 16, 16).conv(16, 3).network())
    with raises(RangeError, where="drawn", got=100, low=space_of(graph, ULTRA96, Options()).cycle_counts()[0]):
        fold(graph, ULTRA96, Goal(100))


def test_exact_with_a_deadline_returns_the_best_and_its_gap() -> None:
    graph = lower(ultranet())
    space = space_of(graph, ULTRA96, Options(max_pixels=1))
    found = fold(graph, ULTRA96, Goal(204_800), deadline=2, space=space)
    assert found.state in ("feasible", "optimal")
    assert 0 <= found.gap < 1
    assert found.cycles <= 204_800


@pytest.mark.engine
def test_exact_with_a_short_deadline_keeps_the_bisection_result() -> None:
    """If the bisection uses all the time, the search returns a folding that fits, and claims no proof."""
    graph = lower(ultranet())
    space = space_of(graph, ULTRA96, Options(max_pixels=1))
    found = fold(graph, ULTRA96, Goal(None), deadline=0.05, space=space)
    assert found.fits
    assert found.state == "feasible"
    assert found.gap > 0 or found.rate_gap > 0


@pytest.mark.engine
def test_exact_without_a_solution_in_time_returns_the_greedy_folding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(solve, "search_among", lambda *_: solve.Solution("unknown"))
    graph = lower(ultranet())
    found = fold(graph, ULTRA96, Goal(None), deadline=0.05, space=space_of(graph, ULTRA96, Options(max_pixels=1)))
    assert found.fits
    assert found.state == "feasible"
    assert 0 < found.rate_gap < 1
    monkeypatch.setattr(exact._Targets, "_known", lambda *_: solve.Solution("unknown"))
    with raises(ToolError, tool="the solver", remedy="allow more time"):
        fold(graph, ULTRA96, Goal(None), deadline=0.05)


@pytest.mark.engine
def test_exact_fits_ultranet_on_ultra96_at_the_contest_rate() -> None:
    found = fold(lower(ultranet()), ULTRA96, Goal(102_400 + unit_depth(72)), deadline=12.0)
    assert 102_400 < found.cycles <= 102_400 + unit_depth(72)
    assert found.fits
    assert found.usage.dsp <= 360
    assert found.gap < 0.03


@pytest.mark.engine
def test_candidates_keep_the_constraints() -> None:
    graph = lower(skipping())
    for index, block in enumerate(graph.blocks):
        options = Options(max_padding=2)
        for tried in candidates(graph, index, ULTRA96, options)[::7]:
            folds = [g.Fold()] * len(graph.blocks)
            folds[index] = tried
            own = [error for error in violations(graph, folds) if error.where == block.name]
            window = [error for error in own if isinstance(error, MismatchError) and error.expected == 0]
            assert own == window, (tried, own)


def test_cycle_counts_include_those_of_all_combinations() -> None:
    graph = small([("point", 2), ("pool", 0)], 2)
    space = space_of(graph, ULTRA96, Options(max_pixels=2))
    each = [candidates(graph, i, ULTRA96, Options(max_pixels=2)) for i in range(len(graph.blocks))]
    distinct = [list({(f.pe, f.simd, f.m, f.pixels): f for f in folds}.values()) for folds in each]
    counts = {frame_cycles(graph, folds) for folds in itertools.product(*distinct)}
    assert counts <= set(space.cycle_counts())
    assert np.all(np.diff(space.cycle_counts()) > 0)


@pytest.mark.engine
def test_interrupt_after_a_search_raises_in_python() -> None:
    """By default, CP-SAT installs its own handler of SIGINT, and the next SIGINT would end the process."""
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a terminal\n"
        "from boards.board import load; from scheduler.streaming.search import exact\n"
        "from scheduler.streaming.result import Goal; from tests.scheduler.streaming.test_folding_file import GRAPH\n"
        "assert exact.fold(GRAPH, load('ultra96-v2'), Goal(40_000)).fits\n"
        "try: signal.raise_signal(signal.SIGINT)\n"
        "except KeyboardInterrupt: print('caught')"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "caught\n"), done.stderr
