"""Test the progress line, the effect of -q and -v, and the percentages of long steps, which must be known or
omitted."""

from __future__ import annotations

import argparse
import itertools
import os
import pty
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from pathlib import Path

import pytest

import systolic
from boards.progress import ProgressStep, silent
from systolic.cli import progress
from systolic.cli.main import main
from systolic.cli.messages import log, messages, takes_colour
from systolic.cli.progress import StatusLine
from systolic.execution.build import Variant, build
from systolic.execution.compiler import compile_to
from systolic.package import package
from tests.support.bitstreams import write_built
from tests.support.command_line import call, shown_on
from tests.support.detectors import tiny_files, write_tiny_design
from tests.support.small_network import write_small

PICTURE = systolic.samples()[0]


@contextmanager
def terminal() -> Iterator[Callable[[], str]]:
    """Make standard error a terminal. The function that is yielded closes it and returns the text written to it.

    A test must enter this inside its body, because pytest replaces its capture between a fixture and its test.
    """
    ours, theirs = pty.openpty()

    def read() -> str:
        file.close()
        return shown_on(ours)

    with os.fdopen(theirs, "w") as file, redirect_stderr(file):
        yield read
    os.close(ours)


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set a terminal type that supports colours and clearing a line."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


# --- the text of a step


def test_progress_step_has_a_percentage_if_counted() -> None:
    counted = ProgressStep("packing a.bin", 1, 4)
    assert (counted, counted.share) == ("packing a.bin, 25%", 0.25)
    assert ProgressStep("packing", 999, 1000) == "packing, 99%", "100 % is only shown at the end"
    assert ProgressStep("packing", 29, 100) == "packing, 29%", "29 / 100 · 100 is below 29 in floats"
    unknown = ProgressStep("folding", limit=60)
    assert (unknown, unknown.share, unknown.limit) == ("folding", None, 60)
    assert ProgressStep("late", 9, 8).share == 1, "the share is at most 1"
    assert ProgressStep("nothing to do", 0, 0).share is None
    silent(counted)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.4, "59 s"), (61, "1 min 1 s"), (3599, "59 min 59 s"), (7500, "2 h 5 min")]
)
def test_duration_is_readable(seconds: float, text: str) -> None:
    assert progress._duration(seconds) == text


class Clock:
    """A clock that the test moves."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


def lines_of(told: Sequence[tuple[float, str]], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the lines shown on a terminal.

    Each element of ``told`` has the seconds since the previous one, and its text.
    """
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    monkeypatch.setattr(progress, "BEAT_SECONDS", 60)
    with terminal() as shown:
        with StatusLine() as status:
            for seconds, text in told:
                clock.now += seconds
                status.report(text)
        return shown().split("\r\x1b[2K")[1:-1]


def test_status_line_of_short_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lines_of([(0.1, "quick"), (0.2, "work")], monkeypatch) == []


def test_status_line_is_cut_to_the_width_and_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lines_of([(1, "compiling"), (0, "x" * 200)], monkeypatch) == ["compiling …", "x" * 78]


def test_status_line_estimates_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [(0.6, ProgressStep("packing", 0, 10))]
    steps += [(1.5, ProgressStep("packing", number, 10)) for number in (1, 2, 5, 10)]
    assert lines_of(steps, monkeypatch) == [
        "packing, 0% …",
        "packing, 10% … 2 s",  # too early for an estimate
        "packing, 20% … 3 s, 12 s left",
        "packing, 50% … 4 s, 4 s left",
        "packing, 100% … 6 s",
    ]


def test_status_line_estimates_from_the_start_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [(1, ProgressStep("training, epoch 6", 5, 10)), (10, ProgressStep("training, epoch 7", 6, 10))]
    assert lines_of(steps, monkeypatch)[-1] == "training, epoch 7, 60% … 10 s, 40 s left"


def test_status_line_with_limit_shows_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [(1, ProgressStep("folding", limit=60)), (12, ProgressStep("folding", limit=60))]
    assert lines_of(steps, monkeypatch)[-1] == "folding … 12 s of at most 1 min 0 s"


def test_status_line_restarts_with_another_step(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [(1, "reading"), (5, ProgressStep("packing", 0, 2)), (2, ProgressStep("packing", 1, 2))]
    assert lines_of(steps, monkeypatch) == ["reading …", "packing, 0% …", "packing, 50% … 2 s, 2 s left"]


def test_status_line_counts_seconds_of_a_silent_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "AFTER_SECONDS", 0.01)
    monkeypatch.setattr(progress, "BEAT_SECONDS", 0.05)
    with terminal() as shown:
        with StatusLine() as status:
            status.report("compiling")
            time.sleep(1.2)
        assert "\r\x1b[2Kcompiling … 1 s" in shown()


