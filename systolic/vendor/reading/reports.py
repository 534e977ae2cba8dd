"""Finds the vendor's reports in a folder, and reads all of them.

The generated Tcl writes each report to the first place of its list. The tools' own projects and ``export_design``
write it to the other places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from boards.errors import FileAccessError
from systolic.vendor.reading.cosimulation import read_cosimulation
from systolic.vendor.reading.facts import CoSimulation, CriticalPath, Synthesis, Timing, Utilisation, Violation
from systolic.vendor.reading.log import read_log
from systolic.vendor.reading.schedule import SUFFIX, read_schedule
from systolic.vendor.reading.synthesis_text import read_synthesis_text
from systolic.vendor.reading.synthesis_xml import read_synthesis_xml
from systolic.vendor.reading.vivado import read_hierarchy, read_timing, read_utilisation

# Glob patterns below the folder, one list per kind of report. The first pattern that matches a file is taken.
SYNTHESIS = ("hls/solution/syn/report/csynth.xml", "**/syn/report/csynth.xml", "csynth.xml")
SYNTHESIS_TEXT = ("hls/solution/syn/report/csynth.rpt", "**/syn/report/csynth.rpt", "csynth.rpt")
CO_SIMULATION = ("hls/solution/sim/report/*_cosim.rpt", "**/sim/report/*_cosim.rpt", "*_cosim.rpt")
UTILISATION = ("vivado/utilization.rpt", "**/impl_1/*_utilization_placed.rpt", "*utilization*.rpt")
HIERARCHY = ("vivado/utilization_hierarchical.rpt",)
LOG = ("hls/solution/solution.log", "hls.log", "vitis_hls.log", "**/solution*/solution*.log")
TIMING = ("vivado/timing.rpt", "**/impl_1/*_timing_summary_routed.rpt", "*timing*.rpt")

KERNELS = "kernels"
"""The folder of a design that has one subfolder per function that is synthesised alone.

Its reports are about single functions, so a search for the reports of the whole design does not enter it.
"""

Read = TypeVar("Read")


@dataclass(frozen=True)
class Reports:
    """Everything that was read from the reports of one design. A missing report gives None or an empty tuple.

    Attributes:
        paths: Kind of report → the file that was read.
        paths_of_modules: The critical paths of modules that exceed the time available for a path.
        utilisation: Vivado's counts of the whole block design.
        accelerator: Vivado's counts of the accelerator alone.
    """

    paths: dict[str, Path]
    synthesis: Synthesis | None = None
    paths_of_modules: tuple[CriticalPath, ...] = ()
    violations: tuple[Violation, ...] = ()
    co_simulation: CoSimulation | None = None
    utilisation: Utilisation | None = None
    accelerator: Utilisation | None = None
    timing: Timing | None = None

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions of Vitis HLS and Vivado that wrote the reports, without duplicates."""
        parts = (self.synthesis, self.utilisation, self.timing)
        return tuple(dict.fromkeys(part.version for part in parts if part and part.version))


def read_reports(folder: Path, cell: str) -> Reports:
    """Find and read all reports of Vitis HLS and Vivado in ``folder`` and its subfolders.

    Args:
        cell: The name of the accelerator's instance in the block design.

    Raises:
        FileAccessError: The folder has no report, or a report cannot be read.
        DamagedFileError: A file at the place of a report is not a report.
    """
    if not folder.is_dir():
        remedy = "name the folder that contains hls/ and vivado/"
        raise FileAccessError(str(folder), "is not a folder", "folder of reports", remedy=remedy)
    paths = {kind: path for kind, patterns in _PLACES.items() if (path := _first(folder, patterns)) is not None}
    if not paths.keys() - {"log"}:
        reason = "contains no report of Vitis HLS or Vivado"
        remedy = "run vitis_hls -f run_hls.tcl there, or systolic vendor --csynth if the tool is on the PATH"
        raise FileAccessError(str(folder), reason, "folder", remedy=remedy)
    if "csynth.xml" in paths:
        paths.pop("csynth.rpt", None)
    synthesis = _read(read_synthesis_xml, paths.get("csynth.xml")) or _read(
        read_synthesis_text, paths.get("csynth.rpt")
    )
    hierarchy = paths.get("hierarchy")
    return Reports(
        paths=paths,
        synthesis=synthesis,
        paths_of_modules=tuple(_critical_paths(paths, synthesis)),
        violations=_read(read_log, paths.get("log")) or (),
        co_simulation=_read(read_cosimulation, paths.get("cosim")),
        utilisation=_read(read_utilisation, paths.get("utilisation")),
        accelerator=None if hierarchy is None else read_hierarchy(hierarchy, cell),
        timing=_read(read_timing, paths.get("timing")),
    )


_PLACES = {
    "csynth.xml": SYNTHESIS,
    "csynth.rpt": SYNTHESIS_TEXT,
    "cosim": CO_SIMULATION,
    "utilisation": UTILISATION,
    "hierarchy": HIERARCHY,
    "timing": TIMING,
    "log": LOG,
}


def _first(folder: Path, patterns: Iterable[str]) -> Path | None:
    """Return the first file that matches a pattern, in the order of patterns, then of names; None without a match.

    Raises:
        FileAccessError: The folder cannot be searched.
    """
    try:
        for pattern in patterns:
            files = (path for path in folder.glob(pattern) if KERNELS not in path.relative_to(folder).parts)
            path = min((path for path in files if path.is_file()), default=None)
            if path is not None:
                return path
    except OSError as error:
        reason = f"cannot be searched for reports: {error.strerror}"
        raise FileAccessError(str(folder), reason, "folder") from error
    return None


def _read(read: Callable[[Path], Read], path: Path | None) -> Read | None:
    return None if path is None else read(path)


def _critical_paths(paths: dict[str, Path], synthesis: Synthesis | None) -> Iterable[CriticalPath]:
    """Yield the critical path of each module whose estimated delay exceeds the time available.

    The paths are read from the verbose schedules in .autopilot/db of the solution, which a user may have deleted.
    """
    if synthesis is None or synthesis.budget_ns is None or "csynth.xml" not in paths:
        return
    schedules = paths["csynth.xml"].parents[2] / ".autopilot" / "db"
    for module in synthesis.modules:
        path = schedules / f"{module.name}{SUFFIX}"
        if (module.estimated_ns or 0) > synthesis.budget_ns + TOLERANCE_NS and path.is_file():
            longest = read_schedule(path)
            if longest is not None:
                yield longest


TOLERANCE_NS = 0.005
"""The rounding error of a delay in a report, which has two or three decimals."""
