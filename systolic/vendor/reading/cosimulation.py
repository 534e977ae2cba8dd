"""Reads TOP_cosim.rpt: whether the RTL's output is what the test bench expects, and its clock cycles."""

from __future__ import annotations

from pathlib import Path

from boards.errors import DamagedFileError
from systolic.vendor.reading.facts import CoSimulation
from systolic.vendor.reading.text import cells, integer, read_text

MAX_BYTES = 1 << 20
"""The size in bytes above which the file is refused; it usually has about twenty lines."""


def read_cosimulation(path: Path) -> CoSimulation:
    """Return status and cycles of a co-simulation report, for the language that was simulated.

    Raises:
        DamagedFileError: The file has no table of results.
    """
    rows = [[cell.strip() for cell in row] for row in map(cells, read_text(path, MAX_BYTES).splitlines()) if row]
    results = {row[0]: row[1:] for row in rows if row[0] in ("Verilog", "VHDL") and len(row) >= 8}
    if not results:
        remedy = "take hls/solution/sim/report/TOP_cosim.rpt as the tool wrote it"
        raise DamagedFileError(str(path), "has no line Verilog or VHDL with a status", remedy=remedy)
    status, *cycles = next((row for row in results.values() if row[0] != "NA"), next(iter(results.values())))
    counts = [integer(cell) for cell in cycles]
    total = counts[6] if len(counts) > 6 else None
    return CoSimulation(status, latency=counts[2], interval=counts[5], total=total)
