"""Group 7: names that reach the hardware languages."""

from __future__ import annotations

from hls_templates.lint.rules.rule import Rule

RULES = (
    Rule(
        "7.1",
        "reserved-name",
        "a top function or an argument of it whose name is reserved in Verilog, SystemVerilog or VHDL; a top function"
        " with the name of a Tcl command",
        "the name of {role} reaches the hardware and must not be a reserved word, but {actual} is one of {languages};"
        " choose another name or add «lint: allow(reserved-name) why»",
        "IEEE 1364-2005, IEEE 1800-2017 and IEEE 1076-2008: Vitis HLS renames such ports (`in` to `in_r`); Tcl 8.6,"
        " Built-In Commands",
        "void top(hls::stream<int> &in, int *signal) {\n    signal[0] = in.read();\n}\n",
    ),
)
