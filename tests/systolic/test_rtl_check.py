"""``systolic check`` of an engine in SystemVerilog: slowest paths, highest clocks, wide nets."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from boards.errors import RangeError, UnsupportedError
from rtl_timing.paths import Step, TimingPath
from systolic.checking.rtl_design import ClockTiming, RtlCheck, check_rtl_design
from systolic.cli.main import main
from systolic.files import write
from tests.support.errors import raises
from tests.support.rtl.engines import FIRST, SMALL, design_of

STEPS = (
    Step("FDRE", "pooler.x", "pool.sv:91", 0.0, 0.1, 0),
    Step("LUT6", "", "", 0.5, 0.1, 6000),
    Step("FDRE", "pooler.column", "pool.sv:127", 0.2, -0.02, 1),
)
PATH = TimingPath("ap_clk", "ap_clk", 3.0, STEPS, 7)
CHECK = RtlCheck(
    250.0, "-2 0.85", 600.0, "UltraRAM", 1.22,
    (ClockTiming("ap_clk", "ap_clk", 4.0, 0.2, (PATH,), 1000.0),), (("sums_ready", "pe_array.sv:30", 6033),), 12, 3456,
    (PATH,),
)  # fmt: skip


def test_check_report_names_paths_clocks_and_wide_nets() -> None:
    text = CHECK.text()
    for part in (
        "pool.sv:91 pooler.x",
        "pool.sv:127 pooler.column",
        "sums_ready",
        "6,033",
        "modelled before placement",
    ):
        assert part.lower() in text.lower()
    assert "up to 312 MHz" in text
    assert f"up to {1000 / (3.0 * 1.22 + 0.2):.0f} MHz" in text


def test_check_report_has_the_slowest_path_of_each_file() -> None:
    text = CHECK.text()
    assert "slowest path of each file" in text
    assert re.search(r"^pool\.sv:127 +3\.00 +1 +pool\.sv:91 pooler\.x +pooler\.column", text, re.M)


def test_check_verdict_follows_the_slowest_path_and_the_data_sheet() -> None:
    assert CHECK.holds
    slow = replace(CHECK, clocks=(replace(CHECK.clocks[0], budget_ns=3.1),))
    assert not slow.holds
    assert not replace(CHECK, limit_mhz=200.0).holds
    assert replace(CHECK, limit_mhz=200.0).highest_mhz == {"p50": 200.0, "p90": 200.0}


def test_check_gives_the_clock_of_rates_its_link() -> None:
    assert (CHECK.rate_clock.target_mhz, CHECK.rate_clock.p50_mhz) == (250.0, 312.5)
    assert CHECK.rate_clock.link == CHECK.values()["link"] == "modelled"
    assert replace(CHECK, limit_mhz=200.0).values()["link"] == "target"


def test_crossing_to_the_doubled_clock_has_half_a_period() -> None:
    crossing = ClockTiming("ap_clk", "ap_clk_2x", 2.0, 0.2, (PATH,), 500.0)
    assert crossing.highest_mhz(1.0) == pytest.approx(500 / 3.2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("checked") / "design"
    write(design_of(FIRST, replace(SMALL, dsp_clock=2)), path)
    return path


@pytest.mark.proof
def test_check_of_a_doubled_engine_models_every_pair_of_clocks(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyosys", reason="timing needs Yosys: pip install 'systolic-cnn[check]'")
    status = main(["check", str(folder), "--json", str(tmp_path / "timing.json")])
    values = json.loads((tmp_path / "timing.json").read_text())
    assert status == (0 if values["holds"] else 1)
    pairs = {(clock["launch"], clock["capture"]): clock for clock in values["clocks"]}
    assert {("ap_clk", "ap_clk"), ("ap_clk_2x", "ap_clk_2x"), ("ap_clk", "ap_clk_2x")} <= set(pairs)
    period = pairs["ap_clk", "ap_clk"]["budget_ns"]
    halves = [pairs["ap_clk_2x", "ap_clk_2x"]["budget_ns"], pairs["ap_clk", "ap_clk_2x"]["budget_ns"]]
    assert halves == pytest.approx([period / 2, period / 2], abs=0.001)
    assert values["highest_clock_mhz"]["p90"] < values["highest_clock_mhz"]["p50"]
    slowest = pairs["ap_clk", "ap_clk"]["paths"]
    assert len(slowest) == 20
    assert any(step["source"].startswith("pool.sv") for path in slowest for step in path["steps"])
    assert re.search(r"^port:m_axi_\w+ +\d\.\d\d ", capsys.readouterr().out, re.M)


def test_check_refuses_a_clock_of_zero(folder: Path) -> None:
    with raises(RangeError, what="--clock in MHz"):
        check_rtl_design(folder, 0.0)


def test_check_refuses_a_part_without_delays(tmp_path: Path) -> None:
    write(design_of(FIRST, replace(SMALL, dsp="DSP48E1")), tmp_path / "design")
    with raises(UnsupportedError):
        check_rtl_design(tmp_path / "design", None)
