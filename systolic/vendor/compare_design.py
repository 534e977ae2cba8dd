"""Compares a design with the vendor's reports, after a run of Vitis HLS if that is requested."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from boards.errors import ConflictError
from boards.progress import Progress, silent
from systolic.checking.design import check_design
from systolic.vendor.claims import read_claims
from systolic.vendor.comparison.compare import compare
from systolic.vendor.comparison.loops import Derived, DerivedLoop
from systolic.vendor.kernel import SCRIPT, kernel_folder, write_kernel
from systolic.vendor.reading.reports import read_reports
from systolic.vendor.report import VendorReport
from systolic.vendor.tool import synthesise


@dataclass(frozen=True)
class VendorOptions:
    """The options of ``systolic vendor``.

    Attributes:
        reports: The folder of the reports; None for the design's folder.
        function: The only function to compare; None for the whole design.
        csynth: Run C synthesis first.
        derived: Also derive II and depth of each loop from the sources, as ``systolic check`` does.
    """

    reports: Path | None = None
    function: str | None = None
    csynth: bool = False
    derived: bool = False

    def __post_init__(self) -> None:
        if self.csynth and self.reports is not None:
            raise ConflictError(
                ("--csynth", "--reports"),
                "--csynth writes its reports to the design's folder",
                remedy="leave out --reports",
            )


def compare_design(design: Path, options: VendorOptions, progress: Progress = silent) -> VendorReport:
    """Compare what a design declares and estimates with the vendor's reports in a folder.

    Raises:
        SystolicError: An error of ``read_claims``, ``write_kernel``, ``synthesise``, ``read_reports`` or
            ``check_design``.
    """
    claims = read_claims(design)
    place = options.reports or design
    if options.function is not None:
        claims = claims.part_of(options.function)
        place = options.reports or kernel_folder(design, options.function)
        if options.csynth:
            write_kernel(design, options.function, claims)
    if options.csynth:
        synthesise(place, SCRIPT, progress)
    progress("reading reports")
    reports = read_reports(place, claims.cell)  # before the loops are derived, which takes minutes
    return VendorReport(compare(claims, reports, _derived(design, progress) if options.derived else {}))


def _derived(design: Path, progress: Progress) -> Derived:
    return {
        (loop.process, loop.source): DerivedLoop(loop.derived_ii, loop.derived_depth, loop.declared_depth)
        for loop in check_design(design, None, progress).loops
    }
