"""Integer arithmetic of sizes."""

from __future__ import annotations

NEVER = 1 << 60
"""A number above every count of cycles, bytes or area. It stands for "impossible" in minima."""


def ceil_div(dividend: int, divisor: int) -> int:
    """Return dividend / divisor, rounded up. Arrays of integers are divided element by element."""
    return -(-dividend // divisor)
