"""A comparison of claims with vendor reports as text for a terminal, as a JSON object and as an HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

from host.whole_file import write_whole
from systolic.report.page import html_table, page
from systolic.report.tables import Cell, printable, table
from systolic.vendor.comparison.compare import Comparison
from systolic.vendor.comparison.rows import BETTER, HOLDS, OPEN, WORSE, ClockRow, LoopRow, MemoryRow, ResourceRow

LOOP_HEAD = ("loop", "in", "II", "derived", "achieved", "depth", "derived", "achieved", "ns", "verdict")
MEMORY_HEAD = ("memory", "at", "claimed", "achieved", "verdict")
RESOURCE_HEAD = ("resource", "claimed", "Vitis HLS", "Vivado", "of", "verdict")
CLOCK_HEAD = ("clock", "longest path, ns", "of", "highest MHz", "verdict")

NAMES = {"dsp": "DSP", "bram36": "BRAM36", "uram": "URAM", "lut": "LUT", "lutram": "LUT as memory", "ff": "FF"}
NOTE = (
    "Claimed: declared in the sources, or estimated without a vendor tool. Achieved: reported by Vitis HLS or Vivado."
)

NEAR_STAGES = 2
"""The largest difference, in pipeline stages, at which a derived depth still counts as right."""

Advice = tuple[str, str]
"""(the place or row that it concerns, what to do)"""


# --- JSON ----------------------------------------------------------------------------------------------------------


def values(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison of claims with the vendor's reports as a JSON object.

    Its keys are: network, board, part, clock_mhz, holds, highest_clock_mhz, versions, reports, verdicts, loops,
    memories, resources, clocks, co_simulation, conflicts, refused, missing, undeclared.

    Each of the loops has the keys: process, source, declared_ii, derived_ii, achieved_ii, declared_depth,
    derived_depth, achieved_depth, module, path_ns, budget_ns, path, verdict, advice.
    """
    claims, reports = comparison.claims, comparison.reports
    sentence, verdict = comparison.co_simulation
    return {
        "network": claims.network,
        "board": claims.board,
        "part": claims.part,
        "clock_mhz": claims.clock_mhz,
        "holds": comparison.holds,
        "highest_clock_mhz": comparison.highest_clock_mhz and round(comparison.highest_clock_mhz, 1),
        "versions": list(reports.versions),
        "reports": {kind: str(path) for kind, path in reports.paths.items()},
        "verdicts": {word: comparison.verdicts[word] for word in (HOLDS, BETTER, WORSE, OPEN)},
        "loops": [_loop_values(row) for row in comparison.loops],
        "memories": [asdict(row) for row in comparison.memories],
        "resources": [asdict(row) for row in comparison.resources],
        "clocks": [asdict(row) for row in comparison.clocks],
        "co_simulation": {"text": sentence, "verdict": verdict},
        "conflicts": list(comparison.conflicts),
        "refused": list(comparison.refused),
        "missing": list(comparison.missing),
        "undeclared": [asdict(loop) for loop in comparison.undeclared],
    }


def _loop_values(row: LoopRow) -> dict[str, Any]:
    return {
        "process": row.declared.function,
        "source": row.declared.source,
        "declared_ii": row.declared.ii,
        "derived_ii": row.derived[0] if row.derived else None,
        "achieved_ii": row.fact.ii if row.fact else None,
        "declared_depth": row.declared.depth,
        "derived_depth": row.derived[1] if row.derived else None,
        "achieved_depth": row.fact.depth if row.fact else None,
        "module": row.fact.module if row.fact else None,
        "path_ns": row.period_ns,
        "budget_ns": row.budget_ns,
        "path": [asdict(step) for step in row.path],
        "verdict": row.verdict,
        "advice": row.advice,
    }


# --- tables --------------------------------------------------------------------------------------------------------


def _loop_cells(row: LoopRow) -> list[Cell]:
    declared = row.declared
    module, *achieved = (row.fact.module, row.fact.ii, row.fact.depth) if row.fact else ("", None, None)
    place = f"{declared.function} {declared.source}"
    derived = row.derived or (None, None)
    rates = zip((declared.ii, declared.depth), derived, achieved, strict=True)
    return [place, module, *(cell for rate in rates for cell in rate), row.period_ns, row.verdict]


def _without_empty(head: Sequence[str], rows: list[list[Cell]]) -> tuple[Sequence[str], list[list[Cell]]]:
    """Return a table's head and rows without the columns "derived" if these are empty in every row."""
    columns = [i for i, name in enumerate(head) if name != "derived" or any(row[i] is not None for row in rows)]
    return [head[i] for i in columns], [[row[i] for i in columns] for row in rows]


def _memory_cells(row: MemoryRow) -> list[Cell]:
    return [row.name, row.source, row.claimed, row.achieved, row.verdict]


def _resource_cells(row: ResourceRow) -> list[Cell]:
    counts = (row.claimed, row.synthesised, row.placed, row.available)
    return [NAMES[row.kind], *("–" if count is None else f"{count:,.10g}" for count in counts), row.verdict]


def _clock_cells(row: ClockRow) -> list[Cell]:
    return [row.stage, row.path_ns, row.budget_ns, round(row.highest_mhz, 1), row.verdict]


