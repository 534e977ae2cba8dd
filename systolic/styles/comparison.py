"""Mappings of a network next to each other, as both styles compare them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from boards.errors import SystolicError
from systolic.report.page import html_table, picture
from systolic.report.tables import Cell, table
from systolic.styles.style import NetworkMapping

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MappingT = TypeVar("MappingT", bound=NetworkMapping)


@dataclass(frozen=True, eq=False)
class Candidate(Generic[MappingT]):
    """One row of a comparison.

    Attributes:
        asked: What was asked for, in words: an array, a search.
        mapping: The mapping; None if there is none.
        error: Why there is none; None if there is a mapping.
    """

    asked: str
    mapping: MappingT | None
    error: SystolicError | None = None

    @property
    def reason(self) -> str:
        """The sentence of the error; empty if there is none."""
        return str(self.error) if self.error else ""

    @property
    def first_line(self) -> str:
        """The first line of the sentence of the error, for a cell of a table."""
        return "".join(self.reason.splitlines()[:1])


@dataclass(frozen=True, eq=False)
class Comparison(ABC, Generic[MappingT]):
    """Several mappings of a network.

    Attributes:
        network: Its name, or several names if it was quantised in several ways.
        rows: A row for each thing that was asked for.
        head: The head of the table.
    """

    network: str
    rows: tuple[Candidate[MappingT], ...]
    head: ClassVar[tuple[str, ...]]

    @property
    def found(self) -> list[tuple[str, MappingT]]:
        """The mappings that there are, each after what was asked for."""
        return [(row.asked, row.mapping) for row in self.rows if row.mapping is not None]

    @abstractmethod
    def values(self) -> dict[str, Any]:
        """Return one JSON object."""

    @abstractmethod
    def cells(self) -> list[list[Cell]]:
        """Return the lines of the table under ``head``."""

    @property
    @abstractmethod
    def note(self) -> str:
        """What a reader of the table has to know."""

    @abstractmethod
    def pictures(self) -> list[Figure]:
        """Return the pictures below the table; called only if there are mappings."""

    def text(self) -> str:
        """Return the table and its note for a terminal."""
        return f"{table(self.head, self.cells())}\n\n{self.note}"

    def html(self) -> str:
        """Return the part of a page that compares the rows: table, note and pictures."""
        pictures = map(picture, self.pictures() if self.found else ())
        return "".join((html_table(self.head, self.cells()), f'<p class="note">{escape(self.note)}</p>', *pictures))

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.html()
