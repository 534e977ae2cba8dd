"""The types of ``documented.directives``: the kinds of values that an option takes, and the form of a directive.

The text of a kind completes the sentence "the option must be …".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Words:
    """The kind of option value that is one of the given words, in upper or lower case. With ``bare``, ``option=`` may
    be left out."""

    words: frozenset[str]
    bare: bool = False

    def __str__(self) -> str:
        return "|".join(sorted(self.words))


@dataclass(frozen=True)
class Constant:
    """The kind of option value that is a constant expression. A literal must be in ``minimum … maximum``; None means no
    maximum."""

    minimum: int
    maximum: int | None = None

    def __str__(self) -> str:
        return f"a constant of {self.minimum}…{'' if self.maximum is None else self.maximum}"


@dataclass(frozen=True)
class Name:
    """The kind of option value that is one or more names, separated by commas, in the scope of the directive.

    Attributes:
        role: The kind of thing: variable, argument, port, function, or label (a function or an operation).
    """

    role: str

    def __str__(self) -> str:
        return f"the name of a {self.role}"


@dataclass(frozen=True)
class Text:
    """The kind of option value that matches a regular expression. ``meaning`` describes it for a finding."""

    pattern: str
    meaning: str

    def __str__(self) -> str:
        return self.meaning


@dataclass(frozen=True)
class Flag:
    """The kind of option value that is a bare word without ``=``, or ``=true`` or ``=false``."""

    def __str__(self) -> str:
        return "a bare word, true or false"


Value = Words | Constant | Name | Text | Flag
"""The kinds of values that an option takes."""


@dataclass(frozen=True)
class Directive:
    """The documented form of an HLS directive: where it may be, and the kinds of its options' values.

    Attributes:
        scopes: The blocks that the directive may be in: function, loop, region, conditional.
        options: The kind of value of each option.
        needs: Options that must be given.
        early: Whether the directive must precede the first statement of its block.
        top_only: Whether it may be only in the top function.
        modes: For INTERFACE, the options of each mode.
    """

    scopes: frozenset[str]
    options: Mapping[str, Value]
    needs: tuple[str, ...] = ()
    early: bool = False
    top_only: bool = False
    modes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
