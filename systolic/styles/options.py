"""The options that both styles have: the DDR's rate, the share of a board's resources, and saved files."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from pathlib import Path

from boards.board import Board
from boards.errors import ConflictError, DamagedFileError, FileAccessError, cut
from scheduler.hand_edited import MAX_BYTES
from scheduler.hardware.budget import Budget, check_budget
from scheduler.hardware.ddr import DdrRate, ddr_rate


def budget_from(options: argparse.Namespace) -> Budget:
    """Return the shares of the board's resources that a command line allows (--dsp-share and so on).

    Raises:
        RangeError: A number is not a valid share.
    """
    return check_budget(Budget(**{name: getattr(options, f"{name}_share") for name in Budget().fabric}))


@dataclass(frozen=True, kw_only=True)
class HardwareOptions:
    """The options of both styles about the hardware: DDR rate and share of the board's resources.

    Attributes:
        ddr_gbps: Peak rate of the DDR in GB/s; None for the rate that the board's boot image sets.
        ddr_efficiency: Usable share of that rate; None for the profile's share.
        ddr_profile: "measured" or "optimistic", the share that the board states; None for the saved file's share, or
            else the measured one.
        budget: The share of the board that a design may take.
    """

    ddr_gbps: float | None = None
    ddr_efficiency: float | None = None
    ddr_profile: str | None = None
    budget: Budget = field(default_factory=Budget)

    def ddr_rate(self, board: Board, saved: DdrRate | None = None) -> DdrRate:
        """Return the DDR rate: the requested one, else the saved file's, else the board's.

        Raises:
            RangeError: A value is out of range.
            ChoiceError, ConflictError: The errors of ``share_of``.
        """
        rate, share = saved or ddr_rate(board), share_of(board, self.ddr_efficiency, self.ddr_profile)
        return ddr_rate(
            board,
            rate.gbps if self.ddr_gbps is None else self.ddr_gbps,
            rate.efficiency if share is None else share,
        )


def share_of(board: Board, efficiency: float | None, profile: str | None) -> float | None:
    """Return the requested share of the DDR's peak; None if neither a share nor a profile is requested.

    Raises:
        ChoiceError: No profile has that name.
        ConflictError: Both a share and a profile are requested.
    """
    if profile is None:
        return efficiency
    if efficiency is not None:
        both = (f"--ddr-efficiency {efficiency:g}", f"--ddr-profile {profile}")
        raise ConflictError(both, "a profile states the share", remedy=f"remove {both[0]}, or {both[1]}")
    return board.ddr.share(profile)


# --- saved files ---------------------------------------------------------------------------------------------------


GIVEN = "the JSON that was given"
"""The name that errors use in place of a file's name if the caller gave the JSON itself."""


def saved_text(saved: Path | str, what: str, made_by: str) -> tuple[str, str]:
    """Return the JSON text of a saved schedule or folding, and the file's name for errors.

    Args:
        saved: A file, or the JSON itself.
        what: The kind of file, for errors: "schedule" or "folding".
        made_by: The command that writes such a file, for the remedy of errors.

    Raises:
        FileAccessError: The file cannot be read.
        DamagedFileError: The file is too long, or is not text in UTF-8.
    """
    if isinstance(saved, str) and saved.lstrip().startswith("{"):
        return saved, GIVEN
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
