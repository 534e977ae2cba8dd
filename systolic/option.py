"""One option of a command as data. Nothing is imported here, so that help and completion start at once."""

from __future__ import annotations

TYPE_CHECKING = False  # of typing, whose import takes longer than this whole module
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Any


HIDDEN = "hidden"
"""The help of an option that still works and is not shown."""


class Option:
    """An option or a positional argument of a command.

    Attributes:
        flags: Its spellings. A positional argument has one, without dashes.
        help: One line: a verb, the thing, the default.
        complete: What a shell completes: a tuple of words, or a name of ``systolic.cli.completion.COMPLETERS``.
        elsewhere: Why the other style has no such option; empty if there is nothing to say.
        settings: Whatever else ``argparse`` takes: type, metavar, nargs, choices, default, action, required, dest.
    """

    def __init__(
        self,
        *flags: str,
        help: str,
        complete: str | tuple[str, ...] = "",
        elsewhere: str = "",
        **settings: Any,
    ) -> None:
        self.flags, self.help, self.complete, self.elsewhere = flags, help, complete, elsewhere
        self.settings = settings

    @property
    def flag(self) -> str:
        """The long spelling, as sentences name the option."""
        return self.flags[-1]

    @property
    def name(self) -> str:
        """The attribute of the parsed options."""
        return str(self.settings.get("dest", self.flag.removeprefix("--").replace("-", "_")))

    @property
    def default(self) -> Any:
        """The value of a command line without the option."""
        return self.settings.get("default", False if self.settings.get("action") == "store_true" else None)

    def but(self, help: str = "", **settings: Any) -> Option:
        """Return this option with another help or with other settings."""
        merged = {**self.settings, **settings}
        return Option(*self.flags, help=help or self.help, complete=self.complete, elsewhere=self.elsewhere, **merged)

    def add_to(self, parser: argparse._ActionsContainer) -> argparse.Action:
        """Declare the option to ``argparse``."""
        from argparse import SUPPRESS  # which it tells from an equal text

        return parser.add_argument(*self.flags, help=SUPPRESS if self.help == HIDDEN else self.help, **self.settings)


def flags_set(options: argparse.Namespace, among: Sequence[Option]) -> list[str]:
    """Return the flags of those options that differ from their defaults."""
    return [option.flag for option in among if getattr(options, option.name) != option.default]


def why_not(options: Sequence[Option], asked: Sequence[str]) -> str:
    """Return why the other style has no option of these flags or names; "" if there is nothing to say."""
    reasons = [option.elsewhere for option in options if option.elsewhere and {option.flag, option.name} & {*asked}]
    return "".join(f"; {reason}" for reason in reasons)


# --- the types of values, which argparse calls with the text of the command line


def path(text: str) -> Path:
    """Return the path of a file or folder."""
    from pathlib import Path

    return Path(text)


def objective(text: str) -> str:
    """Return an objective of a search. "latency" is "fps": the engine takes one frame after the other."""
    return "fps" if text == "latency" else text


def whole(text: str) -> int:
    """Return a whole number."""
    try:
        return int(text)
    except ValueError as error:
        raise _wrong("a whole number", text) from error


def real(text: str) -> float:
    """Return a number."""
    try:
        return float(text)
    except ValueError as error:
        raise _wrong("a number", text) from error


def reals(text: str) -> tuple[float, ...]:
    """Return the numbers of a list: "0.5,0.4,0.4" → (0.5, 0.4, 0.4)."""
    try:
        return tuple(float(number) for number in text.split(","))
    except ValueError as error:
        raise _wrong("one number, or one per channel with commas between, such as 0.485,0.456,0.406", text) from error


def size(text: str) -> tuple[int, int]:
    """Return width and height: "416x416" → (416, 416)."""
    width, _, height = text.lower().partition("x")
    if not (width.isdigit() and height.isdigit()):
        raise _wrong("WIDTHxHEIGHT in pixels, such as 416x416", text)
    if not (int(width) and int(height)):
        raise _wrong("at least 1x1", text)
    return int(width), int(height)


def _wrong(required: str, got: str) -> Exception:
    from argparse import ArgumentTypeError

    from boards.errors import shown

    return ArgumentTypeError(f"must be {required}; got {shown(got)}")
