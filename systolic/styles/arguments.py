"""Options that both styles have on the command line, as data: the memory, and the share of a board that is used."""

from __future__ import annotations

from systolic.choices import DDR_EFFICIENCY, SHARES
from systolic.option import Option, real

BOARDS_RATE = "the board's, as booted"


def memory_arguments(rate: str = BOARDS_RATE, efficiency: str = f"{DDR_EFFICIENCY:g}") -> tuple[Option, Option]:
    """Return ``--ddr-gbps`` and ``--ddr-efficiency``; rate, efficiency: their defaults, in words."""
    return (
        Option("--ddr-gbps", type=real, metavar="GB/S", help=f"Set the DDR's peak rate (default: {rate})"),
        Option(
            "--ddr-efficiency",
            type=real,
            metavar="SHARE",
            help=f"Set the usable share of that rate (default: {efficiency})",
        ),
    )


MEMORY_OR_SAVED = memory_arguments("saved, or the board's", f"saved, or {DDR_EFFICIENCY:g}")
"""The memory of a command that also takes a saved schedule or folding."""

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
"""The options of every command that maps a network onto a board."""
