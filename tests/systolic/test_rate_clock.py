"""Test the clock at which a rate is reported: the target, or the lower clock that a check derived from the sources."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from boards.progress import Progress
from systolic.checking.design import GeneratedClock, check_design
from systolic.checking.record import CHECKED, store_clock, stored_clock
from systolic.cli.main import main
from systolic.report.clock import RateClock
from systolic.styles.systolic.measure import cycle_report, trace_design
from systolic.styles.systolic.simulate import SystolicDesign, open_design
from systolic.trace.report import board_memory
from tests.support.cases import cases

FAILED = RateClock(250.0, holds=False, held_mhz=92.0)
MODELLED = RateClock(250.0, p50_mhz=211.0, p90_mhz=169.0)


def test_rate_clock_uses_the_clock_held_by_the_sources() -> None:
    assert (RateClock(250.0).mhz, RateClock(250.0).rate(131.6)) == (250.0, 131.6)
    assert RateClock(250.0, holds=True, held_mhz=341.0).mhz == 250.0  # the rate never exceeds the target
    assert FAILED.mhz == 92.0
    assert FAILED.rate(125.0) == pytest.approx(46.0)
    assert "125" not in FAILED.text(125.0)
    assert re.search(r"\b46\.0 frames/s at 92 MHz", FAILED.text(125.0))


def test_rate_clock_without_held_clock_gives_no_rate() -> None:
    never = RateClock(250.0, holds=False)
    assert never.rate(125.0) is None
    assert "125" not in never.text(125.0)


@cases(
    "clock, link",
    [
        (RateClock(300.0), "target"),
        (FAILED, "derived"),
        (RateClock(300.0, p50_mhz=412.0, p90_mhz=331.0), "modelled"),
        (RateClock(300.0, p50_mhz=211.0, p90_mhz=169.0), "target"),
        (RateClock(250.0, holds=False), "target"),
    ],
)
def test_rate_clock_link_names_the_origin_of_the_clock(clock: RateClock, link: str) -> None:
    assert clock.link == link


def test_rate_clock_text_has_the_percentiles_of_the_timing_model() -> None:
    missed = RateClock(300.0, p50_mhz=210.6, p90_mhz=150.0)
    assert missed.text(280.0) == (
        "280.0 frames/s at 300 MHz (target, not reached by the timing model, whose P50 is 211 and P90 150 MHz); "
        "140.0 frames/s at 150 MHz (modelled, P90)"
    )
    reached = RateClock(300.0, p50_mhz=420.0, p90_mhz=350.0)
    assert reached.text(280.0).startswith("280.0 frames/s at 300 MHz (target, reached by the timing model")
    assert reached.p90_sentence(280.0) == ""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a design's folder with one source."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "top.cpp").write_text("int top;\n")
    return tmp_path


@cases("clock", [FAILED, RateClock(250.0, holds=False), RateClock(250.0), MODELLED])
def test_keep_stores_the_check_in_the_folder(folder: Path, clock: RateClock) -> None:
    assert stored_clock(folder, 250.0) == RateClock(250.0)
    store_clock(folder, clock)
    assert stored_clock(folder, 250.0) == clock
    assert stored_clock(folder, 200.0) == RateClock(200.0)  # a check at 250 MHz says nothing about 200 MHz
    (folder / CHECKED).unlink()


def test_kept_ignores_a_check_of_other_sources(folder: Path) -> None:
    store_clock(folder, FAILED)
    (folder / "src" / "top.cpp").write_text("int mended;\n")
    assert stored_clock(folder, 250.0) == RateClock(250.0)


@cases("text", ["", "[]", "{}", '{"sources": 1}', "\0", "9" * 5000])
def test_kept_ignores_a_damaged_record(folder: Path, text: str) -> None:
    (folder / CHECKED).write_text(text)
    assert stored_clock(folder, 250.0) == RateClock(250.0)


@cases("held", [-1.0, 0.0, "92", float("inf")])
def test_kept_ignores_an_impossible_clock(folder: Path, held: object) -> None:
    store_clock(folder, FAILED)
    record = json.loads((folder / CHECKED).read_text())
    (folder / CHECKED).write_text(json.dumps({**record, "held_mhz": held}))
    assert stored_clock(folder, 250.0) == RateClock(250.0)


@pytest.fixture(scope="module")
def design(tiny_design: Path) -> SystolicDesign:
    """Return the small compiled design."""
    return open_design(tiny_design)


@pytest.mark.engine
def test_cycle_report_after_failed_check_uses_the_derived_clock(design: SystolicDesign) -> None:
    traced, target = trace_design(design, np.full((3, 28, 36), 77, np.uint8)), design.manifest.clock_mhz
    before = cycle_report(design, traced, board_memory(design))
    store_clock(design.path, RateClock(target, holds=False, held_mhz=target / 4))
    try:
        after = cycle_report(design, traced, board_memory(design))
        asked = cycle_report(design, traced, board_memory(design), target)
    finally:
        (design.path / CHECKED).unlink()
    assert (before.clock_mhz, before.clock_source, after.clock_mhz) == (target, "target", target / 4)
    assert after.frames_per_second < before.frames_per_second / 3
    assert after.values()["clock_mhz"] == target / 4
    for told in (after.text(), after.title, after._repr_html_()):
        assert "derived" in told
        assert f"{before.frames_per_second:.1f} frames/s" not in told
    assert asked.clock_mhz == target


@pytest.mark.engine
def test_generate_exits_with_1_if_sources_miss_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Design for 300 MHz, and check the sources at a clock that no board has."""
    pytest.importorskip("ziglang", reason="check needs clang: pip install -e '.[check]'")

    def checked_at_900_mhz(folder: Path, progress: Progress) -> GeneratedClock:
        check = check_design(folder, 900.0, progress)
        return GeneratedClock(check, check.clock_sentence())

    monkeypatch.setattr("systolic.checking.design.generated_clock", checked_at_900_mhz)
    assert main(["generate", "shapes", "-o", str(tmp_path / "design"), "--json", "-"]) == 1
    told = json.loads(capsys.readouterr().out)["check"]
    assert not told["holds"]
    assert told["highest_clock_mhz"] < 900
    assert told["rate"]["clock_mhz"] == told["highest_clock_mhz"]
