"""Removes comments from C++, SystemVerilog and Tcl sources, and from Jinja templates of these.

Two files that differ only in comments, blank lines and the width of white space give the same text. Any other
difference remains, including line breaks between pieces of code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import PurePosixPath

Piece = tuple["Kind", str]


class Kind(Enum):
    """The kind of a piece of a file."""

    CODE = "code"
    STRING = "string"
    COMMENT = "comment"


def language_of(path: str) -> str | None:
    """Return "c++", "systemverilog" or "tcl" by a path's suffix, or None if comments of such files are not known.

    For a template, the suffix before ``.j2`` counts.
    """
    name = PurePosixPath(path.removesuffix(".j2"))
    return _ENDINGS.get(name.suffix)


def pieces(text: str, path: str) -> Iterator[Piece]:
    """Yield the code, strings and comments of a file in order. Joined they are the file's text.

    Raises:
        KeyError: Comments of such files are not known.
        ValueError: A comment or a string does not end.
    """
    return _LEXERS[language_of(path) or ""](text)


def without_comments(text: str, path: str) -> str:
    """Return ``text`` without comments.

    Args:
        text: The whole file.
        path: The file's name, whose suffix gives the language. A file of another language is returned unchanged. A
            template of another language is returned without Jinja's comments.

    Raises:
        ValueError: A comment or a string does not end.
    """
    language = language_of(path)
    hidden = _Hidden()
    if path.endswith(".j2"):
        text = hidden.hide_jinja(text)
    if language is not None:
        text = _plain(_LEXERS[language](text), hidden)
    return hidden.restored(text)


# --- pieces that the lexers must not read --------------------------------------------------------------------------


class _Hidden:
    """Pieces of text, each replaced by its number between two characters that sources never contain."""

    OPEN, CLOSE = "\ue000", "\ue001"
    PATTERN = re.compile(f"{OPEN}\\d+{CLOSE}")

    def __init__(self) -> None:
        self._pieces: list[str] = []

    def hide(self, piece: str) -> str:
        self._pieces.append(piece)
        return f"{self.OPEN}{len(self._pieces) - 1}{self.CLOSE}"

    def restored(self, text: str) -> str:
        """Put the pieces back. A piece that was hidden later may contain earlier ones."""
        while self.PATTERN.search(text):
            text = self.PATTERN.sub(lambda match: self._pieces[int(match[0][1:-1])], text)
        return text

    def hide_jinja(self, text: str) -> str:
        """Remove Jinja's comments, and hide its expressions and statements."""
        if self.OPEN in text or self.CLOSE in text:
            raise ValueError("the file has characters of Unicode's private area")

        def piece(match: re.Match[str]) -> str:
            if match["comment"]:
                return ""
            return self.hide(match[0])

        plain = _JINJA.sub(piece, text)
        if "{#" in plain:
            raise ValueError("a comment of Jinja does not end")
        return plain


_QUOTED = r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'"""
_JINJA = re.compile(
    r"(?P<raw>\{%[-+]?\s*raw\s*[-+]?%\}.*?\{%[-+]?\s*endraw\s*[-+]?%\})"
    r"|(?P<comment>\{#.*?#\})"
    rf"|(?P<expression>\{{\{{(?:{_QUOTED}|(?!\}}\}}).)*\}}\}})"
    rf"|(?P<statement>\{{%(?:{_QUOTED}|(?!%\}}).)*%\}})",
    re.DOTALL,
)


def _plain(pieces: Iterator[Piece], hidden: _Hidden) -> str:
    """Join everything except comments. Template expressions in a comment are kept: they may be half of a statement."""
    parts = []
    for kind, piece in pieces:
        if kind is Kind.STRING:
            parts.append(hidden.hide(piece))
        elif kind is Kind.COMMENT:
            parts.append(" " + " ".join(_Hidden.PATTERN.findall(piece)) + " ")
        else:
            parts.append(piece)
    lines = (re.sub(r"[ \t\f\v\r]+", " ", line).strip() for line in "".join(parts).split("\n"))
    return "".join(f"{line}\n" for line in lines if line)


# --- C++ and SystemVerilog -----------------------------------------------------------------------------------------

