"""Reads csynth.rpt of Vitis HLS, the synthesis summary as text, if csynth.xml is missing.

A line of its table begins with + for a module and with o for a loop. Its indentation shows the nesting. The file lacks
the clock uncertainty, and its slacks refer to the period without the uncertainty. Delays of paths cannot be derived
from them, so they are missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from boards.errors import DamagedFileError
from systolic.vendor.reading.facts import LoopFact, ModuleFact, Resources, StorageFact, Synthesis
from systolic.vendor.reading.text import field, integer, number, read_text, rows_under

_TITLE = re.compile(r"== Synthesis Summary Report of '([^'\n]*)'")
_TABLE = "+ Performance & Resource Estimates:"
_COLUMNS = ("Latency (cycles)", "Iteration Latency", "Interval", "Pipelined", "BRAM", "DSP", "FF", "LUT", "URAM")
_STORAGES = re.compile(r"== (?:Bind )?Storage Report")
_LINE = re.compile(r"( *)([+o]) (.*)")
_INSTANCE = re.compile(r"(?:grp_)?(.*?)(?:_fu_\d+|_U0)?\*?")
"""The name of a module, with the additions that versions before 2022.1 print because they name instances."""


@dataclass(frozen=True)
class _Row:
    name: str
    loop: bool
    module: str
    values: dict[str, str]


def read_synthesis_text(path: Path) -> Synthesis:
    """Return the results of C synthesis from a csynth.rpt; clock periods and path delays are missing.

    Raises:
        DamagedFileError: The file is not a synthesis summary.
    """
    text = read_text(path)
    title = _TITLE.search(text)
    if title is None or _TABLE not in text:
        reason = "is not a csynth.rpt of Vitis HLS: it has no line \"== Synthesis Summary Report of '…'\""
        raise DamagedFileError(str(path), reason, remedy="take hls/solution/syn/report/csynth.rpt")
    lines = text.splitlines()
    rows = _rows(lines)
    storages = _storages(lines)
    top = next((row for row in rows if not row.loop), None)
    if top is None or set(_COLUMNS) - top.values.keys():
        reason = f"has no table of modules with the columns {', '.join(_COLUMNS)}; was it cut off?"
        raise DamagedFileError(str(path), reason, remedy="run the synthesis again")
    return Synthesis(
        version=field(text, "Version").split(" ")[0],
        top=title[1],
        part=field(text, "Target device"),
        target_ns=None,
        uncertainty_ns=None,
        estimated_ns=None,
        latency=integer(top.values["Latency (cycles)"]),
        interval=integer(top.values["Interval"]),
        resources=_resources(top),
        available=Resources(),
        modules=tuple(_modules(rows, storages)),
    )


def _rows(lines: Sequence[str]) -> list[_Row]:
    """Return the rows of csynth.rpt's table: modules, and loops with the module that contains them."""
    rows: list[_Row] = []
    above: list[tuple[int, str]] = []  # indentation and name of each enclosing module
    for depth, loop, name, values in _lines(lines):
        above = [module for module in above if module[0] < depth]
        rows.append(_Row(name, loop, above[-1][1] if above else "", values))
        if not loop:
            above.append((depth, name))
    return rows


def _lines(lines: Sequence[str]) -> Iterator[tuple[int, bool, str, dict[str, str]]]:
    """Yield (indentation, whether it is a loop, name, {column: cell}) of each row of csynth.rpt's table."""
    start = next(index for index, line in enumerate(lines) if _TABLE in line)
    head = list(rows_under(lines, start))
    columns = _columns(*head[:2]) if len(head) > 2 else {}
    for cells in head[2:]:
        place = _LINE.match(cells[0])
        if place is not None and len(cells) == len(head[1]):
            loop, name = place[2] == "o", place[3].strip()
            values = {key: cells[column].strip() for key, column in columns.items()}
            yield len(place[1]), loop, name if loop else _module_name(name), values


def _module_name(text: str) -> str:
    match = _INSTANCE.fullmatch(text)
    return match[1] if match else text


def _columns(upper: Sequence[str], lower: Sequence[str]) -> dict[str, int]:
    """Return {title: index} of the table's columns, from the two lines of its head.

    From 2025 on, one upper cell "Latency" spans two columns of the lower line.
    """
    upper = [cell.strip() for cell in upper]
    if len(upper) < len(lower) and "Latency" in upper:
        upper.insert(upper.index("Latency"), "Latency")
    names = [f"{above} {below.strip()}".strip() for above, below in zip(upper, lower, strict=False)]
    return {key: names.index(key) for key in _COLUMNS if key in names}


def _resources(row: _Row) -> Resources:
    lut, ff, dsp, bram, uram = (
        0.0 if row.values[kind] == "-" else number(row.values[kind]) for kind in ("LUT", "FF", "DSP", "BRAM", "URAM")
    )
    return Resources(lut=lut, ff=ff, dsp=dsp, bram18=bram, uram=uram)


def _modules(rows: Sequence[_Row], storages: Sequence[StorageFact]) -> list[ModuleFact]:
    """Return each module once, with its loops and memories, although the table repeats it for each instance."""
    loops: dict[str, list[LoopFact]] = {}
    named: dict[str, _Row] = {}
    for row in rows:
        if row.loop:
            ii, depth = integer(row.values["Interval"]), integer(row.values["Iteration Latency"])
            fact = LoopFact(row.name, row.module, ii, depth)
            if fact not in loops.setdefault(row.module, []):
                loops[row.module].append(fact)
        else:
            named.setdefault(row.name, row)
    return [
        ModuleFact(
            name=name,
            estimated_ns=None,
            kind=row.values["Pipelined"],
            resources=_resources(row),
            loops=tuple(loops.get(name, ())),
            storages=tuple(storage for storage in storages if storage.module == name),
        )
        for name, row in named.items()
    ]


def _storages(lines: Sequence[str]) -> list[StorageFact]:
    """Return the memories of the "Bind Storage Report" or "Storage Report" in csynth.rpt; [] without one."""
    module, storages = "", []
    for row in _storage_rows(lines):
        match = re.match(r" *\+ (.*)", row["Name"])
        if match:
            module = match[1].strip().rstrip("*")
        elif row["Name"].strip():
            storages.append(_storage(module, {key: cell.strip() for key, cell in row.items()}))
    return storages


def _storage_rows(lines: Sequence[str]) -> list[dict[str, str]]:
    """Return {column: cell} of each row of the storage report; [] if a required column is missing."""
    start = next((index for index, line in enumerate(lines) if _STORAGES.fullmatch(line.strip())), None)
    table = [] if start is None else list(rows_under(lines, start))
    head = [cell.strip() for cell in table[0]] if table else []
    complete = {"Name", "BRAM", "URAM", "Variable", "Impl"} <= set(head)
    return [dict(zip(head, row, strict=True)) for row in table[1:] if complete and len(row) == len(head)]


def _storage(module: str, row: dict[str, str]) -> StorageFact:
    kind = row.get("Storage") or row.get("Usage", "")
    kind = row.get("Type", "") if kind == "interface" else kind
    blocks = (integer(row["BRAM"]) or 0, integer(row["URAM"]) or 0)
    return StorageFact(module, row["Variable"] or row["Name"], kind, row["Impl"], *blocks)