# --- without a terminal


def test_status_line_without_terminal_writes_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SYSTOLIC_PROGRESS", raising=False)
    monkeypatch.setattr(progress, "AFTER_SECONDS", 0)
    monkeypatch.setattr(progress, "FIRST_LINE_SECONDS", 0)
    monkeypatch.setattr(progress, "BEAT_SECONDS", 0.01)
    with StatusLine() as status:
        status.report("compiling")
        time.sleep(0.05)
    assert capsys.readouterr().err == ""


def test_status_line_writes_lines_if_the_environment_asks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYSTOLIC_PROGRESS", "0.2")
    monkeypatch.setattr(progress, "BEAT_SECONDS", 0.05)
    with StatusLine() as status:
        status.report("searching, 10%")
        time.sleep(0.5)
        status.report("searching, 90%")
        time.sleep(0.5)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 2
    assert all(re.fullmatch(r"systolic: searching, [19]0%, \d s", line) for line in lines)
    assert "90%" in lines[-1]


@pytest.mark.parametrize("asked", ["0", "60", "a word"])
def test_status_line_without_valid_interval_writes_nothing(
    asked: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYSTOLIC_PROGRESS", asked)
    monkeypatch.setattr(progress, "BEAT_SECONDS", 0.01)
    monkeypatch.setattr(progress, "FIRST_LINE_SECONDS", 60)
    with StatusLine() as status:
        status.report("compiling")
        time.sleep(0.05)
    assert capsys.readouterr().err == ""


def run_on_a_terminal(*words: object) -> str:
    """Return the text that a command writes to standard error, which is a terminal."""
    with terminal() as shown:
        main([str(word) for word in words])
        return shown()


def test_command_shows_progress_only_on_a_terminal(
    tiny_design: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "AFTER_SECONDS", 0)
    simulate = ("simulate", tiny_design, "--picture", PICTURE, "--json", "-")
    shown = run_on_a_terminal(*simulate)
    assert "executing, pass 1 of" in shown
    assert shown.endswith("\r\x1b[2K"), "the line is cleared at the end"
    assert run_on_a_terminal(*simulate, "-q") == ""
    monkeypatch.setenv("TERM", "dumb")
    assert run_on_a_terminal(*simulate) == "", "a dumb terminal cannot clear a line"
    capsys.readouterr()
    assert main([*map(str, simulate)]) == 0
    assert capsys.readouterr().err == ""


def test_verbose_logs_each_step_with_seconds(tiny_design: Path) -> None:
    done = call("simulate", tiny_design, "--picture", PICTURE, "--verbose")
    lines = done.error.splitlines()
    assert all(line.startswith("systolic: ") for line in lines)
    assert [line for line in lines if re.fullmatch(r"systolic: executing: \d+\.\d s", line)]
    assert "systolic: golden model" in lines
    assert len(lines) == len(set(lines)), "percentages must not have lines of their own"


def test_notes_are_above_the_status_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "AFTER_SECONDS", 0)
    monkeypatch.setattr(progress, "BEAT_SECONDS", 60)
    with terminal() as shown:
        with messages(argparse.Namespace()), StatusLine() as status:
            status.report("compiling")
            log.warning("note")
        assert shown().split("\r\x1b[2K") == ["", "compiling …", "systolic: note\r\n", ""]


def test_messages_follow_quiet_and_restore_the_logger(tmp_path: Path) -> None:
    before = (log.level, log.propagate, list(log.handlers))
    old = ("run", tmp_path, "y", "--threshold", "1")
    assert len(call(*old).error.splitlines()) == 2
    assert len(call(*old, "-q").error.splitlines()) == 1, "only the error is printed"
    assert (log.level, log.propagate, list(log.handlers)) == before


def test_colours_need_a_willing_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal() as shown:
        main(["boards", "absent"])
        assert shown().startswith("\x1b[31msystolic:\x1b[0m ")
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as patched, terminal() as shown:
            patched.setenv(name, value)
            main(["boards", "absent"])
            assert shown().startswith("systolic: ")
    with Path(os.devnull).open("w") as file:
        assert not takes_colour(file)


# --- long steps that report their progress


PERCENT = re.compile(r"\b(\d+)%")


class Told(list[str]):
    """The texts of all steps, in their order."""

    def of(self, start: str) -> list[int]:
        """Return the percentages of a kind of step, in their order."""
        return [int(match[1]) for text in self if text.startswith(start) and (match := PERCENT.search(text))]


