"""Paths of SystemVerilog through Yosys: places in the sources, and a register that is removed from a pipeline."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtl_templates.sources import fixed_modules
from rtl_timing.covering import covered
from rtl_timing.delays import delay_table
from rtl_timing.elaboration import elaborated, units
from rtl_timing.netlist import flattened
from rtl_timing.paths import TimingGraph, TimingPath
from rtl_timing.synthesis import synthesised

pytestmark = pytest.mark.proof

PIPELINE = """module pipeline (input logic clk, input logic [31:0] a, b, output logic [31:0] y);
    logic [31:0] left, right, sum, scaled;
    always_ff @(posedge clk) begin
        left <= a;
        right <= b;
        y <= scaled > left ? scaled : left;
    end
    adder add (.clk, .left, .right, .sum);
    {register} scaled {assign} sum + (sum >> 3);
endmodule

module adder (input logic clk, input logic [31:0] left, right, output logic [31:0] sum);
    {register} sum {assign} left + right;
endmodule
"""
REGISTERED = PIPELINE.replace("{register}", "always_ff @(posedge clk)").replace("{assign}", "<=")


def modelled(folder: Path, text: str, top: str) -> list[TimingPath]:
    pytest.importorskip("pyosys", reason="timing needs Yosys: pip install 'systolic-cnn[check]'")
    source = folder / "design.sv"
    source.write_text(text)
    delays = delay_table("-2 0.85")
    all_units = units(elaborated([source], top), top)
    modules = {name: covered(module, delays) for name, module in synthesised(all_units, "xcup").items()}
    return TimingGraph(flattened(modules, all_units[-1].name), delays).slowest(20)


def test_paths_name_the_lines_of_their_registers(tmp_path: Path) -> None:
    paths = modelled(tmp_path, REGISTERED, "pipeline")
    assert {path.steps[-1].source for path in paths} == {"design.sv:3", "design.sv:9", "design.sv:13"}
    assert all(path.launch_clock == path.capture_clock == "clk" for path in paths)


@pytest.mark.parametrize("removed", ["sum", "scaled"])
def test_removed_register_lengthens_the_slowest_path(removed: str, tmp_path: Path) -> None:
    """Without a register the path runs through both additions, and across the border of a module."""
    shorter = modelled(tmp_path, REGISTERED, "pipeline")[0]
    text = REGISTERED.replace(f"always_ff @(posedge clk) {removed} <=", f"assign {removed} =")
    longer = modelled(tmp_path, text, "pipeline")[0]
    assert longer.ns > 1.2 * shorter.ns
    assert longer.levels > shorter.levels


def test_removed_register_of_a_delay_line_is_reported(tmp_path: Path) -> None:
    """``delay`` with no cycle is a wire, so the sum of its neighbours reaches the register after it."""
    text = """module around (input logic clk, input logic [15:0] a, b, c, output logic [15:0] y);
    logic [15:0] left, right, third, late, sum;
    assign sum = left + right;
    delay #(.WIDTH(16), .CYCLES(%d)) line (.clk, .in_data(sum), .out_data(late));
    always_ff @(posedge clk) {left, right, third, y} <= {a, b, c, late * 16'd3 + third};
endmodule
"""
    both = [modelled(tmp_path, fixed_modules()["delay.sv"] + text % cycles, "around")[0].ns for cycles in (1, 0)]
    assert both[1] > 1.2 * both[0]
