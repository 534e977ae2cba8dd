"""Reduces one of this project's C++ files to the code for synthesis, without expanding macros.

The linter reads text that g++ has expanded. The vendor's reports name loops by their lines in the file, and memories
are declared by macros. The comparison with the reports therefore needs all lines and macros as they are in the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from hls_templates.syntax.values import constant_value

_NOT_CODE = re.compile(r"""//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'""", re.DOTALL)
_VALUES = re.compile(r'=\s*\{[^;()"]*[;()"]?')
_DIRECTIVE = re.compile(r"\s*#\s*(\w+)")
_PRAGMA_MACRO = re.compile(r"^([ \t]*)SYSTOLIC_PRAGMA\((.*)\)[ \t]*$", re.MULTILINE)


def synthesised(text: str) -> str:
    """Return a C++ text without comments and without code that ``__SYNTHESIS__`` excludes. Each line keeps its number.

    Preprocessor directives other than pragmas are removed, and ``SYSTOLIC_PRAGMA(…)`` becomes a pragma. An initialiser
    that consists of values becomes ``{}``, because a design may embed millions of weights.
    """
    code = _VALUES.sub(_without_values, _NOT_CODE.sub(_without_comment, text))
    lines: list[str] = []
    # For each surrounding #if: whether its present branch is kept, and whether the branch after its #else is.
    conditions: list[tuple[bool, bool]] = []
    continued = False
    for line in code.split("\n"):
        directive = _DIRECTIVE.match(line)
        word = directive[1] if directive else ""
        _follow(word, line, conditions)
        stays = not continued and word in ("", "pragma") and all(part for part, _ in conditions)
        lines.append(line if stays else "")
        continued = line.endswith("\\") and (continued or bool(word))
    return _PRAGMA_MACRO.sub(r"\1#pragma \2", "\n".join(lines))


def chosen(text: str, definitions: Mapping[str, str]) -> str:
    """Return a C++ text without the lines of the branches that its ``#if`` excludes. Each line keeps its number.

    Both branches stay if the condition has other names than ``definitions``, such as ``#ifdef`` and ``defined(NAME)``
    have.

    Args:
        text: The text of a file.
        definitions: The expressions of constants by name.
    """
    lines = text.split("\n")
    # For each surrounding #if: whether its present branch stays, and whether a branch after it may stay.
    branches: list[tuple[bool, bool]] = []
    for index, line in enumerate(_NOT_CODE.sub(_without_comment, text).split("\n")):
        directive = _DIRECTIVE.match(line)
        word = directive[1] if directive else ""
        if word in ("if", "ifdef", "ifndef"):
            branches.append((True, True))
        if word in ("if", "elif") and branches and directive is not None and branches[-1][1]:
            value = constant_value(line[directive.end() :].strip(), definitions)
            branches[-1] = (True, True) if value is None else (bool(value), not value)
        elif word in ("else", "elif") and branches:
            branches[-1] = (branches[-1][1], False) if word == "else" else (False, False)
        elif word == "endif" and branches:
            branches.pop()
        elif not all(stays for stays, _ in branches):
            lines[index] = ""
    return "\n".join(lines)


def _without_comment(match: re.Match[str]) -> str:
    return " " + _newlines(match[0]) if match[0][0] == "/" else match[0]


def _without_values(match: re.Match[str]) -> str:
    text = match[0]
    of_values_alone = text.endswith(";") and text.count("{") == text.count("}")
    return f"= {{{_newlines(text)}}};" if of_values_alone else text


def _newlines(text: str) -> str:
    return "\n" * text.count("\n")


def _follow(directive: str, line: str, conditions: list[tuple[bool, bool]]) -> None:
    """Update ``conditions``, the surrounding #if blocks, for a preprocessor directive. Both branches are kept unless it
    is about __SYNTHESIS__."""
    if directive == "ifndef" and "__SYNTHESIS__" in line:
        conditions.append((False, True))
    elif directive in ("if", "ifdef", "ifndef"):
        conditions.append((True, not re.search(r"(?:ifdef|[ (]defined)[ (]+__SYNTHESIS__", line)))
    elif directive in ("else", "elif") and conditions:
        conditions[-1] = (conditions[-1][1], conditions[-1][1])
    elif directive == "endif" and conditions:
        conditions.pop()
