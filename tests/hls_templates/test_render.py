"""Text that templates paste: what may be a name, what may stand in a comment, what a template may not forget."""

from __future__ import annotations

import subprocess
from pathlib import Path

import jinja2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boards.errors import DamagedFileError, InvalidValueError
from hls_templates import render as room
from hls_templates.render import comment, identifier, render
from tests.support.cases import cases
from tests.support.errors import raises


@cases("text", ["a", "conv1", "tiny_yolo", "A" * 63])
def test_plain_names_are_identifiers(text: str) -> None:
    assert identifier(text) == text


@cases(
    "text",
    ["", "1a", "_a", "a b", "a-b", 'a"', "a;", "a\n", "${a}", "[a]", "a\\", "ä", "A" * 64, "a\x00", "a//b", "a*/"],
)
def test_other_names_are_refused_and_shown(text: str) -> None:
    with raises(InvalidValueError, what="an identifier", got=text):
        identifier(text)


@cases(
    "text, wanted",
    [
        ("a network of 3×3", "a network of 3×3"),
        ("two\nlines\r\nand\ttabs", "two lines  and tabs"),
        ("ends here \\", "ends here _"),
        ("a */ b /* c", "a _ b _ c"),
        ('"${x}" `y` [z];', "___x__ _y_ _z_;"),
        ("trigraph ??/", "trigraph __/"),
        ("line\u2028separator \u202eand direction", "line separator  and direction"),
        ("x" * 500, "x" * 400),
    ],
)
def test_comments_are_one_harmless_line(text: str, wanted: str) -> None:
    assert comment(text) == wanted


@settings(max_examples=80, derandomize=True, database=None)
@given(st.text(st.characters(codec="utf-8") | st.sampled_from('\\\n*/?"$[]{};`'), max_size=40))
def test_no_text_leaves_its_comment(text: str) -> None:
    line = comment(text)
    assert "\n" not in line
    assert line.isprintable()
    assert not set(line) & set('\\?$[]{}"`')
    assert "*/" not in line
    assert "/*" not in line


def test_a_comment_compiles_in_both_kinds_of_comment() -> None:
    line = comment('*/ int trap() { return "; } \\\n#error trap ??/\n')
    source = f"// {line}\n/* {line} */\nint main() {{ return 0; }}\n"
    command = ["g++", "-trigraphs", "-Wall", "-Werror", "-x", "c++", "-fsyntax-only", "-"]
    assert subprocess.run(command, input=source, text=True, capture_output=True).stderr == ""


# ------------------------------------------------------------------------------------------ templates


@pytest.fixture
def templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The real environment over a folder of the test's own templates."""
    environment = room._environment().overlay(loader=jinja2.FileSystemLoader(tmp_path))
    monkeypatch.setattr(room, "_environment", lambda: environment)
    return tmp_path


def test_a_name_that_is_not_given_is_an_error(templates: Path) -> None:
    (templates / "a.j2").write_text("one\n{{ missing }}\n")
    with raises(DamagedFileError, path="a.j2") as caught:
        render("a.j2", {})
    assert "'missing'" in caught.value.reason


def test_a_field_that_does_not_exist_is_an_error(templates: Path) -> None:
    (templates / "a.j2").write_text("{{ depths.missing }}\n")
    with raises(DamagedFileError, path="a.j2") as caught:
        render("a.j2", {"depths": {"rows": 1}})
    assert "'missing'" in caught.value.reason


def test_a_fault_of_syntax_names_template_and_line(templates: Path) -> None:
    (templates / "a.j2").write_text("one\ntwo\n{% if %}\n")
    with raises(DamagedFileError, path=str(templates / "a.j2"), place="line 3"):
        render("a.j2", {})


def test_blocks_leave_no_empty_lines_and_text_is_not_escaped(templates: Path) -> None:
    (templates / "a.j2").write_text("{% for i in range(2) %}\n    {{ i }} < {{ name | identifier }};\n{% endfor %}\n")
    assert render("a.j2", {"name": "x"}) == "    0 < x;\n    1 < x;\n"


def test_the_filters_refuse_what_the_functions_refuse(templates: Path) -> None:
    (templates / "a.j2").write_text("{{ name | identifier }}")
    with raises(InvalidValueError, what="an identifier", got="a b"):
        render("a.j2", {"name": "a b"})
