"""The reader of C++ without a preprocessor: the code that synthesis skips, and the values of constants."""

from __future__ import annotations

from hls_templates.syntax.constants import constant_value
from hls_templates.syntax.nodes import walk
from hls_templates.syntax.program import syntax_tree
from hls_templates.syntax.unexpanded import synthesised
from tests.support.cases import cases


def test_synthesised_blanks_lines_that_synthesis_omits() -> None:
    code = "a;\n#ifndef __SYNTHESIS__\nb; // c\n#else\nd;\n#endif\n"
    code += "#if defined(__SYNTHESIS__)\ne;\n#else\nf;\n#endif\n/* g\n*/h;"
    lines = [line.strip() for line in synthesised(code).split("\n")]
    assert lines == ["a;", *[""] * 3, "d;", "", "", "e;", *[""] * 4, "h;"]


def test_synthesised_blanks_the_lines_of_embedded_weights() -> None:
    code = "int a[2][2] = {\n    {1, 2},\n    {3, -4},\n};\nint b = f({1, g(2)});\nword c = {g(3), 4};\n"
    assert synthesised(code) == "int a[2][2] = {\n\n\n};\nint b = f({1, g(2)});\nword c = {g(3), 4};\n"


def test_synthesised_of_values_with_statements_in_them_keeps_their_braces() -> None:
    code = "auto f = {[] { return 1; }};\nint a = 2;\n"
    assert synthesised(code) == code


def test_synthesised_of_a_quote_as_a_character_still_removes_comments() -> None:
    assert synthesised("char a = '\"'; // }\nchar b = '\\''; /* { \" */") == "char a = '\"';  \nchar b = '\\'';  "


def test_synthesised_of_a_directive_in_a_macro_is_a_pragma_that_parses() -> None:
    code = "void f() {\n    SYSTOLIC_PRAGMA(HLS BIND_STORAGE variable = m type = ram_s2p impl = M)\n    g();\n}\n"
    types = [node.type for node in walk(syntax_tree(synthesised(code).encode()))]
    assert ("preproc_call" in types, "ERROR" in types) == (True, False)


@cases(
    "expression, value",
    [
        ("3", 3),
        ("A + 2 * B", 11),
        ("(A - 1) / B % 3", 1),
        ("C", None),
        ("f(1)", None),
        ("1 / 0", None),
        ("(" * 300, None),
    ],
)
def test_constant_value_of_an_expression(expression: str, value: int | None) -> None:
    assert constant_value(expression, {"A": "5", "B": "A - 2", "C": "C"}) == value


def test_constant_value_of_names_that_square_each_other_ends() -> None:
    names = {f"N{index}": f"N{index + 1} * N{index + 1}" for index in range(39)} | {"N39": "9"}
    assert constant_value("N0", names) is None


def test_constant_value_of_names_that_double_at_each_step_ends() -> None:
    names = {f"N{index}": f"N{index + 1} + N{index + 1}" for index in range(30)} | {"N30": "1"}
    assert constant_value("N0", names) == 1 << 30
