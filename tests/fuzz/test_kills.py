"""A stopped command keeps the old result or writes the whole new one. `python -m tests.fuzz kills` tries more cases."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.fuzz.kills.judge import Clean, complaints
from tests.fuzz.kills.run import Kills
from tests.fuzz.kills.scenarios import Scenario
from tests.fuzz.kills.workshop import Fault, Outcome, Workshop

SEED = 1


@pytest.fixture(scope="module")
def kills(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kills]:
    with Workshop(tmp_path_factory.mktemp("kills")) as workshop:
        yield Kills(workshop, quick=True)


@pytest.mark.campaign
@pytest.mark.parametrize("number", range(24))
def test_stopped_command_keeps_old_or_writes_new_result(number: int, kills: Kills) -> None:
    case = kills.draw(SEED, number)
    assert kills.tried(case) == [], case


# ------------------------------------------------------------------------------------ complaints

OLD, NEW = {"out/a": b"1", "out/b": b"1", "r.html": b"old"}, {"out/a": b"2", "out/b": b"2", "r.html": b"new"}
CLEAN = Clean(Scenario(("generate",), OLD, ("out",)), NEW, frozenset(), 9)
STOPPED = Outcome((130,), ("systolic: stopped\n",), 4, OLD, {})


@pytest.mark.parametrize(
    ("outcome", "complaint"),
    [
        (STOPPED, ""),
        (replace(STOPPED, tree=NEW), ""),
        (replace(STOPPED, tree={**OLD, "r.html": b"new"}), ""),
        (replace(STOPPED, tree={**OLD, "out/b": b"2"}), "out is a mixture: ['a']"),
        (replace(STOPPED, tree={"r.html": b"old"}), "out is a mixture"),
        (replace(STOPPED, tree={**OLD, "r.html": b"ne"}), "r.html is neither the old one nor the new one"),
        (replace(STOPPED, tree={**OLD, "more": b""}), "more is neither the old one nor the new one"),
        (replace(STOPPED, tree={**OLD, ".out.12.partial/new/a": b"2"}), "left .out.12.partial"),
        (replace(STOPPED, temporary={"systolic-1/design/a": b"2"}), "left systolic-1"),
        (replace(STOPPED, codes=(0,)), "exit status 0, and not everything is written"),
        (replace(STOPPED, codes=(1,)), "exit status 1, 130 wanted"),
        (replace(STOPPED, errors=("Traceback (most recent call last):",)), "a traceback"),
        (replace(STOPPED, errors=("",)), "no sentence"),
    ],
)
def test_complaints_of_one_run_name_the_defect(outcome: Outcome, complaint: str) -> None:
    wrong = "; ".join(complaints(CLEAN, Fault(3, signal.SIGINT), outcome))
    assert complaint in wrong
    assert bool(complaint) == bool(wrong)


TIMED = Clean(
    Scenario(("generate",), {}, ("out",)),
    {"out/a": b'{"seconds": 0.25}', "r.html": b"<p>optimal, 0.1 s</p>"},
    frozenset(),
    9,
)


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("r.html", b"<p>optimal, 12 s</p>", ""),
        ("r.html", b"<p>optimal, 0.1 m</p>", "r.html is neither"),
        ("r.html", b"<p>greedy, 0.1 s</p>", "r.html is neither"),
        ("out/a", b'{"seconds": 1e-05}', ""),
        ("out/a", b'{"cycles": 0.25}', "out is a mixture"),
    ],
)
def test_complaints_ignore_only_the_seconds_of_a_run(name: str, data: bytes, told: str) -> None:
    outcome = replace(STOPPED, tree={**TIMED.after, name: data})
    wrong = "; ".join(complaints(TIMED, Fault(3, signal.SIGINT), outcome))
    assert wrong.startswith(told)
    assert bool(wrong) == bool(told)


@pytest.mark.parametrize(
    ("codes", "error", "complaint"),
    [
        ((0, 2), "systolic: out cannot be written: another run is writing it", ""),
        ((0, 2), "systolic: no", "a run at the same time is refused with other words"),
        ((2, 2), "systolic: out cannot be written: another run is writing it", "two runs end with (2, 2)"),
        ((0, 0), "", "two runs have both written one folder"),
    ],
)
def test_complaints_of_two_runs_name_the_defect(codes: tuple[int, int], error: str, complaint: str) -> None:
    wrong = complaints(CLEAN, Fault(3, signal.SIGSTOP), Outcome(codes, (error, error), 4, NEW, {}))
    assert (wrong == []) == (complaint == "")
    assert complaint in "; ".join(wrong)
