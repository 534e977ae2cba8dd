"""Routed paths of public designs, compared cell by cell and net by net with the delay table."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from benchmarks.routed_paths import (
    HEAD,
    PARTS_HEAD,
    CellStep,
    NetStep,
    cell_ns,
    main,
    net_ns,
    part_rows,
    read_report,
    recorded,
    rows,
)
from boards.errors import UnsupportedError
from rtl_timing.delays import delay_table
from tests.support.errors import raises

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/rtl_timing.md"
DELAYS = delay_table("-1 0.85")

REPORT = """
Slack (MET) :             1.000ns  (required time - arrival time)
  Path Type:              Setup (Max at Slow Process Corner)

    Location             Delay type                Incr(ns)  Path(ns)    Netlist Resource(s)
  -------------------------------------------------------------------    -------------------
                         net (fo=9, unset)            0.035     0.035    clk
  -------------------------------------------------------------------    -------------------
    SLICE_X1Y1           FDRE (Prop_CFF_SLICEL_C_Q)
                                                      0.097     0.132 r  a_reg/Q
                         net (fo=4, routed)           0.212     0.344    a
    DSP48E2_X1Y1         DSP_ALU (Prop_DSP_ALU_DSP48E2_U_DATA[3]_ALU_OUT[7])
                                                      0.699     1.043 r  p/ALU_OUT[7]
                         net (fo=1, routed)           0.345     1.388    p
    SLICE_X2Y1           FDRE                                         r  b_reg[1]/CE
  -------------------------------------------------------------------    -------------------
                         clock pessimism              0.000     5.024
    SLICE_X2Y1           FDRE (Setup_AFF_SLICEL_C_CE)
                                                     -0.042     4.947    b_reg[1]
  -------------------------------------------------------------------
Slack (MET) :             0.030ns  (arrival time - required time)
  Path Type:              Hold (Min at Fast Process Corner)
"""


def test_report_is_read_as_cells_and_nets() -> None:
    assert read_report(REPORT) == [
        (
            CellStep("FDRE", "C", "Q", 0.097),
            NetStep(4, 0.212),
            CellStep("DSP_ALU", "U_DATA[3]", "ALU_OUT[7]", 0.699),
            NetStep(1, 0.345),
            CellStep("FDRE", "CE", "", 0.042),
        )
    ]


def test_carry8_is_two_carry4_with_the_wire_between_them() -> None:
    assert cell_ns(CellStep("CARRY8", "S[1]", "CO[3]", 0.0), DELAYS) == pytest.approx(0.223)
    assert cell_ns(CellStep("CARRY8", "S[1]", "O[6]", 0.0), DELAYS) == pytest.approx(0.223 + 0.014 + 0.110)
    assert cell_ns(CellStep("CARRY8", "CI", "CO[7]", 0.0), DELAYS) == pytest.approx(0.012 + 0.014 + 0.012)


def test_cell_of_another_kind_has_its_delay_of_the_table() -> None:
    assert cell_ns(CellStep("LUT5", "I3", "O", 0.0), DELAYS) == pytest.approx(0.106)
    assert cell_ns(CellStep("FDCE", "C", "Q", 0.0), DELAYS) == pytest.approx(0.096)
    assert cell_ns(CellStep("DSP_A_B_DATA", "CLK", "B2_DATA[1]", 0.0), DELAYS) == pytest.approx(0.263)
    assert cell_ns(CellStep("DSP_ALU", "PCIN[47]", "ALU_OUT[0]", 0.0), DELAYS) == pytest.approx(0.699)
    with raises(UnsupportedError):
        cell_ns(CellStep("LUT5", "I7", "O", 0.0), DELAYS)


def test_nets_have_the_delays_of_the_table() -> None:
    lut, carry = CellStep("LUT5", "I0", "O", 0.0), CellStep("CARRY8", "CI", "CO[7]", 0.0)
    assert net_ns(lut, lut, 8, DELAYS) == pytest.approx(0.163 + 0.057 * math.log2(8))
    assert net_ns(carry, carry, 1, DELAYS) == pytest.approx(0.028)
    assert net_ns(lut, CellStep("FDRE", "D", "", 0.0), 1, DELAYS) == pytest.approx(0.058)


def test_faster_grade_scales_the_delays() -> None:
    step = CellStep("LUT5", "I3", "O", 0.0)
    assert cell_ns(step, DELAYS) == pytest.approx(1.213 * cell_ns(step, delay_table("-2 0.85")))


def test_forty_different_paths_of_two_speed_grades_are_recorded() -> None:
    paths = recorded()
    assert len({path.steps for path in paths}) == len(paths) == 40
    assert {path.grade for path in paths} == {"-1 0.85", "-2 0.85"}


def test_page_has_the_errors_of_the_recorded_paths() -> None:
    text = PAGE.read_text("utf-8")
    for row in (HEAD, *rows(recorded()), PARTS_HEAD, *part_rows(recorded())):
        assert re.search(r"\| " + r" +\| ".join(map(re.escape, row)) + r" +\|", text), row


def test_command_prints_the_facts_of_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "path.rpt").write_text(REPORT)
    assert main(["--read", str(tmp_path / "path.rpt")]) == 0
    assert '["FDRE", "C", "Q", 0.097], [4, 0.212], ["DSP_ALU", "U_DATA[3]", ' in capsys.readouterr().out


def test_command_prints_a_row_per_path(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--paths"]) == 0
    assert [line.split()[-1] for line in capsys.readouterr().out.splitlines() if line][-40:] == [
        f"{path.modelled_ns:.2f}" for path in recorded()
    ]
