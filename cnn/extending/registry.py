"""What installed packages of others add, by the entry points of their metadata (docs/how-to/extend.md).

A registry is a mapping: the project's own values, and behind them those of every package that names the group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from boards.errors import NetworkError, cut, listed, shown

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Values by name. group: of the entry points, whose names are the values' names. built_in: these come first, and no
    package replaces one. fits: whether a value is what the group holds, required says in words what that is.

    Packages are asked for when a name is looked up that is not the project's own. NetworkError names the package whose
    value cannot be imported, is something else, or has a name that is taken.
    """

    def __init__(
        self,
        group: str,
        built_in: Mapping[str, T],
        required: str = "a function",
        fits: Callable[[Any], bool] = callable,
    ) -> None:
        self.group, self._own, self._required, self._fits = group, built_in, required, fits

    @cached_property
    def _added(self) -> Mapping[str, EntryPoint]:
        points: dict[str, EntryPoint] = {}
        for point in entry_points(group=self.group):
            if point.name in self._own or point.name in points:
                raise NetworkError(f"{_told(point)} cannot add {shown(point.name)} to {self.group}: that name is taken")
            points[point.name] = point
        return points

    def __getitem__(self, name: str) -> T:
        if name in self._own:
            return self._own[name]
        return self._loaded(self._added[name])

    def _loaded(self, point: EntryPoint) -> T:
        try:
            value = point.load()
        except Exception as error:  # whatever a module of others raises
            raise NetworkError(
                f"{_told(point)} adds {shown(point.name)}, and cannot be imported: {cut(error)}"
            ) from error
        if not self._fits(value):
            raise NetworkError(
                f"{_told(point)} must add {self._required} as {shown(point.name)} to {self.group}, not {shown(value)}"
            )
        loaded: T = value
        return loaded

    def __iter__(self) -> Iterator[str]:
        return iter((*self._own, *self._added))

    def __len__(self) -> int:
        return len(self._own) + len(self._added)

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._added

    @property
    def added(self) -> tuple[str, ...]:
        """The names that packages add."""
        return tuple(self._added)

    def refresh(self) -> None:
        """Packages are asked for again: one was installed, or is gone."""
        vars(self).pop("_added", None)

    def named(self, name: str, subject: str) -> T:
        """As ``[name]``; NetworkError says which there are."""
        if name not in self:
            raise NetworkError(f"there is no {subject} {shown(name)}; there are {listed(self)}")
        return self[name]


def _told(point: EntryPoint) -> str:
    return f"the package {point.dist.name}" if point.dist else "a package"