def _tables(comparison: Comparison) -> Iterator[tuple[Sequence[str], list[list[Cell]]]]:
    """Yield head and rows of the tables of loops, memories, resources and clocks, without empty tables."""
    kinds: tuple[tuple[Sequence[str], list[list[Cell]]], ...] = (
        (LOOP_HEAD, [_loop_cells(row) for row in comparison.loops]),
        (MEMORY_HEAD, [_memory_cells(row) for row in comparison.memories]),
        (RESOURCE_HEAD, [_resource_cells(row) for row in comparison.resources]),
        (CLOCK_HEAD, [_clock_cells(row) for row in comparison.clocks]),
    )
    return (_without_empty(head, rows) for head, rows in kinds if rows)


def _advice(comparison: Comparison) -> list[Advice]:
    """Return all advice as (place, sentence): first conflicts between reports and design, last what is missing."""
    return [
        *(("reports", sentence) for sentence in comparison.conflicts),
        *(("directive refused", sentence) for sentence in comparison.refused),
        *((row.declared.source, row.advice) for row in comparison.loops if row.advice),
        *((row.name, row.advice) for row in comparison.memories if row.advice),
        *((NAMES[row.kind], row.advice) for row in comparison.resources if row.advice),
        *((row.stage, row.advice) for row in comparison.clocks if row.advice),
        *(("not known yet", sentence) for sentence in comparison.missing),
    ]


def summary(comparison: Comparison) -> list[str]:
    """Return the last lines of the text: design, tool versions, clock, and whether nothing is worse than claimed."""
    claims, counts = comparison.claims, comparison.verdicts
    versions = ", ".join(comparison.reports.versions) or "(version not in the reports)"
    clock = comparison.highest_clock_mhz
    reached = f"; the longest path allows {clock:.1f} MHz" if clock else ""
    placed = "the accelerator alone" if comparison.reports.accelerator else "the whole block design"
    lines = [
        f"{claims.network} on {claims.board} ({claims.part}), Vitis HLS and Vivado {versions}",
        f"claimed clock {claims.clock_mhz:g} MHz{reached}",
        f"co-simulation: {comparison.co_simulation[0]}",
    ]
    lines += [f"Vivado's resource counts are for {placed}"] if comparison.reports.utilisation else []
    lines += _foreseen(comparison)
    verdicts = ", ".join(f"{counts[word]} {word}" for word in (HOLDS, BETTER, WORSE, OPEN) if counts[word])
    lines.append(f"{verdicts}: " + ("nothing is worse than claimed" if comparison.holds else "NOT AS CLAIMED"))
    return lines


def _foreseen(comparison: Comparison) -> Iterator[str]:
    """Yield a line that says for how many loops ``systolic check`` derived the II and depth that Vitis HLS reached."""
    pairs = [(row.derived, row.fact) for row in comparison.loops if row.derived and row.fact and row.fact.ii]
    if pairs:
        right = sum(derived[0] == fact.ii for derived, fact in pairs)
        close = sum(abs(derived[1] - (fact.depth or 0)) <= NEAR_STAGES for derived, fact in pairs)
        yield (
            f"systolic check derived the right II for {right} of {len(pairs)} loops, and for {close} of them the depth "
            f"within {NEAR_STAGES} stages"
        )


def text(comparison: Comparison) -> str:
    """Return the comparison for a terminal: tables of claims and reported values, advice, and summary."""
    parts = [table(head, rows) for head, rows in _tables(comparison)]
    advice = _advice(comparison)
    if advice:
        parts.append("\n".join(printable(f"{place}: {sentence}") for place, sentence in advice))
    return "\n\n".join([*parts, "\n".join(map(printable, summary(comparison)))])


def html(comparison: Comparison) -> str:
    """Return the comparison as one self-contained HTML page."""
    note = "<br>".join(map(escape, summary(comparison)))
    advice = [list[Cell](pair) for pair in _advice(comparison)]
    parts = [html_table(head, rows) for head, rows in _tables(comparison)]
    if advice:
        parts.insert(0, f"<h2>What to do</h2>{html_table(('where', 'what'), advice)}<h2>Claims and facts</h2>")
    paths = [
        f"<h2>Longest path of {escape(row.fact.module)}</h2>"
        + html_table(("operation", "at", "ns"), [[step.operation, step.source, step.ns] for step in row.path])
        for row in comparison.loops
        if row.path and row.fact
    ]
    title = f"{comparison.claims.network} on {comparison.claims.board}: claims and the vendor's reports"
    return page(title, f"<p>{note}</p>", *parts, *paths, note=NOTE)


@dataclass(frozen=True)
class VendorReport:
    """The comparison of a design with the vendor's reports; it prints as text and is saved as an HTML page."""

    comparison: Comparison

    @property
    def holds(self) -> bool:
        """Return whether no value is worse than claimed, no directive refused, and no report of another design."""
        return self.comparison.holds

    def values(self) -> dict[str, Any]:
        """Return the comparison as a JSON object; ``systolic.vendor.report.values`` lists its keys."""
        return values(self.comparison)

    def text(self) -> str:
        """Return the comparison for a terminal: tables, advice and summary."""
        return text(self.comparison)

    __repr__ = text

    def page(self) -> str:
        """Return the comparison as one self-contained HTML page."""
        return html(self.comparison)

    def save(self, path: Path | str) -> None:
        """Write the comparison as an HTML page. An existing file is replaced only after all is written.

        Raises:
            OSError: The file cannot be written.
        """
        write_whole(Path(path), self.page().encode())

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        tables = "".join(html_table(head, rows) for head, rows in _tables(self.comparison))
        return f"<p>{'<br>'.join(map(escape, summary(self.comparison)))}</p>{tables}"
