"""A copy of a design's C++ in which each loop has the II and depth derived from the code, not the declared ones."""

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
from host.contract.simulation_library import library_folder
from systolic.styles.style import OpenedDesign

SOURCES = ("src", "simulation")
"""The folders of a design from which the simulation library is compiled."""

_MARK = re.compile(r"SYSTOLIC_PIPELINE\(.*\);")


def with_derived_loops(
    design: OpenedDesign, clock_mhz: float | None = None, progress: Progress = silent
) -> OpenedDesign:
    """Return a copy of a C++ design whose loops have the II and depth that the code reaches at a clock.

    The copy is next to the cached simulation libraries. If several processes contain the same loop, the slowest counts.

    Args:
        design: The generated design.
        clock_mhz: The clock for which the loops are derived, in MHz. None means the design's clock.

    Raises:
        SystolicError: An error of ``read_sources``: the sources do not compile, or the extra ``check`` is missing.
    """
    progress("deriving the loops")
    loops = read_sources(design.path / "src" / "top.cpp").check(clock_mhz or float(design.manifest.clock_mhz))
    folder = library_folder(design.path) / "derived"
    for name in SOURCES:
        shutil.copytree(design.path / name, folder / name, dirs_exist_ok=True)
    write_marks(folder / "src", loops)
    derived: Any = design
    copy: OpenedDesign = replace(derived, path=folder)
    return copy


def write_marks(sources: Path, loops: Sequence[CheckedLoop]) -> None:
    """Write the derived II and depth of each loop into its ``SYSTOLIC_PIPELINE(II, depth)`` mark in the C++.

    Raises:
        DamagedFileError: A loop has no mark.
    """
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
