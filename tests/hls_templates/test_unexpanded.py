"""The reader of C++ without a preprocessor: the code that synthesis skips, and the values of constants."""

from __future__ import annotations

from hls_templates.syntax.nodes import walk
from hls_templates.syntax.program import parse, syntax_tree
from hls_templates.syntax.unexpanded import chosen, synthesised
from hls_templates.syntax.values import constant_functions, constant_value
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


def test_chosen_of_a_constant_condition_keeps_one_branch() -> None:
    code = "#if WIDE > 2 // lanes\na\n#if WIDE == 9\nb\n#endif\n#elif WIDE\nc\n#else\nd\n#endif\ne"
    assert [line for line in chosen(code, {"WIDE": "4"}).split("\n") if line and line[0] != "#"] == ["a", "e"]
    assert [line for line in chosen(code, {"WIDE": "1"}).split("\n") if line and line[0] != "#"] == ["c", "e"]
    assert [line for line in chosen(code, {"WIDE": "0"}).split("\n") if line and line[0] != "#"] == ["d", "e"]


def test_chosen_of_a_condition_with_unknown_names_keeps_all_branches() -> None:
    code = "#ifdef WIDE\na\n#else\nb\n#endif\n#if OTHER && defined(WIDE)\nc\n#elif WIDE\nd\n#else\ne\n#endif"
    assert chosen(code, {"WIDE": "0"}) == code.replace("\nd\n", "\n\n")


CONSTEXPR = """
constexpr int depth(int beats) { return beats == 1 ? 9 : 4; }
constexpr int wide(int bits) { return bits <= 1 ? 1 : bits <= 8 ? 2 * depth(bits) : A; }
constexpr int endless(int n) { return endless(n + 1) + endless(n + 2); }
constexpr int twice(int n) { n *= 2; return n; }
template <int A> constexpr int templated(int n) { return n + A; }
int running(int n) { return n; }
"""


@cases(
    "expression, value",
    [
        ("depth(1)", 9),
        ("depth(A - B)", 4),
        ("wide(1) + wide(8) + wide(9)", 14),
        ("endless(1)", None),
        ("twice(3)", None),
        ("templated(3)", None),
        ("running(3)", None),
        ("depth()", None),
    ],
)
def test_constant_value_of_a_call(expression: str, value: int | None) -> None:
    functions = constant_functions(parse(CONSTEXPR.encode()).all_functions)
    assert constant_value(expression, {"A": "5", "B": "3"}, functions) == value


@cases(
    "expression, value",
    [
        ("A > 4 ? 8 : 16", 8),
        ("C > 4 ? 8 : 16", None),
        ("A < 4 ? C : 16", 16),
        ("A != 5 && C", 0),
        ("A == 5 || C", 1),
        ("!A + ~A + -A", -11),
        ("1 << 4 | 0x1F & 0b110", 22),
        ("-7 / 2 * 10 + -7 % 2", -31),
        ("1'000u + 010", 1008),
        ("1 << 80", None),
        ("static_cast<unsigned>(A) + int(B) + (long)A", 13),
        ("static_cast<bool>(A)", None),
        ("1.5", None),
        ("3); int b = (4", None),
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
