"""Mappings of a network next to each other, as both styles compare them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from boards.errors import SystolicError
from systolic.styles.style import NetworkMapping

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
    """

    network: str
    rows: tuple[Candidate[MappingT], ...]

    @property
    def found(self) -> list[tuple[str, MappingT]]:
        """The mappings that there are, each after what was asked for."""
        return [(row.asked, row.mapping) for row in self.rows if row.mapping is not None]

    @abstractmethod
    def values(self) -> dict[str, Any]:
        """Return one JSON object."""

    @abstractmethod
    def text(self) -> str:
        """Return a table for a terminal."""

    @abstractmethod
    def html(self) -> str:
        """Return the part of a page that compares the rows."""

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.html()
