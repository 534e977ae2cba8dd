"""DDR as the accelerator sees it: latency, bandwidth, and the pace of ports that ask for bursts.

The cycle trace's memory has the same numbers (hls_templates/simulation/memory.cpp, docs/cycles.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from boards.board import Board
from boards.errors import ScheduleError
from scheduler.tile import ceil_div

DDR_EFFICIENCY = 0.85
"""Share of the DDR's peak that carries data, as the cycle trace assumes: refresh, row misses, turn-arounds."""

READ_LATENCY_NS, WRITE_LATENCY_NS = 213.0, 107.0
"""From a request to its first beat, from the last beat to the response; the trace's Memory has the same."""

DDR_CHUNK = 64
"""Bytes that the DDR serves one port before another (systolic/cycles)."""


@dataclass(frozen=True)
class Link:
    """DDR as the accelerator sees it at its clock. milli_bytes: 1/1000 bytes a cycle, all ports together."""

    clock_mhz: float
    milli_bytes: int
    read_latency: int
    write_latency: int


def link_of(board: Board, clock_mhz: float, efficiency: float = DDR_EFFICIENCY, peak_gbps: float | None = None) -> Link:
    """The board's memory at its rated speed unless ``peak_gbps`` (10⁹ bytes a second) says otherwise."""
    if not (clock_mhz > 0 and 0 < efficiency <= 1):
        raise ScheduleError(
            f"a clock is a positive number of MHz and an efficiency in (0, 1], not {clock_mhz:g} and {efficiency:g}"
        )
    peak = board.ddr.peak_gbps if peak_gbps is None else peak_gbps
    return Link(
        clock_mhz,
        round(peak * efficiency * 1e6 / clock_mhz),
        round(READ_LATENCY_NS * clock_mhz / 1000),
        round(WRITE_LATENCY_NS * clock_mhz / 1000),
    )


@lru_cache(maxsize=256)
def milli_cycles(ports: int, word_bytes: int, milli_bytes: int) -> int:
    """1/1000 cycles a word where so many ports move words all the time. The DDR serves chunks of 64 bytes, the port
    first that waits longest; a chunk begins in a whole cycle and then holds its port for a cycle a word, so that ports
    with little more to give than the DDR leave gaps between chunks (systolic/cycles: memory.cpp)."""
    words = max(1, DDR_CHUNK // word_bytes)
    chunk = words * word_bytes * 1000
    free, ready, chunks = 0, [0] * ports, 64
    for _ in range(chunks * ports):
        port = min(range(ports), key=lambda p: ready[p])
        start = max(free, ready[port] * milli_bytes)  # in bytes that the DDR could have moved, times 1000
        free = start + chunk
        ready[port] = ceil_div(start, milli_bytes) + words
    return max(1000, ceil_div(1000 * max(ready), chunks * words))
