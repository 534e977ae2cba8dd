"""The board's DDR as an accelerator sees it: bandwidth, latency, and the requests of its ports.

The scheduler, the folding search, the cycle trace and the host all use one bandwidth: the peak times the share of it
that carries data. The peak follows from the DDR clock that the board's boot image sets, unless the user states another.
On some boards the memory parts are rated for more, but no boot image runs them faster (docs/reference/boards.md).

The memory of the cycle trace uses the same numbers (hls_templates/simulation/memory.cpp, docs/explanation/cycles.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from boards.board import Board
from boards.errors import RangeError
from scheduler.hardware.arithmetic import ceil_div

MIN_GBPS, MAX_GBPS = 0.05, 10_000.0
"""The range of peaks that are accepted, in 10⁹ bytes per second. No memory is outside it."""

MIN_EFFICIENCY = 0.01
"""The least efficiency that is accepted. At MIN_GBPS and 500 MHz, the DDR still moves 1/1000 byte per cycle, which is
the unit of the model."""

READ_LATENCY_NS, WRITE_LATENCY_NS = 213.0, 107.0
"""Nanoseconds from a read request to its first beat, and from the last beat of a write to the response."""

DDR_CHUNK = 64
"""Bytes that the DDR transfers for one port before it serves another port."""

SIMULATED_TURNS = 48
"""Chunks per port that ``milli_cycles`` simulates. By then, the rate of ports that are busy together is constant."""

BURST_WORDS = 64
"""Maximum words of a burst."""

OUTSTANDING = 8
"""Outstanding bursts per port. Their buffer of 8 · 64 = 512 words hides 512 cycles of latency and fits the depth of one
BRAM36 (512 words). In a trace of tiny-YOLOv2, 16 bursts of 256 words are not faster."""

PORT_LATENCY = 2 * OUTSTANDING - 5
"""The value of the m_axi option ``latency``. A port's adapter keeps latency + 5 requests, so this value makes room for
twice the outstanding bursts. (Its parameter USER_MAXREQS is 5 at latency 0 and 69 at latency 64 in generated Verilog.)
"""

REQUEST_STAGES = 7 + PORT_LATENCY
"""Stages of the pipeline that issues requests. A request takes 7 stages at latency 0 (schedule reports of Vitis HLS
2022.2)."""

WEIGHT_BEAT_BYTES = 16
"""Bytes per beat of the port that streams weights into a pipeline: 128 bits, the width of the PS's high-performance
ports."""


@dataclass(frozen=True)
class DdrRate:
    """The bandwidth of the board's DDR: the peak, and the share of it that carries data. Values out of range raise
    RangeError.

    Attributes:
        gbps: Peak of all ports and both directions together, in 10⁹ bytes per second.
        efficiency: Share of the peak that carries data.
    """

    gbps: float
    efficiency: float

    def __post_init__(self) -> None:
        if not MIN_GBPS <= self.gbps <= MAX_GBPS:
            what = "--ddr-gbps, the DDR's peak in 10⁹ bytes per second,"
            raise RangeError(what, self.gbps, MIN_GBPS, MAX_GBPS)
        if not MIN_EFFICIENCY <= self.efficiency <= 1:
            what = "--ddr-efficiency, a share of the DDR's peak,"
            raise RangeError(what, self.efficiency, MIN_EFFICIENCY, 1)

    @property
    def sustained_gbps(self) -> float:
        """The peak times the efficiency: the bandwidth that carries data, in 10⁹ bytes per second."""
        return self.gbps * self.efficiency

    def __str__(self) -> str:
        return f"DDR {self.gbps:.4g} GB/s × {self.efficiency:g}"


def ddr_rate(board: Board, gbps: float | None = None, efficiency: float | None = None) -> DdrRate:
    """Return the bandwidth of the board's DDR. The default peak is the one that the boot image sets, and the default
    efficiency is the share that the board file states as measured.

    Raises:
        RangeError: A value is out of range.
    """
    return DdrRate(
        board.ddr.preset_gbps if gbps is None else gbps, board.ddr.share() if efficiency is None else efficiency
    )


@dataclass(frozen=True)
class DdrTiming:
    """The DDR's bandwidth and latency in cycles of the accelerator's clock.

    Attributes:
        clock_mhz: The accelerator's clock.
        milli_bytes: Bandwidth of all ports together, in 1/1000 bytes per cycle.
        read_latency: Cycles from a read request to its first beat.
        write_latency: Cycles from the last beat of a write to the response.
        rate: The bandwidth from which ``milli_bytes`` was computed.
    """

    clock_mhz: float
    milli_bytes: int
    read_latency: int
    write_latency: int
    rate: DdrRate


def ddr_timing(board: Board, clock_mhz: float, rate: DdrRate | None = None) -> DdrTiming:
    """Return the DDR's bandwidth and latency, converted to cycles of an accelerator's clock.

    Args:
        board: The board.
        clock_mhz: The accelerator's clock.
        rate: The bandwidth; None for the board's own.

    Raises:
        RangeError: The clock is not above 0 MHz.
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
    """Return the bits that the DDR can move in ``cycles`` with ``share`` of its sustained bandwidth."""
    return int(rate.sustained_gbps * 8e9 * share * cycles / (clock_mhz * 1e6))


@lru_cache(maxsize=8192)
def milli_cycles(kinds: tuple[tuple[int, int, int], ...], milli_bytes: int) -> tuple[int, ...]:
    """Return the cycles per word, in 1/1000 cycles, of one AXI port of each kind while all ports access the DDR at the
    same time.

    The DDR serves chunks of DDR_CHUNK bytes, or the rest of a burst if that is shorter. The port that has waited
    longest is served first. A chunk begins in a whole cycle and then occupies its port for one cycle per word.
    Therefore the DDR idles between chunks if the ports together request slightly less than its bandwidth. The memory
    of the cycle trace does the same (hls_templates/simulation/memory.cpp).

    Args:
        kinds: (number of ports, bytes per word, words per burst) of each kind of port.
        milli_bytes: Bandwidth in 1/1000 bytes per cycle, see DdrTiming.
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
