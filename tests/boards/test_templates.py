"""Tests of the template helpers: which texts are identifiers, how comments are cleaned, and which templates fail."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from boards.errors import DamagedFileError, InvalidValueError
from boards.templates import Templates, comment, identifier
from tests.support.cases import cases
from tests.support.errors import raises


@cases("text", ["a", "conv1", "tiny_yolo", "A" * 63])
def test_identifier_plain_name_is_returned(text: str) -> None:
    assert identifier(text) == text


@cases(
    "text",
    ["", "1a", "_a", "a b", "a-b", 'a"', "a;", "a\n", "${a}", "[a]", "a\\", "ä", "A" * 64, "a\x00", "a//b", "a*/"],
)
def test_identifier_invalid_name_is_refused_with_the_name(text: str) -> None:
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
def test_comment_of_any_text_does_not_end_early(text: str) -> None:
    line = comment(text)
    assert "\n" not in line
    assert line.isprintable()
    assert not set(line) & set('\\?$[]{}"`')
    assert "*/" not in line
    assert "/*" not in line


def test_comment_of_hostile_text_compiles_in_line_and_block_comments() -> None:
    line = comment('*/ int trap() { return "; } \\\n#error trap ??/\n')
    source = f"// {line}\n/* {line} */\nint main() {{ return 0; }}\n"
    command = ["g++", "-trigraphs", "-Wall", "-Werror", "-x", "c++", "-fsyntax-only", "-"]
    assert subprocess.run(command, input=source, text=True, capture_output=True).stderr == ""


# ------------------------------------------------------------------------------------------ templates


def render(folder: Path, text: str, values: Mapping[str, object]) -> str:
    """Write the template ``a.j2`` into the folder and return the rendered text."""
    (folder / "a.j2").write_text(text)
    return Templates(folder).render("a.j2", values)


def test_render_name_without_a_value_is_refused(tmp_path: Path) -> None:
    text = "one\n{{ missing }}\n"
    with raises(DamagedFileError, path="a.j2") as caught:
        render(tmp_path, text, {})
    assert "'missing'" in caught.value.reason


def test_render_missing_field_is_refused(tmp_path: Path) -> None:
    text = "{{ depths.missing }}\n"
    with raises(DamagedFileError, path="a.j2") as caught:
        render(tmp_path, text, {"depths": {"rows": 1}})
    assert "'missing'" in caught.value.reason


def test_render_syntax_error_names_template_and_line(tmp_path: Path) -> None:
    text = "one\ntwo\n{% if %}\n"
    with raises(DamagedFileError, path=str(tmp_path / "a.j2"), place="line 3"):
        render(tmp_path, text, {})


def test_blocks_add_no_empty_lines_and_text_is_not_escaped(tmp_path: Path) -> None:
    text = "{% for i in range(2) %}\n    {{ i }} < {{ name | identifier }};\n{% endfor %}\n"
    assert render(tmp_path, text, {"name": "x"}) == "    0 < x;\n    1 < x;\n"


def test_render_identifier_filter_refuses_other_names(tmp_path: Path) -> None:
    text = "{{ name | identifier }}"
    with raises(InvalidValueError, what="an identifier", got="a b"):
        render(tmp_path, text, {"name": "a b"})
