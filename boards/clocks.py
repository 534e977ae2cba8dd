"""The PL clocks that the processing system can make: a PLL's frequency divided by two integers.

Source: UG1085 and UG1087 (PL0_REF_CTRL) for Zynq UltraScale+, UG585 (FPGA0_CLK_CTRL) for Zynq-7000.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from boards.facts import Clock, Pll

MAX_DIVISOR = 63
"""Both dividers after a PLL have 6 bits."""


@cache
def clocks_up_to(plls: tuple[Pll, ...], limit_mhz: float) -> tuple[Clock, ...]:
    """Return the clocks of ``plls`` up to ``limit_mhz``, in ascending order.

    If two PLLs make the same clock, the PLL that is declared first is taken: the board's preset uses that one.
    """
    clocks: dict[Fraction, Clock] = {}
    for pll in plls:
        for divisor0, divisor1 in _divisor_pairs():
            ratio = _nominal(pll) / (divisor0 * divisor1)
            if ratio <= limit_mhz:
                clocks.setdefault(ratio, _clock(pll, divisor0, divisor1))
    return tuple(clocks[ratio] for ratio in sorted(clocks))


def _divisor_pairs() -> list[tuple[int, int]]:
    """Return one pair for each product of two 6-bit divisors: the pair with the smallest second divisor."""
    pairs: dict[int, tuple[int, int]] = {}
    for divisor1 in range(1, MAX_DIVISOR + 1):
        for divisor0 in range(1, MAX_DIVISOR + 1):
            pairs.setdefault(divisor0 * divisor1, (divisor0, divisor1))
    return list(pairs.values())


def _nominal(pll: Pll) -> Fraction:
    """Return a PLL's frequency rounded to 0.5 MHz, so that 1499.85 and 1500 MHz of two PLLs make the same clock."""
    return Fraction(round(pll.mhz * 2), 2)


def _clock(pll: Pll, divisor0: int, divisor1: int) -> Clock:
    return Clock(pll.mhz / (divisor0 * divisor1), pll.name, divisor0, divisor1)
