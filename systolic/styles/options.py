"""What the options of both styles are made of: arguments of the command line as data, and saved files."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boards.errors import ScheduleError, cut
from scheduler.hand_edited import MAX_BYTES


@dataclass(frozen=True)
class Argument:
    """One option of a style on the command line. settings: what argparse takes beside flag, help and default."""

    flag: str
    help: str
    default: Any = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The attribute of the parsed options."""
        return self.flag.removeprefix("--").replace("-", "_")

    def add_to(self, parser: argparse._ActionsContainer) -> None:
        parser.add_argument(self.flag, help=self.help, default=self.default, **self.settings)


def flags_set(options: argparse.Namespace, arguments: Sequence[Argument]) -> list[str]:
    """Flags of those ``arguments`` that differ from their defaults."""
    return [argument.flag for argument in arguments if getattr(options, argument.name) != argument.default]


def saved_text(saved: Path | str, what: str, made_by: str) -> tuple[str, str]:
    """The JSON of a saved schedule or folding, and its name for errors.

    saved: a file, or the JSON itself. ScheduleError where the file cannot be read, with the command that writes one.
    """
    if isinstance(saved, str) and saved.lstrip().startswith("{"):
        return saved, f"the {what}"
    path = Path(saved)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ScheduleError(f"{path} is no {what}, it has more than {MAX_BYTES} bytes; write one with {made_by}")
        return data.decode("utf-8"), cut(path.name)
    except UnicodeDecodeError as error:
        raise ScheduleError(f"the {what} {path} is no text; write one with {made_by}") from error
    except (OSError, ValueError) as error:
        raise ScheduleError(f"the {what} {cut(path)} cannot be read: {cut(error)}; write one with {made_by}") from error
