"""The class ``Form``: the arguments, options and example of one command."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from systolic.option import Option

MAX_FIRST = 10
"""The largest number of options that a help shows before the advanced ones."""


class Form:
    """The positional arguments and the options of one command, in the order in which its help lists them.

    Attributes:
        example: Valid command lines, one per line.
        positionals: Arguments without a flag.
        first: The options that people use first, at most ``MAX_FIRST``.
        advanced: The other options.
        groups: Title of a group → its options.
        json: Whether the command takes ``--json``.
    """

    def __init__(
        self,
        example: str,
        positionals: Sequence[Option] = (),
        first: Sequence[Option] = (),
        advanced: Sequence[Option] = (),
        groups: Mapping[str, Sequence[Option]] | None = None,
        json: bool = True,
    ) -> None:
        self.example, self.positionals = example, positionals
        self.first, self.advanced, self.groups = first, advanced, groups or {}
        self.json = json

    def options(self) -> list[Option]:
        """Return every option with a flag: the first ones, the advanced ones and the ones in groups."""
        return [*self.first, *self.advanced, *(option for group in self.groups.values() for option in group)]
