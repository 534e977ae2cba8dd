"""The frame rate at each DDR profile of a board, which every report of a rate that depends on the DDR shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from boards.board import Board
from boards.facts import DDR_PROFILES
from scheduler.hardware.ddr import DdrRate

PROFILES_HEAD = f"at {' / '.join(DDR_PROFILES)} DDR"
"""The head of the column that ``profiles_cell`` fills."""


@dataclass(frozen=True)
class ProfileRate:
    """The frame rate at one DDR profile.

    Attributes:
        profile: The name of the profile, one of DDR_PROFILES.
        share: The share of the DDR's peak that carries data.
        frames_per_second: The frames per second at that share.
    """

    profile: str
    share: float
    frames_per_second: float

    def __str__(self) -> str:
        return f"{self.profile} {self.share:.3g} → {self.frames_per_second:.1f}"


def profile_rates(board: Board, rate_at: Callable[[float], float]) -> tuple[ProfileRate, ...]:
    """Return the frame rate at each profile of the board.

    Args:
        board: The board.
        rate_at: Returns the frames per second if the DDR carries data in this share of its peak.
    """
    shares = {name: board.ddr.share(name) for name in DDR_PROFILES}
    rates = {share: rate_at(share) for share in shares.values()}
    return tuple(ProfileRate(name, share, rates[share]) for name, share in shares.items())


def profile_of(board: Board, rate: DdrRate) -> str:
    """Return the name of the profile whose share the rate has; "given" if the share is the user's own."""
    return next((name for name in DDR_PROFILES if board.ddr.share(name) == rate.efficiency), "given")


def profile_values(board: Board, rate: DdrRate, rates: tuple[ProfileRate, ...]) -> dict[str, Any]:
    """Return keys of a JSON object: ddr_profile, see ``profile_of``, and ddr_profiles, the fields of ``rates``."""
    return {"ddr_profile": profile_of(board, rate), "ddr_profiles": [asdict(rate) for rate in rates]}


def profiles_text(board: Board, rate: DdrRate, rates: tuple[ProfileRate, ...], source: str = "modelled") -> str:
    """Return a line with the share that a report uses and the frame rate at each profile.

    Args:
        board: The board.
        rate: The bandwidth that the report uses.
        rates: The frame rates, from ``profile_rates``.
        source: The origin of the frame rates: "modelled" or "traced".
    """
    return f"{rate} ({profile_of(board, rate)}); frames/s by DDR profile ({source}): {', '.join(map(str, rates))}"


def profiles_cell(rates: tuple[ProfileRate, ...]) -> str:
    """Return the frame rates at all profiles, in the order of PROFILES_HEAD."""
    return " / ".join(f"{rate.frames_per_second:.1f}" for rate in rates)
