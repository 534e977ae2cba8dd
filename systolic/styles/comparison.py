"""The parts of a comparison of several schedules or foldings that both styles share."""

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
class ComparisonRow(Generic[MappingT]):
    """One row of a comparison: a requested schedule or folding, or the error that explains why there is none.

    Attributes:
        asked: The request in words, such as a size of the array or a search.
        mapping: The mapping; None if the request has none.
        error: The error that explains why there is no mapping; None if there is one.
    """

    asked: str
    mapping: MappingT | None
    error: SystolicError | None = None

    @property
    def reason(self) -> str:
        """The text of the error that explains why there is no mapping; "" if there is one."""
        return str(self.error) if self.error else ""

    @property
    def first_line(self) -> str:
        """The first line of ``reason``, for a cell of a table."""
        return "".join(self.reason.splitlines()[:1])


@dataclass(frozen=True, eq=False)
class Comparison(ABC, Generic[MappingT]):
    """A comparison of several schedules, or of several foldings, of a network.

    Attributes:
        network: The name of the network, or several names if it was quantised in several ways.
        rows: One row for each request.
        head: The column titles of the table.
    """

    network: str
    rows: tuple[ComparisonRow[MappingT], ...]
    head: ClassVar[tuple[str, ...]]

    @property
    def found(self) -> list[tuple[str, MappingT]]:
        """The mappings that were found: pairs of the request in words and the mapping."""
        return [(row.asked, row.mapping) for row in self.rows if row.mapping is not None]

    @abstractmethod
    def values(self) -> dict[str, Any]:
        """Return all compared mappings as a JSON object."""

    @abstractmethod
    def cells(self) -> list[list[Cell]]:
        """Return the rows of the comparison's table; ``head`` has the titles of its columns."""

    @property
    @abstractmethod
    def note(self) -> str:
        """The note below the table, which explains how to read it."""

    @abstractmethod
    def pictures(self) -> list[Figure]:
        """Return the figures below the table; called only if at least one mapping was found."""

    def text(self) -> str:
        """Return the comparison's table and note for a terminal."""
        return f"{table(self.head, self.cells())}\n\n{self.note}"

    def html(self) -> str:
        """Return the HTML that compares the rows: table, note and figures, without the head of a page."""
        pictures = map(picture, self.pictures() if self.found else ())
        return "".join((html_table(self.head, self.cells()), f'<p class="note">{escape(self.note)}</p>', *pictures))

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.html()
