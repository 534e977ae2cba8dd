"""Reads csynth.xml of Vitis HLS, which has all results of C synthesis."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

from boards.errors import DamagedFileError
from systolic.vendor.reading.facts import LoopFact, ModuleFact, PragmaFact, Resources, StorageFact, Synthesis
from systolic.vendor.reading.text import integer, number, parse_xml, read_text

_STORAGE = ("storage", "adapter")
"""The types of binding nodes that are memories, FIFOs or adapters."""

_TAKEN = ("valid", "")
"""The statuses of a directive that the tool accepted."""


def read_synthesis_xml(path: Path) -> Synthesis:
    """Return the results of C synthesis from a csynth.xml.

    Raises:
        DamagedFileError: The file is not a report of C synthesis.
    """
    root = parse_xml(read_text(path), path)
    assigned, estimates = root.find("UserAssignments"), root.find("PerformanceEstimates")
    if root.tag != "profile" or assigned is None or estimates is None:
        reason = "is not a csynth.xml of Vitis HLS: it has no <UserAssignments> or no <PerformanceEstimates>"
        raise DamagedFileError(str(path), reason, remedy="take hls/solution/syn/report/csynth.xml")
    top = _text(assigned, "TopModelName")
    return Synthesis(
        version=_text(root, "ReportVersion/Version"),
        top=top,
        part=_text(assigned, "Part"),
        target_ns=number(_text(assigned, "TargetClockPeriod")),
        uncertainty_ns=number(_text(assigned, "ClockUncertainty")),
        estimated_ns=number(_text(estimates, "SummaryOfTimingAnalysis/EstimatedClockPeriod")),
        latency=integer(_text(estimates, "SummaryOfOverallLatency/Worst-caseLatency")),
        interval=integer(_text(estimates, "SummaryOfOverallLatency/Interval-max")),
        resources=_resources(root.find("AreaEstimates/Resources")),
        available=_resources(root.find("AreaEstimates/AvailableResources")),
        modules=tuple(_module(module) for module in root.iterfind("ModuleInformation/Module")),
        refused=tuple(_refused(root)),
    )


def _text(element: Element, path: str) -> str:
    return (element.findtext(path) or "").strip()


def _resources(element: Element | None) -> Resources:
    if element is None:
        return Resources()
    lut, ff, dsp, bram, uram = (number(_text(element, name)) for name in ("LUT", "FF", "DSP", "BRAM_18K", "URAM"))
    return Resources(lut=lut, ff=ff, dsp=dsp, bram18=bram, uram=uram)


def _module(module: Element) -> ModuleFact:
    name = _text(module, "Name")
    estimates = "PerformanceEstimates/"
    return ModuleFact(
        name=name,
        estimated_ns=number(_text(module, f"{estimates}SummaryOfTimingAnalysis/EstimatedClockPeriod")),
        kind=_text(module, f"{estimates}SummaryOfOverallLatency/PipelineType"),
        resources=_resources(module.find("AreaEstimates/Resources")),
        loops=tuple(_loops(module, name)),
        storages=tuple(_storages(module, name)),
    )


def _loops(module: Element, name: str) -> Iterator[LoopFact]:
    """Yield every loop of a module's XML, nested ones too. A loop's element contains a <Name>."""
    summary = module.find("PerformanceEstimates/SummaryOfLoopLatency")
    violations = _violations(module)
    for loop in summary.iter() if summary is not None else ():
        if loop.find("Name") is None:
            continue
        source, issue = violations.get(loop.tag, ("", ""))
        yield LoopFact(
            name=_text(loop, "Name"),
            module=name,
            ii=integer(_text(loop, "PipelineII")),
            depth=integer(_text(loop, "PipelineDepth")) or integer(_text(loop, "IterationLatency")),
            source=source,
            issue=issue,
        )


def _violations(module: Element) -> dict[str, tuple[str, str]]:
    """Return {tag of a loop's element: (FILE:LINE, II violations)}; versions before 2023.2 have none."""
    summary = module.find("PerformanceEstimates/SummaryOfViolations/SummaryOfLoopViolations")
    places: dict[str, tuple[str, str]] = {}
    for loop in summary.iter() if summary is not None else ():
        if loop.find("Name") is not None:
            issues = (_text(loop, "IssueType"), _text(loop, "ViolationType"))
            places[loop.tag] = (
                _text(loop, "SourceLocation").lstrip("-"),
                ", ".join(dict.fromkeys(issue for issue in issues if issue not in ("-", ""))),
            )
    return places


def _storages(module: Element, name: str) -> Iterator[StorageFact]:
    for node in module.iterfind("BindNodes/BindNode"):
        if node.get("BINDTYPE") not in _STORAGE:
            continue
        yield StorageFact(
            module=name,
            variable=node.get("VARIABLE") or node.get("BUNDLEDNAME") or node.get("RTLNAME") or "",
            kind=node.get("OPTYPE") or node.get("STORAGESUBTYPE") or "",
            impl=node.get("IMPL") or "",
            bram18=integer(node.get("BRAM")) or 0,
            uram=integer(node.get("URAM")) or 0,
        )


def _refused(root: Element) -> Iterator[PragmaFact]:
    for pragma in root.iterfind("PragmaReport/Pragma"):
        if pragma.get("status", "") not in _TAKEN:
            text = f"{pragma.get('type', '')} {pragma.get('options', '')}".strip()
            message = " ".join("".join(pragma.itertext()).split()) or pragma.get("status", "")
            yield PragmaFact(pragma.get("location", ""), text, message)
