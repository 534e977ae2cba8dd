"""Reports in the formats of Vitis HLS and Vivado for a design that meets its claims.

The texts are written for the tests. tests/systolic/vendor/test_public_reports.py checks the readers with reports that
the tools wrote.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from systolic.vendor.claims import Claims, MemoryClaim
from systolic.vendor.sources import DeclaredLoop
from tests.support.host.manifests import manifest_fields

ROOT = Path(__file__).resolve().parents[3]


def small_folder(folder: Path) -> Path:
    """Return a folder with the small design's manifest and scripts, and the sources of texts/src.

    The small design is the one of tests/golden.
    """
    golden = ROOT / "tests/golden/systolic/design"
    shutil.copytree(Path(__file__).with_name("texts") / "src", folder / "src")
    for name in ("run_hls.tcl", "build_vivado.tcl"):
        shutil.copy(golden / name, folder)
    manifest = manifest_fields(golden)
    manifest["estimate"] = {"dsp": 208, "bram36": 29, "uram": 0, "lut": 22064, "lutram": 4400}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def design_folder(folder: Path, style: str) -> Path:
    """Return a copy of the small design of tests/golden with all headers of its style."""
    shutil.copytree(ROOT / "tests/golden" / style / "design", folder)
    for room in (style, "common"):
        for header in (ROOT / "hls_templates" / room).rglob("*.h"):
            shutil.copy(header, folder / "src")
    return folder


# --- Vitis HLS -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Loop:
    """A loop as scheduled.

    Attributes:
        name: The name that the tool gives it.
        ii: The initiation interval in cycles, or None if it is not pipelined.
        depth: The pipeline depth in cycles.
        source: The place in the sources.
    """

    name: str
    ii: int | None
    depth: int
    source: str = ""


@dataclass(frozen=True)
class Module:
    """A module of the report.

    Attributes:
        name: The module's name.
        loops: Its loops.
        nodes: The attributes of each node of the binding.
        estimated_ns: The estimated clock period in ns.
    """

    name: str
    loops: tuple[Loop, ...] = ()
    nodes: tuple[Mapping[str, str], ...] = ()
    estimated_ns: float = 2.0


@dataclass(frozen=True)
class Run:
    """A run of C synthesis."""

    top: str
    part: str
    target_ns: float
    modules: tuple[Module, ...]
    estimated_ns: float = 2.0
    version: str = "2023.2"
    counts: Mapping[str, int] = field(default_factory=lambda: {"BRAM_18K": 40, "DSP": 200, "FF": 9000, "LUT": 30000})
    pragmas: str = ""

    def changed(self, name: str, module: Module) -> Run:
        """Return the run with another module of that name."""
        return replace(self, modules=tuple(module if m.name == name else m for m in self.modules))

    def module(self, name: str) -> Module:
        return next(module for module in self.modules if module.name == name)


def storage(variable: str, impl: str, bram: int = 0, uram: int = 0, kind: str = "ram_s2p") -> Mapping[str, str]:
    return {
        "BINDTYPE": "storage",
        "BRAM": str(bram),
        "URAM": str(uram),
        "IMPL": impl,
        "OPTYPE": kind,
        "RTLNAME": f"{variable}_U",
        "VARIABLE": variable,
    }


def as_claimed(claims: Claims) -> Run:
    """Return a run that meets all claims, with a module per function that has loops or memories."""
    functions = dict.fromkeys([loop.function for loop in claims.loops])
    functions |= dict.fromkeys(storage.function for claim in claims.memories for storage in claim.storages)
    modules = tuple(_module(claims, name) for name in functions)
    return Run(claims.top, claims.part, round(claims.period_ns, 2), modules)


def _module(claims: Claims, function: str) -> Module:
    loops = [loop for loop in claims.loops if loop.function == function]
    nodes = [node for claim in claims.memories for node in _nodes(claim, function)]
    return Module(function, tuple(scheduled(loop) for loop in loops), tuple(nodes))


def scheduled(loop: DeclaredLoop, number: int = 1) -> Loop:
    """Return the loop as the design declares it."""
    return Loop(f"VITIS_LOOP_{loop.line}_{number}", loop.ii, loop.depth or 4)


def _nodes(claim: MemoryClaim, function: str) -> Iterable[Mapping[str, str]]:
    for place in claim.storages:
        if place.function != function:
            continue
        memories = (claim.count or 1) // len(claim.storages)
        blocks = (claim.blocks or 0) // (claim.count or 1)
        bram, uram = (2 * blocks, 0) if claim.impl == "bram" else (0, blocks) if claim.impl == "uram" else (0, 0)
        for index in range(memories):
            yield storage(f"{function}_{place.variable}_{index}", claim.impl, bram, uram)


def csynth_xml(run: Run) -> str:
    counts = "".join(f"<{kind}>{count}</{kind}>" for kind, count in {**run.counts, "URAM": 0}.items())
    available = "<BRAM_18K>280</BRAM_18K><DSP>220</DSP><FF>106400</FF><LUT>53200</LUT><URAM>0</URAM>"
    return f"""<profile>
    <ReportVersion><Version>{run.version}</Version></ReportVersion>
    <UserAssignments>
        <unit>ns</unit><Part>{run.part}</Part><TopModelName>{run.top}</TopModelName>
        <TargetClockPeriod>{run.target_ns:.2f}</TargetClockPeriod>
        <ClockUncertainty>{0.27 * run.target_ns:.2f}</ClockUncertainty>
    </UserAssignments>
    <PerformanceEstimates>
        <SummaryOfTimingAnalysis>
            <EstimatedClockPeriod>{run.estimated_ns:.3f}</EstimatedClockPeriod>
        </SummaryOfTimingAnalysis>
        <SummaryOfOverallLatency>
            <Worst-caseLatency>undef</Worst-caseLatency><Interval-max>undef</Interval-max>
        </SummaryOfOverallLatency>
    </PerformanceEstimates>
    <AreaEstimates><Resources>{counts}</Resources><AvailableResources>{available}</AvailableResources></AreaEstimates>
    <ModuleInformation>{"".join(map(_module_xml, run.modules))}</ModuleInformation>
    <PragmaReport>{run.pragmas}</PragmaReport>
