"""Integer arithmetic of sizes."""

from __future__ import annotations

NEVER = 1 << 60
"""More cycles, bytes or area than anything takes."""


def ceil_div(dividend: int, divisor: int) -> int:
    """dividend / divisor, rounded up; also of numpy grids of integers."""
    return -(-dividend // divisor)
