"""DDR as the accelerator sees it: latency, bandwidth, and the pace of ports that ask for bursts.

The cycle trace's memory has the same numbers (hls_templates/simulation/memory.cpp, docs/cycles.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from boards.board import Board
from boards.errors import ScheduleError
from scheduler.systolic.tiling import ceil_div

DDR_EFFICIENCY = 0.85
"""Share of the DDR's peak that carries data, as the cycle trace assumes: refresh, row misses, turn-arounds."""

READ_LATENCY_NS, WRITE_LATENCY_NS = 213.0, 107.0
"""From a request to its first beat, from the last beat to the response; the trace's Memory has the same."""

DDR_CHUNK = 64
"""Bytes that the DDR serves one port before another (systolic/cycles)."""

SIMULATED_TURNS = 48
"""Chunks a port, after which the pace of ports that are busy together has settled."""


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


@lru_cache(maxsize=8192)
def milli_cycles(kinds: tuple[tuple[int, int, int], ...], milli_bytes: int) -> tuple[int, ...]:
    """1/1000 cycles a word of each kind of ports, (ports, bytes a word, words a part of a burst), where all of them
    move words all the time. The DDR serves chunks of 64 bytes or what a part has left, the port first that waits
    longest; a chunk begins in a whole cycle and then holds its port for a cycle a word, so that ports with little more
    to give than the DDR leave gaps between chunks (systolic/cycles: memory.cpp)."""
    ports = [(bytes_, words, max(1, DDR_CHUNK // bytes_)) for number, bytes_, words in kinds for _ in range(number)]
    free, ready, left, moved = 0, [0] * len(ports), [words for _, words, _ in ports], [0] * len(ports)
    settled: list[tuple[int, int]] = []
    for turn in range(SIMULATED_TURNS * len(ports)):
        if 2 * turn == SIMULATED_TURNS * len(ports):
            settled = list(zip(ready, moved, strict=True))
        port = ready.index(min(ready))
        bytes_, part, chunk = ports[port]
        words = min(chunk, left[port])
        start = max(free, ready[port] * milli_bytes)  # in bytes that the DDR could have moved, times 1000
        free = start + words * bytes_ * 1000
        ready[port] = ceil_div(start, milli_bytes) + words
        moved[port] += words
        left[port] = left[port] - words or part
    firsts = [sum(number for number, _, _ in kinds[:index]) for index in range(len(kinds))]
    return tuple(
        max(1000, ceil_div(1000 * (ready[port] - settled[port][0]), moved[port] - settled[port][1])) for port in firsts
    )
