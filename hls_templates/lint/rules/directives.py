"""Groups 0 to 3: text that cannot be read, and the options of directives, their places and the names in them."""

from __future__ import annotations

from hls_templates.lint.rules.rule import Rule, kernel

_PRAGMAS = "UG1399, HLS Pragmas"

RULES = (
    Rule(
        "0.1",
        "not-parsed",
        "text that the grammar cannot parse as C++",
        "this must be C++ that the linter can read, but «{actual}» is not; use simpler syntax",
        "C++17 grammar",
        kernel("data[0] = count +;"),
    ),
    # ---------------------------------------------------------------------------------------- 1. options
    Rule(
        "1.1",
        "unknown-directive",
        "a directive that no release from 2022.1 to 2024.2 documents, or a directive of older tools",
        "a directive must be one that Vitis HLS 2022.1–2024.2 documents, not {actual}; {hint}",
        _PRAGMAS,
        kernel("#pragma HLS RESOURCE variable=data core=RAM_2P_BRAM"),
    ),
    Rule(
        "1.2",
        "unknown-option",
        "an option that the directive, or this INTERFACE mode, does not take",
        "{directive} takes {allowed}, not «{actual}»; remove it or correct its name",
        _PRAGMAS,
        kernel("for (int i = 0; i < 4; ++i) {", "#pragma HLS UNROLL times=2", "    data[i] = 0;", "}"),
    ),
    Rule(
        "1.3",
        "missing-option",
        "a directive without a required option (a variable; a factor for block and cyclic)",
        "{directive} needs {option}=…, which is absent; add it",
        _PRAGMAS,
        kernel("int row[8];", "#pragma HLS ARRAY_PARTITION variable=row type=cyclic", "row[0] = count;"),
    ),
    Rule(
        "1.4",
        "repeated-option",
        "an option that is given twice",
        "{directive} takes {option} once, but it is given twice; keep one",
        _PRAGMAS,
        kernel("int row[8];", "#pragma HLS ARRAY_PARTITION variable=row complete dim=1 dim=2", "row[0] = count;"),
    ),
    Rule(
        "1.5",
        "bad-value",
        "a word, constant or range that the option does not take; a name that is not a constant",
        "{directive} {option} must be {required}, not «{actual}»; correct the value (a macro is replaced only inside"
        " _Pragma)",
        _PRAGMAS,
        kernel("for (int i = 0; i < 4; ++i) {", "#pragma HLS PIPELINE II=count", "    data[i] = 0;", "}"),
    ),
    Rule(
        "1.6",
        "bad-storage",
        "a type and an impl of BIND_STORAGE that cannot be combined; a ROM in URAM",
        "BIND_STORAGE type={type} can be impl={allowed}, not {actual}; choose another type or impl",
        "UG1399, pragma HLS bind_storage, supported combinations (an URAM of UltraScale+ has no initial content)",
        kernel(
            "static const int row[4] = {1, 2, 3, 4};",
            "#pragma HLS BIND_STORAGE variable=row type=rom_1p impl=uram",
            "data[0] = row[count % 4];",
        ),
    ),
    # ------------------------------------------------------------------------------------------ 2. scope
    Rule(
        "2.1",
        "directive-scope",
        "a directive outside a function, before a loop's braces, in a loop if it applies to a function …",
        "{directive} must be in {required}, but it is in {actual}; move it",
        "UG1399, Syntax of the pragma",
        kernel("#pragma HLS UNROLL", "for (int i = 0; i < 4; ++i) data[i] = 0;"),
    ),
    Rule(
        "2.2",
        "directive-late",
        "PIPELINE, UNROLL, DATAFLOW, INLINE, LOOP_… after a statement of its block (this project's rule)",
        "{directive} must come before the first statement of its block, but a statement comes before it; move it up",
        "UG1399, Adding Pragmas and Directives",
        kernel("for (int i = 0; i < 4; ++i) {", "    data[i] = 0;", "#pragma HLS PIPELINE", "}"),
    ),
    Rule(
        "2.3",
        "interface-not-top",
        "INTERFACE, ALIAS or CACHE outside the top function",
        "{directive} may be only in the top function {top}, but it is in {actual}; remove it",
        "UG1399, pragma HLS interface",
        "static void clear(int *data) {\n#pragma HLS INTERFACE mode=m_axi port=data\n    data[0] = 0;\n}\n"
        + kernel("clear(data);"),
    ),
    Rule(
        "2.4",
        "directive-conflict",
        "DATAFLOW and PIPELINE in one block",
        "{first} and {second} exclude each other, but this block has both; keep one",
        "UG1399, pragma HLS dataflow; pragma HLS pipeline",
        kernel("#pragma HLS PIPELINE", "#pragma HLS DATAFLOW"),
    ),
    # ------------------------------------------------------------------------------------------ 3. names
    Rule(
        "3.1",
        "undeclared-variable",
        "a variable, port, argument or function that is not declared there (members as `this->x` or `x`)",
        "{directive} must name {required}, but «{actual}» is not one; declare it before, or correct the name",
        _PRAGMAS,
        kernel("#pragma HLS ARRAY_PARTITION variable=row complete", "int row[8];", "row[0] = count;"),
    ),
    Rule(
        "3.2",
        "stream-top-argument",
        "STREAM on an argument of the top",
        "STREAM must name a channel inside the design, but {actual} is an argument of the top function; use INTERFACE",
        "UG1399, pragma HLS stream",
        "void top(hls::stream<int> &source) {\n#pragma HLS STREAM variable=source depth=4\n    source.read();\n}\n",
    ),
)
