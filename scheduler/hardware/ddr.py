"""The board's DDR as an accelerator sees it: bandwidth, latency, and how its ports ask for data.

One bandwidth is counted with everywhere, by the scheduler, the folding, the trace and the host: a peak, that of the
clock which the board's boot image programs unless a user says otherwise, times the share of it that carries data. What
the parts are rated for is higher on some boards; no boot image runs them so (docs/reference/boards.md).

The cycle trace's memory has the same numbers (hls_templates/simulation/memory.cpp, docs/explanation/cycles.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from boards.board import Board
from boards.errors import RangeError
from scheduler.hardware.arithmetic import ceil_div

DDR_EFFICIENCY = 0.85
"""Share of the DDR's peak that carries data: refresh, row misses and turn-arounds take the rest."""

LEAST_GBPS, MOST_GBPS = 0.05, 10_000.0
"""Less and more than any memory gives."""

LEAST_EFFICIENCY = 0.01
"""With it and LEAST_GBPS a cycle of 500 MHz still moves a thousandth of a byte, the unit that the model counts in."""

READ_LATENCY_NS, WRITE_LATENCY_NS = 213.0, 107.0
"""From a request to its first beat, and from the last beat to the response."""

DDR_CHUNK = 64
"""Bytes that the DDR serves one port before it turns to another."""

SIMULATED_TURNS = 48
"""Chunks a port, after which the pace of ports that are busy together has settled."""

BURST_WORDS = 64
OUTSTANDING = 8
"""Bursts on their way at a port, of at most BURST_WORDS words: their buffer of 512 words hides 512 cycles of latency
and takes one row of BRAM36. Traced on tiny-YOLOv2, 16 bursts of 256 words are not faster."""

PORT_LATENCY = 2 * OUTSTANDING - 5
"""The m_axi option ``latency``. A port's adapter keeps latency + 5 requests, room for twice as many as are on their
way. (Its parameter USER_MAXREQS: 5 at latency 0, 69 at latency 64 in generated Verilog.)"""

REQUEST_STAGES = 7 + PORT_LATENCY
"""Of the pipeline that asks: a request takes 7 stages at latency 0 (schedule reports of Vitis HLS 2022.2)."""

WEIGHT_BEAT_BYTES = 16
"""Bytes a beat of the port that streams weights into a pipeline: 128 bits, as the PS's high-performance ports have."""


@dataclass(frozen=True)
class DdrRate:
    """What the DDR gives. gbps: 10⁹ bytes a second where every transfer carries data, all ports together, both
    directions. efficiency: the share of it that carries data.

    Raises RangeError for a bandwidth that no memory has, and for an efficiency that none has.
    """

    gbps: float
    efficiency: float = DDR_EFFICIENCY

    def __post_init__(self) -> None:
        if not LEAST_GBPS <= self.gbps <= MOST_GBPS:
            what = "--ddr-gbps, the DDR's peak in 10⁹ bytes per second,"
            raise RangeError(what, self.gbps, LEAST_GBPS, MOST_GBPS)
        if not LEAST_EFFICIENCY <= self.efficiency <= 1:
            what = "--ddr-efficiency, a share of the DDR's peak,"
            raise RangeError(what, self.efficiency, LEAST_EFFICIENCY, 1)

    @property
    def sustained_gbps(self) -> float:
        """What carries data."""
        return self.gbps * self.efficiency

    def __str__(self) -> str:
        return f"DDR {self.gbps:.4g} GB/s × {self.efficiency:g}"


def ddr_rate(board: Board, gbps: float | None = None, efficiency: float | None = None) -> DdrRate:
    """The board's memory as its boot image runs it, where nothing else is said; raises as ``DdrRate``."""
    return DdrRate(
        board.ddr.preset_gbps if gbps is None else gbps, DDR_EFFICIENCY if efficiency is None else efficiency
    )


@dataclass(frozen=True)
class DdrTiming:
    """The DDR at the accelerator's clock.

    milli_bytes: 1/1000 bytes a cycle, of all ports together. read_latency: cycles from a request to its first beat;
    write_latency: cycles from the last beat to the response. rate: what the numbers follow from.
    """

    clock_mhz: float
    milli_bytes: int
    read_latency: int
    write_latency: int
    rate: DdrRate


def ddr_timing(board: Board, clock_mhz: float, rate: DdrRate | None = None) -> DdrTiming:
    """The memory at a clock. rate: where it is None, that of the board.

    Raises RangeError for a clock that is not above 0 MHz.
    """
    if not clock_mhz > 0:
        raise RangeError("the clock in MHz", clock_mhz, 0, exclusive=True)
    rate = rate or ddr_rate(board)
    return DdrTiming(
        clock_mhz,
        round(rate.sustained_gbps * 1e6 / clock_mhz),
        round(READ_LATENCY_NS * clock_mhz / 1000),
        round(WRITE_LATENCY_NS * clock_mhz / 1000),
        rate,
    )


def planned_bits(rate: DdrRate, share: float, cycles: int, clock_mhz: float) -> int:
    """Bits of ``share`` of what the DDR moves in ``cycles``."""
    return int(rate.sustained_gbps * 8e9 * share * cycles / (clock_mhz * 1e6))


@lru_cache(maxsize=8192)
def milli_cycles(kinds: tuple[tuple[int, int, int], ...], milli_bytes: int) -> tuple[int, ...]:
    """1/1000 cycles a word of each kind of ports, where all ports move words all the time.

    kinds: (ports, bytes a word, words of a burst). milli_bytes: as in DdrTiming.

    The DDR serves chunks of DDR_CHUNK bytes, or what is left of a burst, and the port that waits longest comes first. A
    chunk begins in a whole cycle and then holds its port for a cycle a word, so that ports that ask for little less
    than the DDR gives leave gaps between chunks (hls_templates/simulation/memory.cpp does the same).
    """
    ports = [(width, burst, max(1, DDR_CHUNK // width)) for number, width, burst in kinds for _ in range(number)]
    ddr_free = 0  # in bytes that the DDR could have moved, times 1000
    port_free, burst_left, words_moved = [0] * len(ports), [burst for _, burst, _ in ports], [0] * len(ports)
    settled: list[tuple[int, int]] = []
    for turn in range(SIMULATED_TURNS * len(ports)):
        if 2 * turn == SIMULATED_TURNS * len(ports):
            settled = list(zip(port_free, words_moved, strict=True))
        port = port_free.index(min(port_free))
        width, burst, chunk = ports[port]
        words = min(chunk, burst_left[port])
        start = max(ddr_free, port_free[port] * milli_bytes)
        ddr_free = start + words * width * 1000
        port_free[port] = ceil_div(start, milli_bytes) + words
        words_moved[port] += words
        burst_left[port] = burst_left[port] - words or burst
    firsts = [sum(number for number, _, _ in kinds[:index]) for index in range(len(kinds))]
    return tuple(
        max(1000, ceil_div(1000 * (port_free[port] - settled[port][0]), words_moved[port] - settled[port][1]))
        for port in firsts
    )
