"""Reads the directives in the sources: ``#pragma HLS NAME option=value …``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from hls_templates.documented.directives import DIRECTIVES
from hls_templates.documented.options import Directive, Words
from hls_templates.syntax.nodes import is_pragma, text_of, walk
from hls_templates.syntax.program import Program


@dataclass(frozen=True)
class ParsedPragma:
    """An HLS directive (``#pragma HLS``) in the sources, with its options.

    Attributes:
        node: Its node.
        name: Its name in upper case; "" for an empty directive.
        options: (option in lower case, value) in the order of the text. A bare word has the value None.
    """

    node: Node
    name: str
    options: tuple[tuple[str, str | None], ...]

    def get(self, option: str) -> str | None:
        return next((value for name, value in self.options if name == option), None)

    def lower(self, option: str) -> str:
        """Return the value of the directive's option in lower case; "" if it is absent."""
        return (self.get(option) or "").lower()

    def has(self, option: str) -> bool:
        return any(name == option for name, _ in self.options)

    @property
    def is_off(self) -> bool:
        return self.has("off") and (self.lower("off") or "true") == "true"


_LITERAL = re.compile(r"[+-]?(0[xX][0-9a-fA-F]{1,15}|[0-9]{1,18})")


def number_of(value: str | None) -> int | None:
    """Return the value of a directive's option as a whole number; None for another expression, and for more than 18
    digits."""
    if value is None or not _LITERAL.fullmatch(value):
        return None
    return int(value, 16 if "x" in value.lower() else 10)


def read_pragma(node: Node) -> ParsedPragma:
    """Return the directive of a syntax node ``#pragma HLS …``."""
    words = re.sub(r"\s*=\s*", "=", text_of(node)).split()[2:]
    name = words[0].split("(")[0].upper() if words else ""
    pairs = [word.partition("=") for word in words[1:]]
    options = tuple((key.lower(), value if equals else None) for key, equals, value in pairs)
    directive = DIRECTIVES.get(name)
    return ParsedPragma(
        node, name, tuple(_spelled_out(directive, *option) for option in options) if directive else options
    )


def _spelled_out(directive: Directive, name: str, value: str | None) -> tuple[str, str | None]:
    """Return an option and its value in the present spelling: ``type=complete`` for the bare word ``complete`` of older
    tools."""
    if value is not None or name in directive.options:
        return name, value
    for option, kind in directive.options.items():
        if isinstance(kind, Words) and kind.bare and name in kind.words:
            return option, name
    return name, None


def pragmas(program: Program) -> tuple[ParsedPragma, ...]:
    """Return all HLS directives of the program, in the order of the text."""
    return tuple(read_pragma(node) for node in walk(program.root) if is_pragma(node))


def pragma_in(block: Node | None, name: str) -> ParsedPragma | None:
    """Return the HLS directive ``name`` that is directly in a block; None if it is absent or has the option off."""
    nodes = block.children if block is not None else []
    standing = (read_pragma(node) for node in nodes if is_pragma(node))
    return next((pragma for pragma in standing if pragma.name == name and not pragma.is_off), None)
