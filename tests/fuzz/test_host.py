"""The host reports a failing board and can be closed at any moment. `python -m tests.fuzz host` tries more cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fuzz.host import ACTIONS, Case, Designs, Injection, draw, tried

pytestmark = pytest.mark.pynq

SEED = 1
CASES, FEW = 60, 10
"""The number of cases of a campaign, and of a run of the default suite."""


@pytest.fixture(scope="module")
def designs(tmp_path_factory: pytest.TempPathFactory) -> Designs:
    return Designs(tmp_path_factory.mktemp("host"))


@pytest.mark.parametrize(
    "number", [number if number < FEW else pytest.param(number, marks=pytest.mark.campaign) for number in range(CASES)]
)
def test_host_with_failing_board_reports_every_fault(number: int, designs: Designs) -> None:
    case = draw(SEED, number)
    assert tried(designs, case).complaints == [], case


# ------------------------------------------------------------------------------------ planted defects


@pytest.mark.parametrize(
    ("place", "defect", "case", "complaint"),
    [
        (
            "host.board.overlay.LoadedOverlay.stop",
            lambda _: None,
            Case("tiny", faults=(Injection("hang", 1),), recovers=False),
            "is at work on the buffer at 0x8",
        ),
        ("host.systolic.driver.SystolicDriver.free", lambda _: None, Case("tiny"), "buffers were not given back"),
        (
            "host.board.backend.BoardBackend.verify",
            lambda *_: None,
            Case("tiny", faults=(Injection("missing flush", 2),)),
            "frame 2 differs from the golden model's, and no error was raised",
        ),
        (
            "host.board.buffers.Buffers.verify",
            lambda _: None,
            Case("tiny", faults=(Injection("corrupt word", 0),), actions=("detect",)),
            "verify() does not report",
        ),
        (
            "host.systolic.ip.SystolicIP.poll",
            lambda *_: False,
            Case("batches", faults=(Injection("late interrupt", 0),)),
            "the case is undisturbed, and an error was raised: frames 0…2 failed in stage 'accelerate': "
            "pass 0, layer conv1 (tiny.cfg:6): the accelerator did not finish",
        ),
        (
            "host.detector.Detector.decode",
            lambda *_: 1 // 0,
            Case("centre", actions=("detect",)),
            "ZeroDivisionError: integer division or modulo by zero",
        ),
    ],
)
def test_tried_planted_defect_has_complaint(
    place: str,
    defect: Callable[..., Any],
    case: Case,
    complaint: str,
    designs: Designs,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(place, defect)
    assert complaint in "; ".join(tried(designs, case).complaints)


def test_draw_many_cases_covers_all_actions_and_faults() -> None:
    from host.simulated.faults import KINDS

    cases = [draw(SEED, number) for number in range(400)]
    assert draw(SEED, 7) == cases[7]
    assert {name for case in cases for name in case.actions} == set(ACTIONS)
    assert {fault.kind for case in cases for fault in case.faults} == set(KINDS)
    assert sum(case.undisturbed for case in cases) > 40, "an error is a defect there"
