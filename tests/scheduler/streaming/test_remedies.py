"""The proposals for networks that do not fit, on boards whose resources are reduced."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from boards import board as board_room
from boards.board import Board, load
from boards.errors import DoesNotFitError, SeveralFaultsError
from cnn.ops import QConvolution
from cnn.requantise import Thresholds
from scheduler.hardware.budget import Budget
from scheduler.streaming import graph as g
from scheduler.streaming.lower import lower
from scheduler.streaming.result import Goal
from scheduler.streaming.search import exact, infeasible, program, remedies
from scheduler.streaming.search.candidates import Options
from scheduler.streaming.search.infeasible import too_many_weights
from scheduler.streaming.search.remedies import (
    Proposal,
    Refused,
    _external,
    _larger_boards,
    _other_style,
    _priced,
    _rate,
    what_would_fit,
)
from scheduler.streaming.search.solve import Solution
from scheduler.streaming.search.space import space_of
from scheduler.systolic.network.refusals import check_mappable
from tests.support.cases import cases
from tests.support.errors import raises
from tests.support.low_bit import Layers

pytest.importorskip("ortools.sat.python.cp_model", reason="exact folding needs OR-tools: pip install -e '.[solver]'")
pytest.importorskip("scipy.optimize", reason="exact folding needs scipy: pip install -e '.[solver]'")

ULTRA96 = load("ultra96-v2")
LEAST = Options(max_pixels=1)
GRAPH = lower(Layers(16, 2, 2).conv(32, 1).conv(64, 1).conv(8, 1).network("tiny"))
"""Layers with 512, 2,048 and 512 weights of 4 bits."""


def small(**resources: int) -> Board:
    return replace(ULTRA96, resources=replace(ULTRA96.resources, **resources))


def refused(board: Board = ULTRA96, goal: Goal = Goal(None), options: Options = LEAST) -> Refused:  # noqa: B008
    return Refused(GRAPH, board, goal, options, None)


def of(bits: int) -> Layers:
    return Layers(3, 8, 8, "INT4").conv(bits, 1)


def with_thresholds(made: Layers) -> Layers:
    """Give the last layer an activation of 15 thresholds."""
    node = made.nodes[-1]
    assert isinstance(node.op, QConvolution)
    channels = node.shape.channels
    thresholds = Thresholds(np.tile(np.arange(15, dtype=np.int64), (channels, 1)), np.zeros(channels, np.bool_))
    made.nodes[-1] = replace(node, op=replace(node.op, requantiser=thresholds))
    return made


# --- proposed layers and boards ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bits", "before", "proposed"),
    [
        # conv2 has 8,192 bits of weights, and the others 2,048 each. 9/10 or 6/10 of ``bits`` may stay on the chip.
        (4551, (), [("conv2", "conv1"), ("conv2", "conv1", "conv3")]),  # .9 · 4551 = 4095.9: room for one
        (4552, (), [("conv2",), ("conv2", "conv1"), ("conv2", "conv1", "conv3")]),  # 4096.8: for both; .6: for one
        (7000, (), [("conv2",), ("conv2", "conv1", "conv3")]),  # .6 · 7000 = 4200: room for both
        (4552, ("conv3",), [("conv3", "conv2"), ("conv3", "conv2", "conv1")]),
        (4552, ("conv1", "conv2", "conv3"), []),
        (100_000, ("conv2",), [("conv2", "conv1"), ("conv2", "conv1", "conv3")]),  # at least one more layer
    ],
)
def test_external_proposals_move_the_largest_layers_first(
    monkeypatch: pytest.MonkeyPatch, bits: int, before: tuple[str, ...], proposed: list[tuple[str, ...]]
) -> None:
    """On-chip weights use at most .9 of the memory, then .6, then nothing. No proposal repeats an earlier one."""
    monkeypatch.setattr(infeasible, "on_chip_bits", lambda *_: bits)
    assert list(_external(refused(options=replace(LEAST, external=before)))) == proposed


def test_external_proposals_count_uram_if_allowed() -> None:
    """All layers except the largest have 4,096 bits. Without URAM, no on-chip memory holds them."""
    board = small(bram36=0, uram=1)
    without = replace(LEAST, uram_weights=False)
    assert list(_external(refused(board))) == [("conv2",), ("conv2", "conv1", "conv3")]
    assert list(_external(refused(board, options=without))) == [("conv2", "conv1", "conv3")]


@cases("name", board_room.names())
def test_larger_boards_ascend_by_luts(name: str) -> None:
    has = load(name).resources
    boards = list(_larger_boards(load(name)))
    luts = [board.resources.lut for board in boards]
    assert luts == sorted(luts)
    for other in (load(other) for other in board_room.names()):
        more = any(getattr(other.resources, kind) > getattr(has, kind) for kind in ("lut", "bram36", "uram", "dsp"))
        assert (other.name in [board.name for board in boards]) == (more and other.name != name)


@cases("kind", ["lut", "bram36", "uram", "dsp"])
def test_larger_boards_have_more_of_one_resource(kind: str) -> None:
    zcu104 = load("zcu104")
    most = replace(zcu104, resources=replace(zcu104.resources, lut=10**6, bram36=10**4, uram=10**4, dsp=10**5))
    assert list(_larger_boards(replace(most, name="most"))) == []
    lacking = replace(
        most, name="most", resources=replace(most.resources, **{kind: getattr(zcu104.resources, kind) - 1})
    )
    assert "zcu104" in [board.name for board in _larger_boards(lacking)]
    assert "zcu104" not in [board.name for board in _larger_boards(replace(lacking, name="zcu104"))]


# --- tested proposals -------------------------------------------------------------------------------------------------


def test_priced_folding_meets_the_rate_or_is_slower() -> None:
    counts = space_of(GRAPH, ULTRA96, LEAST).cycle_counts()
    for cycles in (counts[0], counts[len(counts) // 2], counts[-1]):
        result = _priced(refused(goal=Goal(cycles)), ULTRA96, LEAST)
        assert result is not None
        assert (result.cycles <= cycles, result.fits) == (True, True)
    slow = _priced(refused(goal=Goal(counts[0] - 1)), ULTRA96, LEAST)
    assert slow is not None
    assert counts[0] <= slow.cycles <= counts[-1]
    assert _priced(refused(), ULTRA96, LEAST) is not None
    assert _priced(refused(goal=Goal(None, budget=Budget(lut=0.001))), ULTRA96, LEAST) is None
    assert _priced(refused(), small(bram36=1, lut=10, lutram=10), LEAST) is None


def test_priced_tries_the_goal_and_then_the_lowest_rate() -> None:
    space = space_of(GRAPH, ULTRA96, LEAST)
    slowest = space.cycle_counts()[-1]
    asked: list[int] = []
    real = program.program_of

    def program_of(space: Any, goal: Goal, cycles: int) -> Any:
        asked.append(cycles)
        return real(space, goal, cycles)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remedies, "program_of", program_of)
        patch.setattr(remedies, "solve", lambda *_: Solution("infeasible"))
        assert _priced(refused(goal=Goal(100)), ULTRA96, LEAST) is None
        assert _priced(refused(), ULTRA96, LEAST) is None
    assert asked == [100, slowest, slowest]


def test_rate_states_whether_the_goal_is_met() -> None:
    result: Any = SimpleNamespace(cycles=500)
    assert _rate(refused(), result) == ""
    assert _rate(refused(goal=Goal(500)), result) == _rate(refused(goal=Goal(501)), result) == ", at this rate"
    assert _rate(refused(goal=Goal(499)), result) == ", at a lower rate"


def test_proposal_names_external_weights_first() -> None:
    board = small(bram36=1, lut=2500, lutram=2000)
    for cycles, rate in ((None, ""), (3000, ", at this rate"), (300, ", at a lower rate")):
        nearest = f"the weights of conv2 from DDR (--external conv2){rate}"
        assert what_would_fit(refused(board, Goal(cycles))) == Proposal(nearest)


def test_proposal_names_larger_boards_and_then_the_systolic_style(monkeypatch: pytest.MonkeyPatch) -> None:
    board = small(bram36=1, lut=5000, lutram=100)
    assert what_would_fit(refused(board)) == Proposal("PYNQ-Z2 (--board pynq-z2)")
    assert what_would_fit(refused(board, Goal(10**6))) == Proposal("PYNQ-Z2 (--board pynq-z2), at this rate")
    priced: list[tuple[str, tuple[str, ...]]] = []
    monkeypatch.setattr(remedies, "_priced", lambda _, board, options: priced.append((board.name, options.external)))
    proposal = what_would_fit(refused(board))
    assert proposal.nearest == ""
    assert "systolic generate NET --style systolic" in proposal.remedy
    own = [("ultra96-v2", names) for names in _external(refused(board))]
    assert priced == own + [(larger.name, ()) for larger in _larger_boards(board)]


@cases(
    "made, maps",
    [
        (of(8), True),
        (of(8).pool().average().dense(4), True),
        (of(8).sum(1, 1), True),
        (of(8).product(1, 1), True),
        (of(8).conv(8, 1).concat(1, 2).conv(4, 1), True),
        (of(8).reorg(2, 1), True),
        (of(8).slice(0, 4, 1).conv(4, 1), True),
        (of(8).spread(2, 2), True),
        (of(8).upsample(2), True),
        (of(8).shares("stable"), False),
        (with_thresholds(of(8)), False),
    ],
)
def test_proposal_of_the_systolic_style_requires_its_support_of_the_layers(made: Layers, maps: bool) -> None:
    network = made.network()
    graph = lower(network)
    assert ("systolic generate NET" in _other_style(replace(refused(), graph=graph))) == maps
    with nullcontext() if maps else pytest.raises(SeveralFaultsError):
        check_mappable(network)


def test_error_for_too_many_weights_has_a_proposal() -> None:
    board = small(bram36=1, lut=100, lutram=100)
    many = lower(Layers(64, 2, 2).conv(256, 1).network("many"))
    found = too_many_weights(many, board, Budget(), ())
    assert found is not None
    with raises(DoesNotFitError, subject=found.subject, resource=found.resource, need=found.need) as caught:
        exact.fold(many, board, Goal(None), LEAST)
    assert caught.value.nearest
    assert isinstance(many.blocks[1].op, g.MatrixVector)
