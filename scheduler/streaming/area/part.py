"""A piece of a block, and what is the same in all blocks."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.streaming.area.usage import StreamingUsage

CONTROL = 100
"""LUT of a block's loop: counters and handshakes. Estimate."""

WALK = 350
"""LUT of the addresses of a default window, a reorg or an up-sampler: some twenty counters and comparators of about
16 bits. Estimate."""


@dataclass(frozen=True)
class Part:
    """``source`` says how it was counted."""

    name: str
    usage: StreamingUsage
    source: str
