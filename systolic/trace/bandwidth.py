"""The DDR bandwidth of a traced execution over time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from systolic.report.tables import Cell, table
from systolic.trace.timing import RegionTiming, TraceTiming

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BINS, MIN_CYCLES = 256, 256
"""The number of time bins, and the least cycles per bin.

The DDR serves chunks that take some cycles. A chunk counts in the bin where it begins, so that shorter bins would be
wrong.
"""

_TOO_FAST = (
    "\nThe trace does not limit the DMA of a pipeline by the memory, which is slower here: expect at most {:.0%} of "
    "these frames/s"
)

PORTS_HEAD = ("DDR port", "direction", "bytes of all traced frames", "GB/s")


@dataclass(frozen=True)
class PortTraffic:
    """The bytes and the average rate of one DDR port in one direction.

    Attributes:
        port: The name of the port.
        direction: "read" or "write".
        bytes: The bytes in all traced cycles.
        gbps: The average over all traced cycles, in 10⁹ bytes per second.
    """

    port: str
    direction: str
    bytes: int
    gbps: float


@dataclass(frozen=True, eq=False)
class Bandwidth:
    """The DDR's read and write rates over time, in 10⁹ bytes per second.

    Attributes:
        clock_mhz: The clock in MHz.
        cycles: The end of each time bin, in cycles from the start of the top function.
        read_gbps: The read rate in each bin, all ports together.
        written_gbps: The write rate in each bin, all ports together.
        average_gbps: The average rate, both directions together.
        peak_gbps: The memory's peak rate.
        efficiency: The fraction of the peak rate that carries data.
        ports: The traffic of each port and direction.
    """

    clock_mhz: float
    cycles: npt.NDArray[np.float64]
    read_gbps: npt.NDArray[np.float64]
    written_gbps: npt.NDArray[np.float64]
    average_gbps: float
    peak_gbps: float
    efficiency: float
    ports: tuple[PortTraffic, ...] = ()

    @property
    def sustained_gbps(self) -> float:
        """The highest data rate that the DDR sustains, in GB/s: peak rate times efficiency."""
        return self.peak_gbps * self.efficiency

    @property
    def busiest_gbps(self) -> float:
        """The read and write rate together in the busiest time bin, in GB/s."""
        return float((self.read_gbps + self.written_gbps).max(initial=0.0))

    def values(self) -> dict[str, Any]:
        """Return the DDR rates over time and per port as a JSON object.

        {average_gbps, busiest_gbps, sustained_gbps, ports: [{port, direction, bytes, gbps}], bin_ends: [cycle],
        read_gbps: […], written_gbps: […]}
        """
        return {
            "average_gbps": round(self.average_gbps, 4),
            "busiest_gbps": round(self.busiest_gbps, 4),
            "sustained_gbps": round(self.sustained_gbps, 4),
            "ports": [{**asdict(port), "gbps": round(port.gbps, 4)} for port in self.ports],
            "bin_ends": [round(float(cycle), 1) for cycle in self.cycles],
            "read_gbps": [round(float(rate), 4) for rate in self.read_gbps],
            "written_gbps": [round(float(rate), 4) for rate in self.written_gbps],
        }

    def text(self) -> str:
        """Return a table of the ports, and a line with the average and the busiest bin, for a terminal."""
        rows: list[list[Cell]] = [[port.port, port.direction, port.bytes, port.gbps] for port in self.ports]
        busiest_share = 1 / max(1, len(self.cycles))
        slow = self.average_gbps > self.sustained_gbps
        excess = _TOO_FAST.format(self.sustained_gbps / self.average_gbps) if slow else ""
        return (
            f"{table(PORTS_HEAD, rows)}\n\n"
            f"DDR over time (traced): {self.average_gbps:.2f} GB/s on average, {self.busiest_gbps:.2f} in the busiest "
            f"{busiest_share:.1%} of the time, of {self.sustained_gbps:.2f} that the memory sustains{excess}"
        )

    __repr__ = text

    def figure(self, title: str = "") -> Figure:
        """Draw the read rate, the write rate stacked on it, and the rate that the memory sustains as a line."""
        from systolic.report.figures import Picture

        figure = Picture(figsize=(12, 3.2), layout="constrained")
        axes = figure.add_subplot()
        edges = np.concatenate([[0.0], self.cycles])
        both = self.read_gbps + self.written_gbps
        axes.stairs(self.read_gbps, edges, fill=True, color="#56B4E9", label="read")
        axes.stairs(both, edges, baseline=self.read_gbps, fill=True, color="#D55E00", label="written")
        sustained = f"sustained: {self.peak_gbps:.4g} GB/s × {self.efficiency:g}"
        axes.axhline(self.sustained_gbps, color="#333333", linewidth=1, linestyle="--", label=sustained)
        axes.set_xlim(0, edges[-1] or 1)
        axes.set_ylim(0, 1.1 * max(self.sustained_gbps, self.busiest_gbps))
        axes.set_xlabel(f"cycles at {self.clock_mhz:g} MHz (target)")
        axes.set_ylabel("GB/s (traced)")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_title(title, loc="left", fontsize=11)
        figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
        return figure


def bandwidth(timing: TraceTiming, bins: int | None = None) -> Bandwidth:
    """Return the DDR's read and write rates over a traced execution, from its first region to its last.

    Args:
        timing: The solved trace, with ``timeline=True``.
        bins: The number of time bins. None takes the most that ``BINS`` and ``MIN_CYCLES`` allow.
    """
    bins = bins or max(1, min(BINS, timing.cycles // MIN_CYCLES))
    ends = np.linspace(0.0, max(1, timing.cycles), bins + 1)
    read, written = (_moved(timing.regions, write, ends) for write in (False, True))
    a_second = timing.clock_mhz * 1e6 / (ends[1] - ends[0]) / 1e9
    memory = timing.memory
    read, written = _served(np.stack([read, written]), memory.peak_gbps * memory.efficiency / a_second)
    ports = _ports(timing)
    return Bandwidth(
        timing.clock_mhz,
        ends[1:],
        read * a_second,
        written * a_second,
        sum(port.gbps for port in ports),
        memory.peak_gbps,
        memory.efficiency,
        ports,
    )


def _ports(timing: TraceTiming) -> tuple[PortTraffic, ...]:
    """Return the traffic of each port and direction over all regions, in the order of their first use."""
    moved: dict[tuple[str, str], int] = {}
    for bundle in (bundle for region in timing.regions for bundle in region.bundles):
        key = bundle.port, "write" if bundle.write else "read"
        moved[key] = moved.get(key, 0) + bundle.bytes
    a_byte = timing.clock_mhz * 1e6 / max(1, timing.cycles) / 1e9
    return tuple(PortTraffic(*key, total, total * a_byte) for key, total in moved.items())


def _served(chunks: npt.NDArray[np.float64], capacity: float) -> npt.NDArray[np.float64]:
    """Limit each time bin's bytes to what the DDR can move, and carry the rest over to the next bin.

    A chunk counts in the bin where it begins, although the memory may serve a part of it later. The last bin takes all
    that is left.

    Args:
        chunks: The bytes, shape (directions, bins).
        capacity: The most bytes that the memory moves in one bin, both directions together.
    """
    served: npt.NDArray[np.float64] = chunks.copy()
    overdue = np.zeros(len(chunks))
    for number in range(served.shape[1] - 1):
        due = served[:, number] + overdue
        served[:, number] = due * min(1.0, capacity / max(due.sum(), capacity))
        overdue = due - served[:, number]
    served[:, -1] += overdue
    return served


def _moved(regions: Iterable[RegionTiming], write: bool, ends: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the bytes of one direction in each time bin that ``ends`` delimits.

    The bytes that a port moved in a bin of the trace are spread evenly over that bin.
    """
    moved, start = np.zeros(len(ends) - 1), 0
    for region in regions:
        for bundle in region.bundles:
            if bundle.write == write and bundle.moved:
                edges = start + np.minimum(np.arange(len(bundle.moved) + 1) * bundle.bin_cycles, max(1, region.total))
                sums = np.concatenate([[0.0], np.cumsum(bundle.moved)])
                moved += np.diff(np.interp(ends, edges, sums))
        start += region.total
    return moved
