"""Reads Vivado's report_utilization and report_timing_summary for UltraScale+ and 7-series devices."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from boards.errors import DamagedFileError
from systolic.vendor.reading.facts import ClockFact, Resources, Timing, Utilisation
from systolic.vendor.reading.text import cells, field, integer, number, read_text, rows_under

SITES = {
    "lut": ("CLB LUTs", "Slice LUTs"),
    "lutram": ("LUT as Memory",),
    "ff": ("CLB Registers", "Slice Registers"),
    "bram18": ("Block RAM Tile",),
    "uram": ("URAM",),
    "dsp": ("DSPs",),
}
"""Kind → its names in the column "Site Type" of report_utilization; after synthesis a * can follow a name."""

HIERARCHY = {
    "lut": ("Total LUTs",),
    "ff": ("FFs",),
    "uram": ("URAM", "URAMs"),
    "dsp": ("DSP Blocks", "DSP48 Blocks", "DSPs"),
}
"""Kind → its column names in report_utilization -hierarchical; BRAM and LUTRAM are sums of two columns each."""


# --- resources -----------------------------------------------------------------------------------------------------


def read_utilisation(path: Path) -> Utilisation:
    """Return the resource counts of the whole design from report_utilization.

    Raises:
        DamagedFileError: The file is not a report of report_utilization.
    """
    text = read_text(path)
    table = [row for row in map(cells, text.splitlines()) if row and len(row) >= 4]
    head = [cell.strip() for cell in next((row for row in table if row[0].strip() == "Site Type"), [])]
    if not {"Used", "Available"} <= set(head):
        reason = "has no table of site types with Used and Available"
        remedy = "take vivado/utilization.rpt, as report_utilization writes it"
        raise DamagedFileError(str(path), reason, remedy=remedy)
    sites = {row[0].strip().rstrip("*"): row for row in reversed(table)}
    counts, available = (_sites(sites, head.index(column)) for column in ("Used", "Available"))
    return Utilisation(_version(text), field(text, "Device"), field(text, "Design State"), "", counts, available)


def _sites(sites: dict[str, list[str]], column: int) -> Resources:
    counts: dict[str, float | None] = {}
    for kind, names in SITES.items():
        row = next((sites[name] for name in names if name in sites), None)
        counts[kind] = number(row[column]) if row and column < len(row) else None
    tiles = counts.pop("bram18")
    return Resources(**counts, bram18=None if tiles is None else 2 * tiles)


def read_hierarchy(path: Path, cell: str) -> Utilisation | None:
    """Return the resource counts of one instance from the hierarchical report; None if it is not listed.

    Args:
        cell: The instance's name, which is its cell name in the block design.

    Raises:
        DamagedFileError: The file is not a report of report_utilization -hierarchical.
    """
    text = read_text(path)
    lines = text.splitlines()
    start = next((index for index, line in enumerate(lines) if (cells(line) or [""])[0].strip() == "Instance"), None)
    if start is None:
        remedy = "take vivado/utilization_hierarchical.rpt, as report_utilization -hierarchical writes it"
        raise DamagedFileError(str(path), "has no table of instances", remedy=remedy)
    head, *rows = rows_under(lines, start)
    names = [name.strip() for name in head]
    for row in rows:
        if row[0].strip() == cell:
            counts = _columns(dict(zip(names, row, strict=False)))
            return Utilisation(
                _version(text), field(text, "Device"), field(text, "Design State"), cell, counts, Resources()
            )
    return None


def _columns(row: dict[str, str]) -> Resources:
    counts = {
        kind: next((number(row[name]) for name in columns if name in row), None) for kind, columns in HIERARCHY.items()
    }
    halves, wholes = number(row.get("RAMB18")), number(row.get("RAMB36"))
    memory, shift = number(row.get("LUTRAMs")), number(row.get("SRLs"))
    return Resources(
        **counts,
        bram18=None if halves is None or wholes is None else 2 * wholes + halves,
        lutram=None if memory is None or shift is None else memory + shift,
    )


def _version(text: str) -> str:
    match = re.search(r"Vivado v\.?(\d{4}\.\d+(?:\.\d+)?)", text)
    return match[1] if match else ""


# --- timing --------------------------------------------------------------------------------------------------------


def read_timing(path: Path) -> Timing:
    """Return the slacks and clocks of report_timing_summary.

    Raises:
        DamagedFileError: The file has no timing summary, or the design has no clock.
    """
    text = read_text(path)
    lines = text.splitlines()
    summary = next(iter(_table(lines, "| Design Timing Summary")), [])
    worst = _slacks(summary)
    slacks = {row[0]: _slacks(row[1:]) for row in _table(lines, "| Intra Clock Table")}
    periods = {row[0]: number(row[-2]) for row in _table(lines, "| Clock Summary") if len(row) >= 3}
    clocks = [ClockFact(name, ns, *slacks.get(name, (None, None))) for name, ns in periods.items() if ns]
    if None in worst or not clocks:
        reason = "has no Design Timing Summary with slacks, or no clock"
        remedy = "take vivado/timing.rpt, as report_timing_summary writes it after routing"
        raise DamagedFileError(str(path), reason, remedy=remedy)
    state = field(text, "Design State") or "Routed"
    return Timing(_version(text), state, worst[0] or 0.0, worst[1] or 0.0, integer(summary[2]) or 0, tuple(clocks))


def _slacks(row: Sequence[str]) -> tuple[float | None, float | None]:
    """Return (worst setup slack, worst hold slack) in ns of a row; (None, None) if it has fewer than eight numbers."""
    return (number(row[0]), number(row[4])) if len(row) >= 8 else (None, None)


def _table(lines: Sequence[str], title: str) -> list[list[str]]:
    """Return the words of each row of the table under ``title`` in a Vivado timing report."""
    start = next((index for index, line in enumerate(lines) if line.startswith(title)), None)
    if start is None:
        return []
    dashes = next((i for i in range(start + 3, min(start + 12, len(lines))) if re.match(r" *-+ +-", lines[i])), None)
    rows: list[list[str]] = []
    for line in lines[dashes + 1 :] if dashes is not None else ():
        if not line.strip():
            break
        rows.append(line.split())
    return rows
