"""Reads NAME.verbose.sched.rpt, Vitis HLS's schedule of one module: the operations of its longest path."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from boards.errors import cut
from systolic.vendor.reading.facts import CriticalPath, Step
from systolic.vendor.reading.text import lines_of

SUFFIX = ".verbose.sched.rpt"

_NS = r"(\d{1,9}(?:\.\d{1,9})?) ?ns"
_STATE = re.compile(rf"\s*<State \d+>:\s*{_NS}")
_STEP = re.compile(rf"\t(.*) \({_NS}\)\s*$")
_BLOCKING = re.compile(rf"\tblocking operation {_NS} on control path")
_PLACE = re.compile(r"([\w./+-]+\.(?:h|hpp|c|cc|cpp)):(\d+)")
_KIND = re.compile(r"'?(\w+)'? .*?operation")


def read_schedule(path: Path) -> CriticalPath | None:
    """Return the longest path of a module's schedule; None if the file has no paths.

    Raises:
        FileAccessError: The file cannot be read.
    """
    longest: CriticalPath | None = None
    module = path.name.removesuffix(SUFFIX)
    for ns, steps in _paths(lines_of(path)):
        if longest is None or ns > longest.ns:
            longest = CriticalPath(module, ns, steps)
    return longest


def _paths(lines: Iterator[str]) -> Iterator[tuple[float, tuple[Step, ...]]]:
    ns: float | None = None
    steps: list[Step] = []
    for line in lines:
        state = _STATE.match(line)
        step = _step(line) if ns is not None else None
        if step:
            steps.append(step)
        elif state or (ns is not None and not line.strip()):
            if ns is not None and steps:
                yield ns, tuple(steps)
            ns, steps = (float(state[1]), []) if state else (None, [])
    if ns is not None and steps:
        yield ns, tuple(steps)


def _step(line: str) -> Step | None:
    """Return the operation that a line of a path describes; None for another line."""
    blocking, step = _BLOCKING.match(line), _STEP.match(line)
    if blocking:
        return Step("control", "", float(blocking[1]))
    if step is None:
        return None
    place, kind = _PLACE.search(step[1]), _KIND.match(step[1])
    source = f"{Path(place[1]).name}:{place[2]}" if place else ""
    return Step(cut(kind[1] if kind else step[1], 40), source, float(step[2]))
