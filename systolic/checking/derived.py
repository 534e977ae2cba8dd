"""A design whose loops take as long as its code allows, instead of as long as it declares: ``with_derived_loops``."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from boards.errors import DamagedFileError
from boards.progress import Progress, silent
from hls_schedule.check import CheckedLoop, read_sources
from host.contract.simulation_library import kept_in
from systolic.styles.style import OpenedDesign

SOURCES = ("src", "simulation")
"""Folders that a simulation library is compiled from."""

_MARK = re.compile(r"SYSTOLIC_PIPELINE\(.*\);")


def with_derived_loops(design: OpenedDesign, clock_mhz: float | None = None, tell: Progress = silent) -> OpenedDesign:
    """The same design on a copy of its sources, kept beside its libraries, in which every mark has the interval and the
    depth that the code reaches at a clock, the design's where it is None.

    A loop that several processes have counts as the slowest of them. Raises the errors of ``read_sources`` if the
    sources do not compile, or without the extra ``check``.
    """
    tell("deriving the loops")
    loops = read_sources(design.path / "src" / "top.cpp").check(clock_mhz or float(design.manifest.clock_mhz))
    folder = kept_in(design.path) / "derived"
    for name in SOURCES:
        shutil.copytree(design.path / name, folder / name, dirs_exist_ok=True)
    write_marks(folder / "src", loops)
    derived: Any = design
    copy: OpenedDesign = replace(derived, path=folder)
    return copy


def write_marks(sources: Path, loops: Sequence[CheckedLoop]) -> None:
    """Write the derived loops into generated code, in the place of the declared ones; DamagedFileError if a loop has no
    mark."""
    slowest: dict[str, tuple[int, int]] = {}
    for loop in loops:
        interval, depth = slowest.get(loop.source, (1, 1))
        slowest[loop.source] = max(interval, loop.derived_ii), max(depth, loop.derived_depth)
    for source, (interval, depth) in slowest.items():
        name, _, number = source.partition(":")
        lines = (sources / name).read_text("utf-8").split("\n")
        mark = _MARK.search(lines[int(number) - 1])
        if mark is None:
            reason, remedy = "holds no SYSTOLIC_PIPELINE", "generate the design again"
            raise DamagedFileError(str(sources / name), reason, f"line {number}", remedy=remedy)
        lines[int(number) - 1] = _MARK.sub(f"SYSTOLIC_PIPELINE({interval}, {depth});", lines[int(number) - 1])
        (sources / name).write_text("\n".join(lines), "utf-8")
