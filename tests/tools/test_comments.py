"""Sources without their comments: what is a comment in each language, and what only looks like one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.comments import language_of, without_comments

ROOT = Path(__file__).resolve().parents[2]

CASES = {
    "a line": ("a.h", "int a; // one\nint b;\n", "int a;\nint b;\n"),
    "a block in a line": ("a.h", "int /* one */ a;\n", "int a;\n"),
    "a block over lines": ("a.h", "int a;\n/* one\n * two\n */\nint b;\n", "int a;\nint b;\n"),
    "a block does not nest": ("a.h", "/* one /* two */ int a; /**/\n", "int a;\n"),
    "a line comment with a continuation": ("a.h", "// one \\\n   two\nint a;\n", "int a;\n"),
    "a string": ("a.cpp", 'f("// no", "/* no */", "\\"//");\n', 'f("// no", "/* no */", "\\"//");\n'),
    "a character": ("a.cpp", "f('\"', '/', '\\'') // one\n", "f('\"', '/', '\\'')\n"),
    "a raw string": ("a.cpp", 'f(R"x(// )" no)x") // one\n', 'f(R"x(// )" no)x")\n'),
    "white space in a string": ("a.cpp", 'f("a  b")   ;  // one\n', 'f("a  b") ;\n'),
    "digits with marks": ("a.cpp", "int a = 1'000'000; // it's one\n", "int a = 1'000'000;\n"),
    "the name of a header": ("a.cpp", "#include <a//b>\n#include <c> // one\n", "#include <a//b>\n#include <c>\n"),
    "a quotient": ("a.cpp", "a = b / c; /* one */ d /= e;\n", "a = b / c; d /= e;\n"),
    "a quotation mark in a comment": ("a.h", "// it's \"\nint a; // b\n", "int a;\n"),
    "blank lines": ("a.h", "\n\nint a;\n\n \t\nint b;", "int a;\nint b;\n"),
    "a number of SystemVerilog": ("a.sv", "a = 8'hF0; // one's\nb = '0; // two\n", "a = 8'hF0;\nb = '0;\n"),
    "a string of SystemVerilog": ("a.sv", '$error("// no \\" //"); // one\n', '$error("// no \\" //");\n'),
    "an attribute": ("a.sv", "(* keep *) logic a; /* one */\n", "(* keep *) logic a;\n"),
    "an escaped name": ("a.sv", "wire \\a//b ; // one\n", "wire \\a//b ;\n"),
    "a macro over lines": ("a.sv", "`define A(x) \\\n  x + // one \\\n  1\n", "`define A(x) \\\nx + \\\n1\n"),
    "a slash and a star apart": ("a.sv", "a = b / * c;\n", "a = b / * c;\n"),
    "a command of Tcl": ("a.tcl", "# one\nset a 1 ;# two\n  # three\nset b 2\n", "set a 1 ;\nset b 2\n"),
    "no comment but an argument": ("a.tcl", "set a 1 # no\nputs #no\n", "set a 1 # no\nputs #no\n"),
    "a comment of Tcl that continues": ("a.tcl", "# one \\\nset a 1\nset b 2\n", "set b 2\n"),
    "a line of Tcl that continues": ("a.tcl", "set a \\\n  #no\n", "set a \\\n#no\n"),
    "in braces": ("a.tcl", "if {$a} {# one\n  set b #2 }\n", "if {$a} {\nset b #2 }\n"),
    "in brackets": ("a.tcl", "set a [ # one\n list b]\n", "set a [\nlist b]\n"),
    "a quoted word": ("a.tcl", 'puts "\n# no\n;# no [f "# no"]" ;# one\n', 'puts "\n# no\n;# no [f "# no"]" ;\n'),
    "a quotation mark within a word": ("a.tcl", 'set a b"c ;# one\n', 'set a b"c ;\n'),
    "an escaped mark": ("a.tcl", "set a \\# ; \\# no\n", "set a \\# ; \\# no\n"),
    "a constraint": (
        "a.xdc",
        "# one\ncreate_clock -period 3.3 [get_ports clk]\n",
        "create_clock -period 3.3 [get_ports clk]\n",
    ),
    "Jinja's comment": ("a.h.j2", "int a;{# one\n// two #} int b;\n", "int a; int b;\n"),
    "Jinja's comment with marks": ("a.h.j2", "int a; {#- one -#}\nint b;\n", "int a;\nint b;\n"),
    "both comments": ("a.cpp.j2", "{# one #}// {{ two }}\nint {{ a }}; // three\n", "{{ two }}\nint {{ a }};\n"),
    "an expression with a quotient": ("a.sv.j2", "logic [{{ a // 8 - 1 }}:0] b;\n", "logic [{{ a // 8 - 1 }}:0] b;\n"),
    "a string in an expression": (
        "a.h.j2",
        "{{ '{# no #}' }}{% if a == \"%}\" %}b{# c #}\n",
        "{{ '{# no #}' }}{% if a == \"%}\" %}b\n",
    ),
    "raw text": ("a.h.j2", "{% raw %}{# no #}{% endraw %}\n", "{% raw %}{# no #}{% endraw %}\n"),
    "a statement in a comment": ("a.h.j2", "// {% if a %} one {% endif %}\n", "{% if a %} {% endif %}\n"),
    "Jinja in Tcl": ("a.tcl.j2", "{# one #}\n# two\nset a {{ '#' }}\n", "set a {{ '#' }}\n"),
    "Jinja in other text": ("a.md.j2", "# Title {# one #}\n// text\n", "# Title \n// text\n"),
    "another language": ("a.json", '{"a": "//"} // b\n\n', '{"a": "//"} // b\n\n'),
}


@pytest.mark.parametrize("case", CASES)
def test_without_comments_removes_only_comments(case: str) -> None:
    path, text, plain = CASES[case]
    assert without_comments(text, path) == plain
    again = without_comments(plain, path)
    assert again == plain, "what has no comment stays as it is"


@pytest.mark.parametrize(
    ("path", "text"),
    [("a.h", "int a;\n/* one\n"), ("a.sv", "/*/\n"), ("a.tcl", 'puts "one\n'), ("a.h.j2", "int a; {# one\n")],
)
def test_without_comments_unterminated_comment_or_string_is_refused(path: str, text: str) -> None:
    with pytest.raises(ValueError, match="does not end"):
        without_comments(text, path)


def test_without_comments_of_engine_sources_and_templates_has_no_comment_line() -> None:
    """No line of the remaining text starts like a comment."""
    rooms = (ROOT / "hls_templates", ROOT / "rtl_templates")
    paths = [path for room in rooms for path in room.rglob("*") if language_of(path.name) and path.is_file()]
    assert len(paths) > 100
    for path in paths:
        plain = without_comments(path.read_text("utf-8"), path.name)
        marks = ("//", "/*", "* ", "# ")
        left = [line for line in plain.splitlines() if line.startswith(marks) or "{#" in line]
        assert not left, f"{path}: {left[:3]}"
        assert plain.strip(), f"{path} has nothing but comments"