</profile>
"""


def _module_xml(module: Module) -> str:
    nodes = "".join(f"<BindNode {' '.join(f'{k}={v!r}' for k, v in node.items())}/>" for node in module.nodes)
    violations = "".join(
        f"<{loop.name}><Name>{loop.name}</Name><IssueType>-</IssueType><ViolationType>-</ViolationType>"
        f"<SourceLocation>{loop.source or '-'}</SourceLocation></{loop.name}>"
        for loop in module.loops
    )
    return f"""
        <Module>
            <Name>{module.name}</Name>
            <PerformanceEstimates>
                <SummaryOfTimingAnalysis>
                    <EstimatedClockPeriod>{module.estimated_ns:.3f}</EstimatedClockPeriod>
                </SummaryOfTimingAnalysis>
                <SummaryOfOverallLatency><PipelineType>no</PipelineType></SummaryOfOverallLatency>
                <SummaryOfLoopLatency>{"".join(map(_loop_xml, module.loops))}</SummaryOfLoopLatency>
                <SummaryOfViolations>
                    <SummaryOfLoopViolations>{violations}</SummaryOfLoopViolations>
                </SummaryOfViolations>
            </PerformanceEstimates>
            <BindNodes><BindNode BINDTYPE="op" IMPL="fabric" VARIABLE="add_ln1" BRAM="0" URAM="0"/>{nodes}</BindNodes>
        </Module>"""


def _loop_xml(loop: Loop) -> str:
    rate = f"<PipelineII>{loop.ii}</PipelineII><PipelineDepth>{loop.depth}</PipelineDepth>" if loop.ii else ""
    kind = "yes" if loop.ii else "no"
    return (
        f"<{loop.name}><Name>{loop.name}</Name><TripCount><range><min>1</min><max>1000000</max></range></TripCount>"
        f"<IterationLatency>{loop.depth}</IterationLatency>{rate}<PipelineType>{kind}</PipelineType></{loop.name}>"
    )


def write_run(folder: Path, run: Run) -> Path:
    """Write csynth.xml to the place that the generated Tcl uses, and return its path."""
    path = folder / "hls/solution/syn/report/csynth.xml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(csynth_xml(run))
    return path


def file(name: str) -> str:
    """Return a text of the folder texts/. Names in braces are placeholders."""
    return (Path(__file__).with_name("texts") / name).read_text()


def cosim(status: str = "Pass", total: int | str = 1200) -> str:
    cycles = "NA" if status != "Pass" else 600
    return file("cosim.rpt").format(status=status, low=cycles, mean=cycles, high=cycles, total=total)


SCHEDULE, LOG, SUMMARY = file("sched.rpt"), file("hls.log"), file("csynth.rpt")

# --- Vivado --------------------------------------------------------------------------------------------------------

UTILISATION, HIERARCHY = file("utilization.rpt"), file("utilization_hierarchical.rpt")


def timing(wns: float = 0.123, whs: float = 0.011, period: float = 10.0) -> str:
    failing = 7 if wns < 0 else 0
    return file("timing.rpt").format(wns=wns, whs=whs, failing=failing, period=period, frequency=1000 / period)


def write_vivado(folder: Path, **slacks: float) -> None:
    """Write the reports of build_vivado.tcl."""
    (folder / "vivado").mkdir(exist_ok=True)
    (folder / "vivado/utilization.rpt").write_text(UTILISATION)
    (folder / "vivado/utilization_hierarchical.rpt").write_text(HIERARCHY)
    (folder / "vivado/timing.rpt").write_text(timing(**slacks))


def write_cosim(folder: Path, text: str) -> None:
    path = folder / "hls/solution/sim/report/systolic_top_cosim.rpt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
