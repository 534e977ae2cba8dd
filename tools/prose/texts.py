"""The prose of a file: its docstrings, its comments, the sentences among its strings, and the names of its tests."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path, PurePath

from tools.comments import Kind, language_of, pieces

MIN_WORDS = 4
"""A string with fewer words is a name, a key or a format."""

_WORD = re.compile(r"[A-Za-z][\w'’.-]*")
_CODE = re.compile(r"[;{}>\\]\s*$|^\s*(?:[#<\[]|def |from \S+ import |import |\w+ ?= ?\S+(?:$|\s\w+=))", re.MULTILINE)
"""A line of code in a string of several lines, such as C++, SystemVerilog, Python, HTML or a darknet cfg."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Form(Enum):
    """The role of a text in its file."""

    FUNCTION = "docstring of a function"
    NOUN = "docstring of a module, class, property, constant or test"
    COMMENT = "comment"
    STRING = "string"
    PAGE = "documentation"
    TEST_NAME = "name of a test"


@dataclass(frozen=True)
class Text:
    """One piece of prose, and the line where it starts."""

    line: int
    form: Form
    text: str


def texts_of(path: Path) -> Iterator[Text]:
    """Yield the prose of a file; nothing if files of its kind have none.

    Raises:
        SyntaxError: A Python file is not valid.
        ValueError: A comment or a string of another source does not end, or a notebook is not JSON.
    """
    suffix = PurePath(path.name.removesuffix(".j2")).suffix
    if suffix not in (".py", ".toml", ".md", ".ipynb") and not language_of(path.name):
        return
    content = path.read_text("utf-8")
    if path.suffix == ".j2":
        yield from _jinja_comments(content)
        content = _JINJA.sub(lambda match: "\n" * match[0].count("\n"), content)
    if suffix == ".py":
        yield from _python(content)
    elif suffix == ".toml":
        yield from _hash_comments(content)
    elif suffix == ".md":
        yield from _markdown(content)
    elif suffix == ".ipynb":
        yield from _notebook(content)
    else:
        yield from _source(content, path.name)


# --- Python and TOML -----------------------------------------------------------------------------------------------


def _python(content: str) -> Iterator[Text]:
    docstrings: set[ast.expr] = set()
    tree = ast.parse(content)
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTIONS) and _is_test(node):
            yield Text(node.lineno, Form.TEST_NAME, node.name)
        for text, expression in _docstrings(node):
            docstrings.add(expression)
            yield text
    yield from _strings(tree, docstrings)
    yield from _hash_comments(content)


def _docstrings(node: ast.AST) -> Iterator[tuple[Text, ast.expr]]:
    """Yield the docstring of a module, class or function, and those below the constants and fields of a body."""
    if isinstance(node, (ast.Module, ast.ClassDef, *_FUNCTIONS)):
        for position, statement in enumerate(node.body):
            if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
                continue
            value = statement.value.value
            if isinstance(value, str):
                is_verb = position == 0 and isinstance(node, _FUNCTIONS) and not _is_claim(node)
                form = Form.FUNCTION if is_verb else Form.NOUN
                yield Text(statement.lineno, form, value), statement.value


