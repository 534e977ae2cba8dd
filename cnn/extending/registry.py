"""Values that installed packages add, by the entry points of their metadata (docs/how-to/extend.md).

A registry is a mapping: the project's own values, followed by those of every package that names the group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from boards.errors import ChoiceError, ConflictError, InvalidValueError, ToolError, cut, shown

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Values by name: the project's own, then those of packages.

    Packages are searched when a name is looked up that is not the project's own. Errors name the package: ToolError if
    its value cannot be imported, InvalidValueError if it is something else, ConflictError if its name is taken.

    Args:
        group: The entry points' group; their names are the values' names.
        built_in: The project's own values; no package replaces one.
        required: What a value of the group is, in words.
        fits: Returns whether a value is such.
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
                subjects = (f"{shown(point.name)} of {_owner(point)}", f"{shown(point.name)} that is there")
                raise ConflictError(subjects, "each name is taken once", where=self.group)
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
            reason = f"adds {shown(point.name)}, which cannot be imported: {cut(error)}"
            raise ToolError(_owner(point), reason, where=self.group) from error
        if not self._fits(value):
            what = f"{shown(point.name)} of {_owner(point)}"
            raise InvalidValueError(what, value, self._required, where=self.group)
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
        """Return ``self[name]``; ChoiceError lists the names if there is no such."""
        if name not in self:
            raise ChoiceError(f"the {subject}", name, tuple(self))
        return self[name]


def _owner(point: EntryPoint) -> str:
    return f"the package {point.dist.name}" if point.dist else "a package"
