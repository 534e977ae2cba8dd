from __future__ import annotations

import os
import pty
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path

import pytest

import systolic
from systolic.cli import progress
from systolic.cli.progress import StatusLine
from systolic.execution.build import Variant, build
from systolic.execution.compiler import compile_to
from systolic.package import package
from systolic.progress import told_of_limit
from tests.support.detectors import tiny_files, write_tiny_design
from tests.support.small_network import write_small
from tests.systolic.command_line import call, shown_on

PICTURE = systolic.samples()[0]


@contextmanager
def terminal() -> Iterator[Callable[[], str]]:
    """stderr is a terminal; closes it and gives what has been written to it. Set inside the test: pytest's own capture
    is put in place anew between a fixture and its test."""
    ours, theirs = pty.openpty()

    def read() -> str:
        file.close()
        return shown_on(ours)

    with os.fdopen(theirs, "w") as file, redirect_stderr(file):
        yield read
    os.close(ours)


def test_short_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "AFTER_SECONDS", 60)
    with terminal() as shown:
        with StatusLine() as status:
            status.tell("quick")
        assert shown() == ""


def test_long_work_shows_one_line_and_clears_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "AFTER_SECONDS", 0.01)
    monkeypatch.setattr(progress, "BEAT_SECONDS", 60)
    with terminal() as shown:
        with StatusLine() as status:
            time.sleep(0.02)
            status.tell("compiling")
            status.tell("x" * 200)
        assert shown().split("\r\x1b[2K") == ["", "compiling …", "x" * 78, ""]


def test_a_long_step_that_tells_nothing_shows_its_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "AFTER_SECONDS", 0.01)
    monkeypatch.setattr(progress, "BEAT_SECONDS", 0.05)
    with terminal() as shown:
        with StatusLine() as status:
            status.tell("compiling")
            time.sleep(1.3)
        assert "\r\x1b[2Kcompiling … 1 s" in shown()


def test_where_there_is_no_terminal_a_line_comes_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYSTOLIC_PROGRESS", "0.2")
    monkeypatch.setattr(progress, "BEAT_SECONDS", 0.05)
    with StatusLine() as status:
        status.tell("searching, 10%")
        time.sleep(0.5)
        status.tell("searching, 90%")
        time.sleep(0.5)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 2
    assert all(re.fullmatch(r"systolic: searching, [19]0%, \d s", line) for line in lines)
    assert "90%" in lines[-1]


@pytest.mark.parametrize("asked", ["0", "60", "a word"])
def test_short_work_or_none_that_is_asked_for_writes_no_line(
    asked: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYSTOLIC_PROGRESS", asked)
    monkeypatch.setattr(progress, "BEAT_SECONDS", 0.01)
    monkeypatch.setattr(progress, "FIRST_LINE_SECONDS", 60)
    with StatusLine() as status:
        status.tell("compiling")
        time.sleep(0.05)
    assert capsys.readouterr().err == ""


# ------------------------------------------------------------------------------- every long step has a percentage


PERCENT = re.compile(r"\b(\d+)%")


class Told(list[str]):
    """What was told; of each kind of step the percentages, in their order."""

    def of(self, start: str) -> list[int]:
        return [int(match[1]) for text in self if text.startswith(start) and (match := PERCENT.search(text))]


def assert_counts(told: Told, start: str) -> None:
    shares = told.of(start)
    assert shares, f"{start}: {told}"
    assert shares == sorted(shares)
    assert all(0 <= share <= 100 for share in shares)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[systolic.GeneratedDesign, Told]:
    told = Told()
    cfg, names = tiny_files(tmp_path_factory.mktemp("tiny"))
    network = systolic.load(cfg, names=names, seed=1)
    design = systolic.design(network, "pynq-z2", clock_mhz=250, calibrate=[PICTURE], progress=told.append)
    return design, told


def test_generating_an_array(tiny: tuple[systolic.GeneratedDesign, Told]) -> None:
    assert_counts(tiny[1], "calibrating")
    assert_counts(tiny[1], "searching")


def test_simulating_and_tracing_an_array(tiny: tuple[systolic.GeneratedDesign, Told]) -> None:
    told = Told()
    tiny[0].simulate(PICTURE, progress=told.append)
    assert told.of("executing")[-1] == 100
    trace = tiny[0].trace(PICTURE, progress=told.append)
    trace.report()
    trace.fifos()
    for step in ("tracing", "solving", "searching FIFO depths"):
        assert_counts(told, step)


def test_a_pipeline(tmp_path: Path) -> None:
    told = Told()
    network = systolic.load(write_small(tmp_path), seed=1)
    design = systolic.design(network, "ultra96-v2", "streaming", fps=20_000, search="greedy", progress=told.append)
    assert_counts(told, "sizing FIFOs")
    assert_counts(told, "tracing")
    design.simulate(PICTURE, progress=told.append)
    assert told.of("executing")[-1] == 100


def test_compiling_unit_by_unit(tiny: tuple[systolic.GeneratedDesign, Told], tmp_path: Path) -> None:
    told = Told()
    units = []
    for number in range(2):
        units.append(tmp_path / f"unit{number}.cpp")
        units[-1].write_text(f"int number{number}() {{ return {number}; }}\n")
    compile_to(["g++", "-shared", "-fPIC", *map(str, units)], tmp_path / "both.so", tell=told.append)
    assert told == ["compiling unit0.cpp, 0%", "compiling unit1.cpp, 50%"]
    assert (tmp_path / "both.so").is_file()
    build(tiny[0].folder, Variant(), told.append)


def test_packaging(tiny: tuple[systolic.GeneratedDesign, Told], tmp_path: Path) -> None:
    told = Told()
    design = tiny[0].write(tmp_path / "design")
    (tmp_path / "design" / "tiny.bit").write_bytes(b"a bitstream")
    package(design.folder, tmp_path, tell=told.append)
    assert_counts(told, "packing")


def test_comparing_boards_and_searches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told()
    monkeypatch.setattr(StatusLine, "tell", lambda self, text: told.append(text))
    small = write_small(tmp_path)
    assert call("compare", "shapes", "--array", "4x8x8", "--array", "8x8x8", "--clock", 100).code == 0
    assert told.of("comparing") == [0, 50]
    assert call("fold", small, "--fps", 20000, "--compare").code == 0
    assert told.of("folding:") == [0, 33, 67]


def test_a_step_with_a_time_limit_counts_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("systolic.progress.BEAT_SECONDS", 0.05)
    told = Told()
    with told_of_limit(told.append, "folding", 1.0):
        time.sleep(0.3)
    assert told[0] == "folding"
    assert_counts(told, "folding, ")
    assert told[-1].endswith("% of at most 1 s")
    count = len(told)
    time.sleep(0.1)
    assert len(told) == count, "nothing is told after the step"


def test_a_folder_of_pictures(tmp_path: Path) -> None:
    told = Told()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StatusLine, "tell", lambda self, text: told.append(text))
        write_tiny_design(tmp_path / "design", "pynq-z2")
        assert call("run", tmp_path / "design", PICTURE.parent).code == 0
    assert told.of("picture")[-1] == 100
