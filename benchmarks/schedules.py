"""Compare derived schedules of the vendor's bitcode with its reports: ``python -m benchmarks.schedules [REPOSITORY]``.

REPOSITORY is a clone of github.com/zanehpn/HLStrans, with or without a work tree. It contains bitcode and reports of
Vitis HLS 2022.2 runs. Facts from its reports are read from ../shared/data/vitis. The output is the table of
docs/reference/hls_schedule.md. Half of the projects calibrated ``operators.toml``; the other half validates it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from boards.errors import SystolicError
from hls_schedule.operators import load_table
from hls_schedule.predict import Knowledge, crowded_memories, predict
from hls_schedule.reading.ir import Loop, read_loops, read_module
from hls_schedule.reading.layout import Types

FACTS = Path(__file__).resolve().parents[1].parent / "shared/data/vitis/schedules_2022.2_xcu55c.json"
BITCODE = "a.o.3.bc"
DEPTH_STAGES, SHARE = 2, 0.15
"""Tolerances: a depth counts as equal within this number of stages or this share, a period within this share."""


@dataclass(frozen=True)
class Comparison:
    """A loop's reported and derived values, in pairs.

    Attributes:
        name: Name of the loop's function.
        calibrated: Whether its project was used for calibration.
        interval: Initiation interval in cycles.
        depth: Pipeline depth in stages.
        period: Clock period in ns.
    """

    name: str
    calibrated: bool
    interval: tuple[int, int]
    depth: tuple[int, int]
    period: tuple[float, float]

    @property
    def hits(self) -> tuple[bool, bool, bool]:
        """Return whether interval, depth and period agree."""
        depth_hits = abs(self.depth[0] - self.depth[1]) <= max(DEPTH_STAGES, SHARE * self.depth[0])
        close = abs(self.period[0] - self.period[1]) <= SHARE * self.period[0]
        return self.interval[0] == self.interval[1], depth_hits, close


def compare(facts: Mapping[str, Any], repository: Path) -> Iterator[Comparison]:
    """Yield a comparison for every loop of the facts that occurs exactly once in the repository's bitcode."""
    reports = [fact["report"] for fact in facts["loops"]]
    calibrated = set(sorted({_project(report) for report in reports})[::2])
    read = cache(lambda folder: _unit(repository, folder))
    for fact in facts["loops"]:
        report = PurePosixPath(fact["report"])
        loops, types = read(str(report.parent))
        named = [loop for loop in loops if loop.function.strip('@"') == report.name.removesuffix(".verbose.sched.rpt")]
        if len(named) == 1:
            knowledge = Knowledge(crowded=crowded_memories(loops, types))
            derived = predict(named[0], types, load_table(), float(fact["clock_ns"]), knowledge=knowledge)
            yield Comparison(
                name=report.name.removesuffix(".verbose.sched.rpt"),
                calibrated=_project(fact["report"]) in calibrated,
                interval=(int(fact["achieved"]), derived.interval),
                depth=(int(fact["iteration_latency"].split("~")[-1]), derived.depth),
                period=(float(fact["estimated_ns"]), derived.period_ns),
            )


def _project(report: str) -> str:
    return report.split("/solution")[0]


def _unit(repository: Path, folder: str) -> tuple[tuple[Loop, ...], Types]:
    """Return the loops of a folder's bitcode, or none if there is no bitcode."""
    file = f"{folder}/{BITCODE}"
    if (repository / file).is_file():
        data = (repository / file).read_bytes()
    else:
        command = ["git", "-C", str(repository), "show", f"HEAD:{file}"]
        data = subprocess.run(command, capture_output=True, check=False).stdout
    if not data:
        return (), Types({})
    module = read_module(data)
    return read_loops(module), Types(module.types)


def table(comparisons: list[Comparison]) -> str:
    """Return the table of agreement for both halves of the projects, followed by every disagreement."""
    halves = {
        calibrated: [comparison for comparison in comparisons if comparison.calibrated is calibrated]
        for calibrated in (True, False)
    }
    rows = ["| loops | interval | depth | period |", "| --- | --- | --- | --- |"]
    for title, chosen in (("calibrated", halves[True]), ("validated", halves[False]), ("all", comparisons)):
        shares = [f"{sum(hits)} ({sum(hits) / len(hits):.0%})" for hits in zip(*(c.hits for c in chosen), strict=True)]
        rows.append(f"| {title}: {len(chosen)} | {' | '.join(shares)} |")
    misses = [_miss(comparison) for comparison in comparisons if not all(comparison.hits)]
    head = ["", "| miss | interval | depth | period, ns |", "| --- | --- | --- | --- |"]
    return "\n".join([*rows, "", _ones(comparisons), *head, *misses])


def _ones(comparisons: list[Comparison]) -> str:
    """Return a sentence about the loops that reach an interval of 1."""
    reached = [comparison.interval[1] == 1 for comparison in comparisons if comparison.interval[0] == 1]
    slower = [comparison.interval[1] == 1 for comparison in comparisons if comparison.interval[0] != 1]
    return (
        f"{sum(reached)} of {len(reached)} loops that reached 1 are predicted to reach 1; "
        f"so are {sum(slower)} loops that did not."
    )


def _miss(comparison: Comparison) -> str:
    reported, derived = comparison.period
    pairs = (comparison.interval, comparison.depth, (round(reported, 2), round(derived, 2)))
    cells = [f"{a}" if hit else f"{a} → {b}" for (a, b), hit in zip(pairs, comparison.hits, strict=True)]
    return f"| {comparison.name} | {' | '.join(cells)} |"


def main(arguments: list[str]) -> int:
    """Print the table and return 0. Return 2 if the facts or the repository are missing."""
    repository = Path(arguments[0]) if arguments else Path("HLStrans")
    try:
        facts = json.loads(FACTS.read_text("utf-8"))
        comparisons = list(compare(facts, repository))
    except (OSError, SystolicError) as error:
        print(f"schedules: {error}", file=sys.stderr)
        return 2
    if not comparisons:
        print(f"schedules: {repository} has no {BITCODE}: give a clone of zanehpn/HLStrans", file=sys.stderr)
        return 2
    print(table(comparisons))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
