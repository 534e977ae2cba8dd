"""How near the model of the engine in SystemVerilog is to what is counted."""

from __future__ import annotations

SHARE = 0.03
"""Of a layer's counted cycles."""

HANDFUL = 30
"""Cycles that a layer of less than a thousand may be off."""


def within(modelled: int, counted: int) -> bool:
    """Whether a layer is as near as is said."""
    return abs(modelled - counted) <= max(HANDFUL, SHARE * counted)
