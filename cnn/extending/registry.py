"""Values that installed packages add through the entry points in their metadata (docs/how-to/extend.md).

A registry is a mapping of the project's own values, followed by the values of every package with an entry point of the
registry's group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from boards.errors import ChoiceError, ConflictError, InvalidValueError, ToolError, cut, shown

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """A mapping of names to the project's own values and to those that installed packages add by entry points.

    Packages are searched when a name is looked up that the project itself does not have. Errors name the package:
    ToolError if its value cannot be imported, InvalidValueError if the value is of another kind, ConflictError if its
    name is taken.

    Args:
        group: The group of the entry points; their names are the values' names.
        built_in: The project's own values; packages cannot replace them.
        required: A description of a valid value, for errors.
        fits: Returns whether a value is valid.
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
                subjects = (f"{shown(point.name)} of {_owner(point)}", f"the existing {shown(point.name)}")
                raise ConflictError(subjects, "each name can be used only once", where=self.group)
            points[point.name] = point
        return points

    def __getitem__(self, name: str) -> T:
        if name in self._own:
            return self._own[name]
        return self._loaded(self._added[name])

    def _loaded(self, point: EntryPoint) -> T:
        try:
            value = point.load()
        except Exception as error:  # a package's module may raise any exception
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
        """The names of the values that installed packages add."""
        return tuple(self._added)

    def refresh(self) -> None:
        """Make the next look-up search the installed packages again, because one was installed or removed."""
        vars(self).pop("_added", None)

    def named(self, name: str, subject: str) -> T:
        """Return ``self[name]``; ChoiceError with all names if there is none of that name."""
        if name not in self:
            raise ChoiceError(f"the {subject}", name, tuple(self))
        return self[name]


def _owner(point: EntryPoint) -> str:
    return f"the package {point.dist.name}" if point.dist else "a package"
