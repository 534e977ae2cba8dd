"""A part of a block's hardware, and the estimates that several kinds of blocks share."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.streaming.area.usage import StreamingUsage

CONTROL = 100
"""The LUTs that control a block's loop: counters and handshakes. Estimate."""

WALK = 350
"""The LUTs that compute the addresses of a default window, a reorg or an up-sampler. Estimate: about twenty counters
and comparators of about 16 bits."""


@dataclass(frozen=True)
class Part:
    """The estimated resources of one part of a block's hardware, such as its multipliers or its control.

    Attributes:
        name: The name of the part.
        usage: The resources that it takes.
        source: A short note on how the resources were counted.
    """

    name: str
    usage: StreamingUsage
    source: str
