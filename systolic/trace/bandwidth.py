"""DDR bandwidth over time: what a traced execution moved, and when."""

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

BINS, LEAST_CYCLES = 256, 256
"""Equal parts of the whole time that are told, and the least cycles of one: the DDR serves chunks of some cycles, which
count where they begin."""

PORTS_HEAD = ("DDR port", "direction", "bytes of all traced frames", "GB/s")


@dataclass(frozen=True)
class PortTraffic:
    """One direction of one port. bytes: in all traced cycles. gbps: on average over them."""

    port: str
    direction: str
    bytes: int
    gbps: float


@dataclass(frozen=True, eq=False)
class Bandwidth:
    """cycles: the end of each bin, from the top's start on. read_gbps, written_gbps: in each, 10⁹ bytes a second at the
    clock, all ports together. average_gbps: over all. peak_gbps: of the memory, of which ``efficiency`` carries data.
    ports: what each of them moved.
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
        """What the memory gives at most."""
        return self.peak_gbps * self.efficiency

    @property
    def busiest_gbps(self) -> float:
        """Of the bin in which most moved."""
        return float((self.read_gbps + self.written_gbps).max(initial=0.0))

    def values(self) -> dict[str, Any]:
        """{average_gbps, busiest_gbps, sustained_gbps, ports: [{port, direction, bytes, gbps}], bin_ends: [cycle],
        read_gbps: […], written_gbps: […]}"""
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
        """A table of the ports, and one line."""
        rows: list[list[Cell]] = [[port.port, port.direction, port.bytes, port.gbps] for port in self.ports]
        return (
            f"{table(PORTS_HEAD, rows)}\n\n"
            f"DDR over time (traced): {self.average_gbps:.2f} GB/s on average, {self.busiest_gbps:.2f} in the busiest "
            f"{1 / max(1, len(self.cycles)):.1%} of the time, of {self.sustained_gbps:.2f} that the memory sustains"
        )

    __repr__ = text

    def figure(self, title: str = "") -> Figure:
        """Reads below, writes on top of them, and what the memory sustains as a line."""
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
    """Of all regions, one after the other; timing solved with ``timeline=True``. bins: as many as BINS and LEAST_CYCLES
    allow where it is None."""
    bins = bins or max(1, min(BINS, timing.cycles // LEAST_CYCLES))
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
    """Over all regions, in the order in which they were first used."""
    moved: dict[tuple[str, str], int] = {}
    for bundle in (bundle for region in timing.regions for bundle in region.bundles):
        key = bundle.port, "write" if bundle.write else "read"
        moved[key] = moved.get(key, 0) + bundle.bytes
    a_byte = timing.clock_mhz * 1e6 / max(1, timing.cycles) / 1e9
    return tuple(PortTraffic(*key, total, total * a_byte) for key, total in moved.items())


def _served(chunks: npt.NDArray[np.float64], capacity: float) -> npt.NDArray[np.float64]:
    """Bytes of each direction by bin, at most ``capacity`` in one but the last: a chunk counts where it begins, and
    what of it the memory cannot give in that bin it gives in the next."""
    served: npt.NDArray[np.float64] = chunks.copy()
    overdue = np.zeros(len(chunks))
    for number in range(served.shape[1] - 1):
        due = served[:, number] + overdue
        served[:, number] = due * min(1.0, capacity / max(due.sum(), capacity))
        overdue = due - served[:, number]
    served[:, -1] += overdue
    return served


def _moved(regions: Iterable[RegionTiming], write: bool, ends: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Bytes between each two of ``ends``, of one direction: what a port moved in a bin is spread evenly over it."""
    moved, start = np.zeros(len(ends) - 1), 0
    for region in regions:
        for bundle in region.bundles:
            if bundle.write == write and bundle.moved:
                edges = start + np.minimum(np.arange(len(bundle.moved) + 1) * bundle.bin_cycles, max(1, region.total))
                sums = np.concatenate([[0.0], np.cumsum(bundle.moved)])
                moved += np.diff(np.interp(ends, edges, sums))
        start += region.total
    return moved