_CPP = re.compile(
    r"""
    (?P<comment> //(?:\\\r?\n|[^\n])* | /\*.*?\*/ )
    | (?P<string>
        (?:u8|[uUL])?R"(?P<mark>[^\s()\\"]{0,16})\(.*?\)(?P=mark)"   # a raw string ends at its own mark
        | (?:u8|[uUL])?"(?:\\.|[^"\\\n])*"
        | (?:u8|[uUL])?'(?:\\.|[^'\\\n])+'
        | (?<=include)[ \t]*<[^>\n]*>                                # a file name may contain //
    )
    | (?P<code> \.?\d(?:[eEpP][+-]|'\w|[\w.])* | \w+ | [^\w/"'<.]+ | . )   # 1'000 opens no character
    """,
    re.DOTALL | re.VERBOSE,
)

_SYSTEMVERILOG = re.compile(
    r"""
    (?P<comment> //[^\n]*?(?=\\?\r?(?:\n|\Z)) | /\*.*?\*/ )   # a macro may continue in the line after a comment
    | (?P<string> "(?:\\.|[^"\\])*" )
    | (?P<code> \\\S+ | [^\\/"]+ | . )                       # an escaped name ends at white space and may contain //
    """,
    re.DOTALL | re.VERBOSE,
)


def _matched(pattern: re.Pattern[str], text: str) -> Iterator[Piece]:
    for match in pattern.finditer(text):
        kind = Kind(match.lastgroup)
        if kind is Kind.CODE and match[0] == "/" and text.startswith("/*", match.start()):
            raise ValueError(f"line {text.count(chr(10), 0, match.start()) + 1}: a comment does not end")
        yield kind, match[0]


def _cpp(text: str) -> Iterator[Piece]:
    return _matched(_CPP, text)


def _systemverilog(text: str) -> Iterator[Piece]:
    return _matched(_SYSTEMVERILOG, text)


# --- Tcl -----------------------------------------------------------------------------------------------------------


def _tcl(text: str) -> Iterator[Piece]:
    """Yield the pieces of a script.

    A # begins a comment where a command may begin: at the start, or after a line break, a semicolon, an opening brace
    or an opening bracket. Every brace is taken to enclose commands, so a list in braces would lose an element that
    begins with #.
    """
    place, command, word = 0, True, True
    while place < len(text):
        character = text[place]
        end = place + 1
        kind = Kind.CODE
        if character == "#" and command:
            end, kind = _end_of_line(text, place), Kind.COMMENT
        elif character == '"' and word:
            end, kind = _end_of_quoted(text, place), Kind.STRING
            command = word = False
        elif character == "\\":
            end = min(len(text), place + 2)
            word = text[place + 1 : end] == "\n"
            command = command and word
        elif character in "\n;[{":
            command = word = True
        elif character in " \t\r":
            word = True
        else:
            command = word = False
        yield kind, text[place:end]
        place = end


def _end_of_line(text: str, place: int) -> int:
    """Return where the line ends. If lines end with a backslash, this is the end of the last continued line."""
    match = re.compile(r"(?:\\.|[^\\\n])*", re.DOTALL).match(text, place)
    assert match is not None
    return match.end()


def _end_of_quoted(text: str, start: int) -> int:
    """Return the position after the closing quotation mark. A command in brackets may contain quotation marks."""
    place, depth = start + 1, 0
    while place < len(text):
        character = text[place]
        if character == "\\":
            place += 1
        elif character == "[":
            depth += 1
        elif character == "]" and depth:
            depth -= 1
        elif character == '"' and not depth:
            return place + 1
        place += 1
    raise ValueError(f"line {text.count(chr(10), 0, start) + 1}: a quoted word does not end")


_LEXERS: dict[str, Callable[[str], Iterator[Piece]]] = {"c++": _cpp, "systemverilog": _systemverilog, "tcl": _tcl}

_ENDINGS = {
    **dict.fromkeys((".h", ".hpp", ".cpp"), "c++"),
    **dict.fromkeys((".sv", ".svh", ".v", ".vlt"), "systemverilog"),
    **dict.fromkeys((".tcl", ".xdc"), "tcl"),
}
