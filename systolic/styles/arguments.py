"""Command-line options that both styles have: the DDR's rate, and the share of a board's resources to use."""

from __future__ import annotations

from systolic.choices import DDR_PROFILES, SHARES
from systolic.option import Option, real

BOARDS_RATE = "the board's, as booted"
"""The default of ``--ddr-gbps`` in help texts: the rate that the board's boot image sets."""

USUAL_PROFILE = DDR_PROFILES[0]
"""The default of ``--ddr-profile``: the board's measured share."""


def memory_arguments(rate: str = BOARDS_RATE, profile: str = USUAL_PROFILE) -> tuple[Option, Option, Option]:
    """Return ``--ddr-gbps``, ``--ddr-efficiency`` and ``--ddr-profile``, with their defaults in the help text.

    Args:
        rate: The default of ``--ddr-gbps``, in words for the help text.
        profile: The default of ``--ddr-profile``, in words for the help text.
    """
    return (
        Option("--ddr-gbps", type=real, metavar="GB/S", help=f"Set the DDR's peak rate (default: {rate})"),
        Option(
            "--ddr-efficiency",
            type=real,
            metavar="SHARE",
            help="Set the usable share of the DDR's peak rate (default: the profile's)",
        ),
        Option(
            "--ddr-profile",
            metavar="PROFILE",
            choices=DDR_PROFILES,
            help=f"Take a share of the board file: {' or '.join(DDR_PROFILES)} (default: {profile})",
        ),
    )


MEMORY_OR_SAVED = memory_arguments("the saved file's, or the board's", f"saved, or {USUAL_PROFILE}")
"""The memory options of a command that also accepts a saved schedule or folding, which states its own rate."""

SHARE_ARGUMENTS = tuple(
    Option(
        f"--{name}-share",
        type=real,
        metavar="SHARE",
        default=share,
        help=f"Use at most this share of the board's {name.upper()}s (default: %(default)s)",
    )
    for name, share in SHARES.items()
)
"""The options ``--dsp-share`` and so on, of every command that maps a network onto a board."""
