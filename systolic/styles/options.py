"""What the options of both styles are made of: arguments of the command line as data, the memory and the budget that
both count with, and saved files."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boards.board import Board
from boards.errors import DamagedFileError, FileAccessError, cut
from scheduler.hand_edited import MAX_BYTES
from scheduler.hardware.budget import Budget, check_budget
from scheduler.hardware.ddr import DDR_EFFICIENCY, DdrRate, ddr_rate


@dataclass(frozen=True)
class Argument:
    """One option of a style on the command line. settings: what argparse takes beside flag, help and default.
    elsewhere: why the other styles have none, for who asks for it there."""

    flag: str
    help: str
    default: Any = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    elsewhere: str = ""

    @property
    def name(self) -> str:
        """The attribute of the parsed options."""
        return self.flag.removeprefix("--").replace("-", "_")

    def add_to(self, parser: argparse._ActionsContainer) -> None:
        parser.add_argument(self.flag, help=self.help, default=self.default, **self.settings)


def why_not(arguments: Sequence[Argument], names: Sequence[str]) -> str:
    """What is said of options of another style, by flag or by name; "" where there is nothing to say."""
    reasons = [a.elsewhere for a in arguments if a.elsewhere and {a.flag, a.name} & {*names}]
    return "".join(f"; {reason}" for reason in reasons)


def flags_set(options: argparse.Namespace, arguments: Sequence[Argument]) -> list[str]:
    """Flags of those ``arguments`` that differ from their defaults."""
    return [argument.flag for argument in arguments if getattr(options, argument.name) != argument.default]


# --- the memory and the budget -------------------------------------------------------------------------------------

DDR_ARGUMENTS = (
    Argument(
        "--ddr-gbps",
        "the DDR's peak in 10⁹ bytes a second (default: that of a saved file or design, else what the board's boot "
        "image runs it at)",
        settings={"type": float, "metavar": "GBPS"},
    ),
    Argument(
        "--ddr-efficiency",
        f"share of that peak that carries data (default: that of a saved file or design, else {DDR_EFFICIENCY:g})",
        settings={"type": float, "metavar": "SHARE"},
    ),
)
"""The same in every command that counts with the DDR."""

SHARE_ARGUMENTS = tuple(
    Argument(
        f"--{name}-share",
        f"most of the board's {name.upper()}s that the design may take (default: %(default)s)",
        share,
        {"type": float, "metavar": "SHARE"},
    )
    for name, share in Budget().fabric.items()
)
"""The same in every command that maps a network onto a board."""


def budget_from(options: argparse.Namespace) -> Budget:
    """Return the budget of the parsed SHARE_ARGUMENTS; RangeError for a number that is not a share."""
    return check_budget(Budget(**{name: getattr(options, f"{name}_share") for name in Budget().fabric}))


@dataclass(frozen=True, kw_only=True)
class HardwareOptions:
    """What both styles ask of the hardware.

    ddr_gbps: the DDR's peak, what the board's boot image runs it at where it is None; ddr_efficiency: the share of it
    that carries data. budget: how much of the board a design may take.
    """

    ddr_gbps: float | None = None
    ddr_efficiency: float | None = None
    budget: Budget = field(default_factory=Budget)

    def ddr_rate(self, board: Board, saved: DdrRate | None = None) -> DdrRate:
        """What is asked for, else what a saved file was made for, else what the board has."""
        rate = saved or ddr_rate(board)
        return ddr_rate(
            board,
            rate.gbps if self.ddr_gbps is None else self.ddr_gbps,
            rate.efficiency if self.ddr_efficiency is None else self.ddr_efficiency,
        )


# --- saved files ---------------------------------------------------------------------------------------------------


def saved_text(saved: Path | str, what: str, made_by: str) -> tuple[str, str]:
    """The JSON of a saved schedule or folding, and its name for errors.

    saved: a file, or the JSON itself. Raises FileAccessError or DamagedFileError if the file cannot be read; its remedy
    names the command that writes one.
    """
    if isinstance(saved, str) and saved.lstrip().startswith("{"):
        return saved, f"the {what}"
    path, remedy = Path(saved), f"write one with {made_by}"
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise DamagedFileError(str(path), f"is not a {what}: it has more than {MAX_BYTES:,} bytes", remedy=remedy)
        return data.decode("utf-8"), cut(path.name)
    except UnicodeDecodeError as error:
        raise DamagedFileError(str(path), f"is not a {what}: it is not text in UTF-8", remedy=remedy) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise FileAccessError(str(path), f"cannot be read: {cut(reason)}", what, remedy=remedy) from error