def _is_claim(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether the docstring names a value, as for a property, or states a fact, as for a test."""
    return _is_test(node) or any("property" in ast.unparse(d) for d in node.decorator_list)


def _is_test(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return node.name.startswith("test_")


def _strings(node: ast.AST, docstrings: set[ast.expr]) -> Iterator[Text]:
    """Yield the strings that hold sentences; an f-string is one text, with a mark for each value."""
    if node in docstrings:
        return
    if isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else "…" for part in node.values]
        yield from _sentence(node.lineno, "".join(map(str, parts)))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from _sentence(node.lineno, node.value)
    else:
        for child in ast.iter_child_nodes(node):
            yield from _strings(child, docstrings)


def _sentence(line: int, text: str) -> Iterator[Text]:
    if ("\n" in text.strip() or text.startswith("import ")) and _CODE.search(text):
        return
    if len(text.split()) >= MIN_WORDS and len(_WORD.findall(text)) >= MIN_WORDS:
        yield Text(line, Form.STRING, text)


_HASH = re.compile(
    r"""
    (?P<string> \"\"\".*?\"\"\" | '''.*?''' | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' ) | (?P<comment> \#[^\n]* ) """,
    re.DOTALL | re.VERBOSE,
)
_DIRECTIVE = re.compile(r"\s*(?:noqa|type:|pragma:|fmt:|!|-- |---)")


def _hash_comments(content: str) -> Iterator[Text]:
    """Yield the comments that begin with #."""
    found = []
    for match in _HASH.finditer(content):
        if match["comment"] and not _DIRECTIVE.match(match[0][1:]):
            before = content[content.rfind("\n", 0, match.start()) + 1 : match.start()]
            found.append((_line(content, match.start()), not before.strip(), match[0][1:]))
    yield from _joined(found)


# --- C++, SystemVerilog, Tcl and their templates -------------------------------------------------------------------

_JINJA = re.compile(r"\{#.*?#\}", re.DOTALL)


def _jinja_comments(content: str) -> Iterator[Text]:
    for match in _JINJA.finditer(content):
        yield Text(_line(content, match.start()), Form.COMMENT, match[0].strip("{#-} "))


def _source(content: str, path: str) -> Iterator[Text]:
    found, place = [], 0
    for kind, piece in pieces(content, path):
        if kind is Kind.COMMENT:
            before = content[content.rfind("\n", 0, place) + 1 : place]
            text = re.sub(r"^\s*(?://+|/\*+|\*/|\*|#+)|\*/\s*$", "", piece, flags=re.MULTILINE)
            if not _DIRECTIVE.match(text):
                found.append((_line(content, place), not before.strip(), text))
        place += len(piece)
    yield from _joined(found)


def _joined(comments: list[tuple[int, bool, str]]) -> Iterator[Text]:
    """Yield the comments after code; comments on neighbouring lines without code are one text."""
    start, end, lines = 0, 0, list[str]()
    for line, alone, text in comments:
        if not (alone and lines and line == end + 1):
            yield from _comment(start, lines)
            start, lines = line, []
        lines.append(text)
        end = line + text.count("\n") if alone else 0
    yield from _comment(start, lines)


def _comment(start: int, lines: list[str]) -> Iterator[Text]:
    if lines:
        yield Text(start, Form.COMMENT, "\n".join(lines))


def _line(content: str, place: int) -> int:
    return content.count("\n", 0, place) + 1


# --- Markdown ------------------------------------------------------------------------------------------------------

_FENCE = re.compile(r"^```.*?^```\s*$|^---\n.*?^---\n|<!--.*?-->", re.DOTALL | re.MULTILINE)


def _markdown(content: str) -> Iterator[Text]:
    """Yield the paragraphs, the items of lists and the cells of tables, without blocks of code."""
    content = _FENCE.sub(lambda match: "\n" * match[0].count("\n"), content)
    start, lines = 0, list[str]()
    for number, line in enumerate([*content.splitlines(), ""], start=1):
        if lines and (not line.strip() or re.match(r"\s*(?:[-*]|\d+\.|#+|\|)\s", line)):
            yield Text(start, Form.PAGE, "\n".join(lines))
            lines = []
        if line.lstrip().startswith("|"):
            yield from (Text(number, Form.PAGE, cell.strip()) for cell in line.split("|") if cell.strip(" -:"))
        elif line.strip():
            start = number if not lines else start
            lines.append(re.sub(r"^\s*(?:[-*]|\d+\.|#+|>)\s+", "", line))


# --- Notebooks -----------------------------------------------------------------------------------------------------

_SOURCE_KEY = re.compile(r'^ *"source": ', re.MULTILINE)


def _notebook(content: str) -> Iterator[Text]:
    """Yield the prose of the text and code cells.

    Jupyter stores each line of a cell on one line of the file, below the key, so lines of the file can be reported.
    """
    starts = [_line(content, match.end()) for match in _SOURCE_KEY.finditer(content)]
    for cell, start in zip(json.loads(content)["cells"], starts, strict=True):
        source = "".join(cell["source"])
        for text in _python(source) if cell["cell_type"] == "code" else _markdown(source):
            yield replace(text, line=start + text.line)
