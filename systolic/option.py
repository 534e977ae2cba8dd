"""The declaration of a command's option as data. This module imports nothing, so that help and completion are fast."""

from __future__ import annotations

TYPE_CHECKING = False  # typing.TYPE_CHECKING: importing typing takes longer than the rest of this module
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Any


HIDDEN = "hidden"
"""The help text of a deprecated option, which still works but is not listed."""


class Option:
    """An option or a positional argument of a command.

    Attributes:
        flags: The names on the command line, the long one last. A positional argument has one, without dashes.
        help: One sentence in the imperative, with the default.
        complete: The completions that a shell offers: a tuple of values, or a key of
            ``systolic.cli.completion.COMPLETERS``.
        elsewhere: The reason why the other style does not have the option; "" if there is none to state.
        settings: Further arguments of ``argparse``: type, metavar, nargs, choices, default, action, required, dest.
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
        """The long name with its dashes, as error messages name the option."""
        return self.flags[-1]

    @property
    def name(self) -> str:
        """The name of the attribute in which ``argparse`` stores the option's value."""
        return str(self.settings.get("dest", self.flag.removeprefix("--").replace("-", "_")))

    @property
    def default(self) -> Any:
        """The option's value if the command line does not contain it."""
        return self.settings.get("default", False if self.settings.get("action") == "store_true" else None)

    def with_settings(self, help: str = "", **settings: Any) -> Option:
        """Return a copy of this option with another help text or other ``argparse`` settings."""
        merged = {**self.settings, **settings}
        return Option(*self.flags, help=help or self.help, complete=self.complete, elsewhere=self.elsewhere, **merged)

    def add_to(self, parser: argparse._ActionsContainer) -> argparse.Action:
        """Add the option to a parser or an option group of ``argparse``, and return its action."""
        from argparse import SUPPRESS  # argparse compares it by identity, so an equal string does not work

        return parser.add_argument(*self.flags, help=SUPPRESS if self.help == HIDDEN else self.help, **self.settings)


def flags_set(options: argparse.Namespace, among: Sequence[Option]) -> list[str]:
    """Return the long names, such as ``--bits``, of the options in ``among`` that differ from their defaults."""
    return [option.flag for option in among if getattr(options, option.name) != option.default]


def elsewhere_reasons(options: Sequence[Option], asked: Sequence[str]) -> str:
    """Return why the other style lacks the options that the user gave, each reason after "; "; "" if none is stated.

    Args:
        options: The options of the style that has them.
        asked: The flags or names of the options that the user gave.
    """
    reasons = [option.elsewhere for option in options if option.elsewhere and {option.flag, option.name} & {*asked}]
    return "".join(f"; {reason}" for reason in reasons)


# --- functions for argparse's ``type``, which converts the text of the command line


def path(text: str) -> Path:
    """Return ``text`` as a path."""
    from pathlib import Path

    return Path(text)


def objective(text: str) -> str:
    """Return the name of a search objective: "fps" for "latency", any other text unchanged.

    "latency" means "fps": the engine computes one frame after the other, so both are the same.
    """
    return "fps" if text == "latency" else text


def whole_number(text: str) -> int:
    """Return ``text`` as an int. Raises argparse's error if it is not a whole number."""
    try:
        return int(text)
    except ValueError as error:
        raise _wrong("a whole number", text) from error


def real(text: str) -> float:
    """Return ``text`` as a float. Raises argparse's error if it is not a number."""
    try:
        return float(text)
    except ValueError as error:
        raise _wrong("a number", text) from error


def reals(text: str) -> tuple[float, ...]:
    """Return the numbers of a comma-separated list: (0.5, 0.4, 0.4) for "0.5,0.4,0.4"."""
    try:
        return tuple(float(number) for number in text.split(","))
    except ValueError as error:
        raise _wrong("one number, or one per channel with commas between, such as 0.485,0.456,0.406", text) from error


def size(text: str) -> tuple[int, int]:
    """Return (width, height) in pixels: (416, 416) for "416x416"."""
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
