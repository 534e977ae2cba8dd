"""What an option of a directive takes, and what a directive is: the types of ``documented.directives``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Words:
    """One of these words, case ignored; a ``bare`` word may come without ``option=``."""

    words: frozenset[str]
    bare: bool = False

    def __str__(self) -> str:
        return "|".join(sorted(self.words))


@dataclass(frozen=True)
class Constant:
    """A constant expression; a literal lies in ``minimum … maximum``."""

    minimum: int
    maximum: int | None = None

    def __str__(self) -> str:
        return f"a constant of {self.minimum}…{'' if self.maximum is None else self.maximum}"


@dataclass(frozen=True)
class Name:
    """Names (commas between) of variables, of arguments only, or of functions."""

    role: str  # variable | argument | port | function | label

    def __str__(self) -> str:
        return f"the name of a {self.role}"


@dataclass(frozen=True)
class Text:
    """Free text of this pattern."""

    pattern: str
    meaning: str

    def __str__(self) -> str:
        return self.meaning


@dataclass(frozen=True)
class Flag:
    """A word without a value, or with ``=true`` or ``=false``."""

    def __str__(self) -> str:
        return "a bare word, true or false"


Value = Words | Constant | Name | Text | Flag


@dataclass(frozen=True)
class Directive:
    """``scopes`` ⊆ {function, loop, region, conditional}: what the enclosing block may belong to."""

    scopes: frozenset[str]
    options: Mapping[str, Value]
    needs: tuple[str, ...] = ()
    early: bool = False
    top_only: bool = False
    modes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
