"""The hunt finds each kind of planted defect, and writes a small file that shows it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from boards.errors import UnsupportedError
from tests.fuzz.campaign import Campaign
from tests.fuzz.files.hunt import hunt
from tests.fuzz.files.mutators import flip
from tests.fuzz.files.target import Target

GOOD, BAD = b"good" * 20, b"good" * 20 + b"!" + b"good" * 20


def raises(path: Path) -> None:
    raise KeyError("none of the tree")


def crashes(path: Path) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def is_killed(path: Path) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leaves(path: Path) -> None:
    os._exit(3)


def takes_memory(path: Path) -> None:
    bytearray(1 << 30)


def writes_elsewhere(path: Path) -> None:
    Path("/dev/shm/systolic-planted").unlink(missing_ok=True)


def starts_a_program(path: Path) -> None:
    os.system("true")


def tells_too_much(path: Path) -> None:
    raise UnsupportedError("x" * 3001, "no reason")


PLANTED: dict[str, tuple[Callable[[Path], None], str]] = {
    "raises": (raises, "KeyError"),
    "crashes": (crashes, "dies of SIGSEGV"),
    "is killed": (is_killed, "is killed"),
    "leaves": (leaves, "exits"),
    "takes memory": (takes_memory, "MemoryError"),
    "writes elsewhere": (writes_elsewhere, "writes /dev/shm/systolic-planted"),
    "starts a program": (starts_a_program, "starts "),
    "tells too much": (tells_too_much, "long sentence"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_hunt_planted_defect_is_found_and_shrunk(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    fault, kind = PLANTED[name]

    def read(path: Path) -> None:
        if b"!" in path.read_bytes():
            fault(path)

    target = Target("planted", lambda: (GOOD, BAD, GOOD), (flip,), read)
    assert hunt(target, Campaign(seed=1, cases=3, seconds=None, failures=tmp_path)) == 1
    assert f"planted: case 1: {kind}" in capfd.readouterr().out
    (case,) = tmp_path.glob("*.case")
    assert case.read_bytes() == b"!"


def test_hunt_slow_file_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(path: Path) -> None:
        while True:
            pass

    monkeypatch.setattr("tests.fuzz.files.hunt.MAX_SECONDS", 0.1)
    target = Target("planted", lambda: (GOOD,), (flip,), read)
    assert hunt(target, Campaign(seed=1, cases=1, seconds=None, failures=tmp_path)) == 1
    (text,) = tmp_path.glob("*.txt")
    assert "\nhangs\n" in text.read_text("utf-8")


def test_hunt_refused_file_is_not_a_defect(tmp_path: Path) -> None:
    def read(path: Path) -> None:
        raise UnsupportedError("a file", "it is refused")

    target = Target("planted", lambda: (GOOD,), (flip,), read)
    assert hunt(target, Campaign(seed=1, cases=200, seconds=None, failures=tmp_path)) == 0


def test_target_case_same_seed_and_number_gives_same_file() -> None:
    target = Target("planted", lambda: (GOOD,), (flip,), lambda path: None)
    cases = [target.case((GOOD,), 7, number) for number in range(50)]
    assert cases == [target.case((GOOD,), 7, number) for number in range(50)]
    assert cases != [target.case((GOOD,), 8, number) for number in range(50)]


def test_campaign_first_number_continues_earlier_campaign(tmp_path: Path) -> None:
    assert list(Campaign(1, 3, None, tmp_path).numbers()) == [0, 1, 2]
    assert list(Campaign(1, 2, None, tmp_path, first=3).numbers()) == [3, 4]