def assert_counts(told: Told, start: str) -> None:
    """Check that the percentages of a kind of step exist and rise from 0 to at most 100."""
    shares = told.of(start)
    assert shares, f"{start}: {told}"
    assert shares == sorted(shares)
    assert all(0 <= share <= 100 for share in shares)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[systolic.GeneratedDesign, Told]:
    """Return a generated design and the progress texts of its generation."""
    told = Told()
    cfg, names = tiny_files(tmp_path_factory.mktemp("tiny"))
    network = systolic.load(cfg, names=names, seed=1)
    design = systolic.design(
        network, "pynq-z2", clock_mhz=250, calibrate=[PICTURE], array="4x8x8", progress=told.append
    )
    return design, told


def test_design_of_array_reports_progress(tiny: tuple[systolic.GeneratedDesign, Told]) -> None:
    assert_counts(tiny[1], "calibrating")
    searching = [text for text in tiny[1] if "searching" in text]
    assert all(re.search(r"searching, \d+ of at most \d+ geometries priced", text) for text in searching)
    assert searching
    assert tiny[1].of("searching") == [], "bounds can end the search early, so no percentage is known"


def test_simulate_and_trace_report_progress(tiny: tuple[systolic.GeneratedDesign, Told]) -> None:
    told = Told()
    tiny[0].simulate(PICTURE, progress=told.append)
    assert told.of("executing")[-1] == 100
    trace = tiny[0].trace(PICTURE, progress=told.append)
    trace.report()
    trace.fifos()
    for step in ("tracing", "solving", "searching FIFO depths"):
        assert_counts(told, step)


@pytest.mark.engine
def test_pipeline_reports_progress(tmp_path: Path) -> None:
    told = Told()
    network = systolic.load(write_small(tmp_path), seed=1)
    design = systolic.design(network, "ultra96-v2", "streaming", fps=20_000, search="greedy", progress=told.append)
    assert_counts(told, "sizing FIFOs")
    assert_counts(told, "tracing")
    design.simulate(PICTURE, progress=told.append)
    assert told.of("executing")[-1] == 100


def test_compile_reports_progress_of_several_units(tiny: tuple[systolic.GeneratedDesign, Told], tmp_path: Path) -> None:
    units = []
    for number in range(2):
        units.append(tmp_path / f"unit{number}.cpp")
        units[-1].write_text(f"int number{number}() {{ return {number}; }}\n")
    flags = ["g++", "-shared", "-fPIC"]
    told = Told()
    compile_to([*flags, *map(str, units)], tmp_path / "both.so", progress=told.append)
    assert told == ["compiling unit0.cpp, 1 of 2", "compiling unit1.cpp, 2 of 2"]
    told = Told()
    compile_to([*flags, str(units[0])], tmp_path / "one.so", progress=told.append)
    assert told == ["compiling unit0.cpp"]
    build(tiny[0].folder, Variant(), told.append)


def test_package_reports_progress(tiny: tuple[systolic.GeneratedDesign, Told], tmp_path: Path) -> None:
    told = Told()
    design = tiny[0].write(tmp_path / "design")
    write_built(design.folder)
    package(design.folder, tmp_path, progress=told.append)
    assert_counts(told, "packing")


@pytest.mark.engine
def test_compare_and_fold_report_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told()
    monkeypatch.setattr(StatusLine, "report", lambda self, text: told.append(text))
    cfg, _ = tiny_files(tmp_path)
    arrays = itertools.chain.from_iterable(("--array", array) for array in ("4x8x8", "2x8x8"))
    assert call("compare", cfg, "--board", "pynq-z2", *arrays, "--clock", 100).code == 0
    assert told.of("comparing") == [0, 50]
    pytest.importorskip("ortools", reason="exact folding needs OR-tools: pip install -e '.[solver]'")
    assert call("fold", write_small(tmp_path), "--fps", 20000, "--compare").code == 0
    searches = [text for text in told if text.startswith("folding: ")]
    assert [text.partition(", ")[2] for text in searches] == [f"{done} of 3 searches done" for done in range(3)]
    assert any(isinstance(text, ProgressStep) and text.limit == 60 for text in told)


def test_run_of_folder_reports_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told()
    monkeypatch.setattr(StatusLine, "report", lambda self, text: told.append(text))
    write_tiny_design(tmp_path / "design", "pynq-z2", array="4x8x8")
    assert call("run", tmp_path / "design", PICTURE.parent).code == 0
    assert told.of("picture")[-1] == 100


def test_status_line_thread_ends_with_it() -> None:
    with terminal():
        with StatusLine() as status:
            assert status._thread.is_alive()
        status._thread.join(timeout=5)
        assert status._thread not in threading.enumerate()
