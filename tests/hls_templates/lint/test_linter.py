"""A fault is found at its own line, notes silence it, and code that cannot be linted is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from boards.errors import ChoiceError, InvalidValueError, ToolError
from hls_templates.lint import lint
from hls_templates.lint.__main__ import main
from tests.support.cases import cases
from tests.support.errors import raises
from tests.support.lint_designs import DESIGN, KEPT, TYPES, faults


def test_lint_fault_after_macros_and_includes_is_reported_at_its_line() -> None:
    (found,) = faults("SYSTOLIC_PIPELINE(1, 5)", "SYSTOLIC_PIPELINE(-1, 5)")
    line = DESIGN.splitlines().index("        SYSTOLIC_PIPELINE(1, 5);") + 1
    assert (found.file, found.line, found.rule) == ("top.cpp", line, "bad-value")


def test_lint_fault_in_a_header_is_reported_once_in_the_header() -> None:
    header = TYPES.replace("value_t lane[4];", "float lane[4];")
    (found,) = lint({"a.cpp": DESIGN, "b.cpp": '#include "types.h"\n', "types.h": header}, "accelerate")
    assert (found.file, found.line, found.rule) == ("types.h", 7, "floating-point")


def test_lint_note_with_a_reason_silences_only_its_rule() -> None:
    line = "    static int seen;"
    note = "// lint: allow(static-local) the row survives from pass to pass"
    assert faults(KEPT, f"{KEPT}{line}  {note}\n") == ()
    assert faults(KEPT, f"{KEPT}    {note}\n{line}\n") == ()
    assert [f.rule for f in faults(KEPT, f"{KEPT}{line}  // lint: allow(static-local)\n")] == ["static-local"]
    assert [f.rule for f in faults(KEPT, f"{KEPT}{line}  // lint: allow(goto) other\n")] == ["static-local"]


def test_lint_reserved_names_are_reported_only_at_the_top_function() -> None:
    text = "static void signal(int *out) { out[0] = 1; }\nvoid design(int *data,\n            int *program) {\n}\n"
    findings = lint({"a.cpp": text}, "design")
    assert [(f.line, f.rule, f.sentence.split("but ")[1].split(";")[0]) for f in findings] == [
        (2, "reserved-name", "design is one of Verilog"),
        (3, "reserved-name", "program is one of SystemVerilog"),
    ]
    assert [f.sentence for f in lint({"a.cpp": "void split(int *source) {\n}\n"}, "split")] == [
        "the name of the top function reaches the hardware and must not be a reserved word, but split is one of Tcl;"
        " choose another name or add «lint: allow(reserved-name) why»"
    ]
    noted = text.replace("            int *program", "    // lint: allow(reserved-name) renamed\n    int *program")
    assert [f.line for f in lint({"a.cpp": noted}, "design")] == [2]


def test_lint_unknown_top_function_is_refused() -> None:
    with raises(ChoiceError, what="the top function", got="other"):
        faults(top="other")


def test_names_outside_the_project_are_refused() -> None:
    with raises(InvalidValueError, what="the name of a source", got="../x.h"):
        lint({"../x.h": ""}, "")


def test_lint_preprocessor_error_is_refused_with_its_output() -> None:
    with raises(ToolError, tool="the preprocessor") as caught:
        lint({"a.h": '#error "too small"\n'}, "")
    assert "too small" in caught.value.output


def test_lint_constants_of_an_absent_header_are_assumed_known() -> None:
    text = '#include "parameters.h"\nvoid top(int *p) {\n    for (int i = 0; i < ROWS; ++i) p[i] = 0;\n}\n'
    assert lint({"a.cpp": text}, "top") == ()
    (found,) = lint({"a.cpp": text, "parameters.h": ""}, "top")
    assert found.rule == "unbounded-loop"


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ('#define D "/dev/zero"\n#include D\nvoid top() {}\n', "memory"),
        (
            f"#define A0 {'x' * 1000}\n"
            + "".join(f"#define A{i} {f'A{i - 1} ' * 10}\n" for i in range(1, 12))
            + "A11\n",
            "File",
        ),
        ("\n".join(f'#error "{"y" * 900}"' for _ in range(3)), "y" * 90),
    ],
)
def test_lint_preprocessor_beyond_memory_or_disk_limits_is_refused(text: str, output: str) -> None:
    with raises(ToolError, tool="the preprocessor") as caught:
        lint({"a.cpp": text}, "top")
    assert output in caught.value.output
    assert len(str(caught.value)) <= 1200


def test_lint_macros_that_expand_beyond_the_limit_are_refused() -> None:
    """Check the limit of expanded macros: 10⁶ names are 3 MB of text and take 500 MB of memory.

    Text that is not the result of macros can be that long.
    """
    macros = "".join(f"#define A{i} {f'A{i - 1} ' * 10}\n" for i in range(1, 7)).replace("A0", "0,")
    with raises(ToolError, tool="the preprocessor") as caught:
        lint({"a.cpp": f"{macros}const int table[] = {{A6}};\nvoid top() {{}}\n"}, "top")
    assert "File" in caught.value.output
    written = "".join(f"const int {'x' * 20_000}{i} = 0;\n" for i in range(100))
    assert len(written) > 1 << 20
    assert lint({"a.cpp": f"{written}void top() {{}}\n"}, "top") == ()


STREAMED = """struct word_t { %s value; int last; };
void top(hls::stream<word_t> &from, hls::stream<word_t> &to) {
#pragma HLS DATAFLOW
    hls::stream<word_t> words;
#pragma HLS STREAM variable=words depth=4
    words.write(from.read());
    to.write(words.read());
}
"""
SQUARED = "const int a0 = 9;\n" + "".join(f"const int a{i} = a{i - 1} * a{i - 1};\n" for i in range(1, 40))


@cases(
    "constants, width",
    [
        ("", f"int{'9' * 5000}_t"),
        ("", f"ap_uint<{'9' * 5000}>"),
        ("", f"ap_uint<{'9 * ' * 2000}9>"),
        (SQUARED, "ap_uint<a39>"),
    ],
)
def test_lint_width_of_thousands_of_digits_is_unknown(constants: str, width: str) -> None:
    """Check that the linter survives constants that square each other and have 2³⁹ digits."""
    known, unknown = (
        lint({"a.cpp": text + "\n"}, "top") for text in (STREAMED % "short", constants + STREAMED % width)
    )
    assert {finding.rule for finding in unknown} <= {finding.rule for finding in known} | {"not-parsed"}


@cases("number", ["9" * 5000, "\u00b2"])
@cases(
    "directive", ["PIPELINE II={}", "LOOP_TRIPCOUNT min={} max=4", "LOOP_TRIPCOUNT min=1 max={}", "UNROLL factor={}"]
)
def test_lint_option_that_is_not_a_short_number_is_reported(number: str, directive: str) -> None:
    pragma = f"#pragma HLS {directive.format(number)}"
    text = f"void top(int m[4]) {{\n    for (int i = 0; i < 4; ++i) {{\n{pragma}\n        m[i] = i;\n    }}\n}}\n"
    assert "bad-value" in {finding.rule for finding in lint({"a.cpp": text}, "top")}


def test_lint_command_endless_or_undecodable_file_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    latin = tmp_path / "latin.cpp"
    latin.write_bytes(b"// \xe9\n")
    assert (main(["/dev/zero"]), main([str(latin)])) == (2, 2)
    endless, undecoded = capsys.readouterr().err.splitlines()
    assert endless.startswith("/dev/zero ")
    assert undecoded.startswith(f"{latin}, byte 3, ")
