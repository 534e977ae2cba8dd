"""Readers of vendor reports, tested on reports in public repositories; no file of a repository is copied here.

SYSTOLIC_PUBLIC_REPORTS names a folder of clones, either bare as OWNER+NAME/repo, or OWNER+NAME with .git in it:

    zanehpn/HLStrans                  Vitis HLS 2022.2, UltraScale+: 35 runs with verbose schedules and logs
    HanderRi/AMD-Pervasive-AI         Vitis HLS 2022.2, a dataflow design with memories
    terenceza/AccelAutoencoderOnFPGA  Vitis HLS 2022.1, 7 series, a co-simulation
    ssfortynine/GraduationDesign      Vitis HLS and Vivado 2023.1, UltraScale+
    WYI1223/ECE8893MyLab              Vitis HLS and Vivado 2025.1, UltraScale+, co-simulations and implementations
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from systolic.vendor.reading.cosimulation import read_cosimulation
from systolic.vendor.reading.log import read_log
from systolic.vendor.reading.schedule import read_schedule
from systolic.vendor.reading.synthesis_text import read_synthesis_text
from systolic.vendor.reading.synthesis_xml import read_synthesis_xml
from systolic.vendor.reading.vivado import read_hierarchy, read_timing, read_utilisation
from tests.support.cases import cases

VERSIONS = {
    "zanehpn+HLStrans": "2022.2",
    "HanderRi+AMD-Pervasive-AI": "2022.2",
    "terenceza+AccelAutoencoderOnFPGA": "2022.1",
    "ssfortynine+GraduationDesign": "2023.1",
    "WYI1223+ECE8893MyLab": "2025.1",
}
LABS = "WYI1223+ECE8893MyLab"
MOST = 12
"""Greatest number of files of a kind that are read from one repository."""


class Clone:
    """A clone of a repository, read at its newest commit."""

    def __init__(self, folder: Path, work: Path) -> None:
        self._git = ["git", "-C", str(folder)]
        self._work = work

    def names(self, ending: str) -> list[str]:
        listed = subprocess.run([*self._git, "ls-tree", "-r", "--name-only", "HEAD"], capture_output=True, check=True)
        return [name for name in listed.stdout.decode().split("\n") if name.endswith(ending)]

    def file(self, name: str) -> Path:
        """Write a copy of the file under its own name, and return the copy's path."""
        shown = subprocess.run([*self._git, "show", f"HEAD:{name}"], capture_output=True, check=True)
        path = self._work / Path(name).name
        path.write_bytes(shown.stdout)
        return path


def clone(name: str, work: Path) -> Clone:
    place = os.environ.get("SYSTOLIC_PUBLIC_REPORTS")
    if place is None:
        pytest.skip("SYSTOLIC_PUBLIC_REPORTS names no folder with clones of public repositories that hold reports")
    folder = next((path for path in (Path(place) / name / "repo", Path(place) / name) if path.is_dir()), None)
    if folder is None:
        pytest.skip(f"{place} has no clone {name}")
    return Clone(folder, work)


@cases("repository", VERSIONS)
def test_synthesis_reports_in_xml_and_text_agree(repository: str, tmp_path: Path) -> None:
    """Compare the readers of csynth.xml and csynth.rpt, which share only the code that reads a cell."""
    reports = clone(repository, tmp_path)
    names = reports.names("/syn/report/csynth.xml")[:MOST]
    assert names
    for name in names:
        xml = read_synthesis_xml(reports.file(name))
        text = read_synthesis_text(reports.file(f"{name[:-4]}.rpt"))
        assert xml.version == text.version
        assert xml.version.startswith(VERSIONS[repository])
        assert (xml.top, xml.part, xml.latency, xml.interval) == (text.top, text.part, text.latency, text.interval)
        pipelined = [{(loop.name, loop.ii, loop.depth) for loop in s.loops if loop.ii} for s in (xml, text)]
        assert pipelined[0] == pipelined[1]
        counts = [(s.resources.ff, s.resources.dsp, s.resources.bram18, s.resources.uram) for s in (xml, text)]
        assert counts[0] == counts[1]
        # The table of version 2025.1 counts two LUTs more than its XML file.
        assert xml.resources.lut == pytest.approx(text.resources.lut, abs=2)
        memories = [{(m.variable, m.impl, m.bram18) for m in s.storages if m.impl} for s in (xml, text)]
        assert memories[1] <= memories[0], "the text omits the memories of deeply nested modules"
        assert xml.budget_ns is not None
        assert xml.estimated_ns is not None


@cases("repository", ["zanehpn+HLStrans", LABS])
def test_schedules_add_up_to_the_period_of_their_module(repository: str, tmp_path: Path) -> None:
    """Compare the longest path of each schedule with the period that csynth.xml estimates after binding.

    The path is not longer than the period, and its steps add up to the path. Both are equal in four fifths of the
    pipelines; in the others, binding added multiplexers.
    """
    reports = clone(repository, tmp_path)
    schedules = set(reports.names(".verbose.sched.rpt"))
    equal: list[bool] = []
    for name in reports.names("/syn/report/csynth.xml"):
        for module in read_synthesis_xml(reports.file(name)).modules:
            schedule = f"{name.removesuffix('/syn/report/csynth.xml')}/.autopilot/db/{module.name}.verbose.sched.rpt"
            path = read_schedule(reports.file(schedule)) if schedule in schedules else None
            if path is not None and module.estimated_ns is not None and "_Pipeline_" in module.name:
                assert path.ns <= module.estimated_ns + 0.011, schedule
                assert sum(step.ns for step in path.steps) == pytest.approx(path.ns, abs=0.03), schedule
                equal.append(path.ns > module.estimated_ns - 0.011)
    assert sum(equal) >= 0.8 * len(equal) >= 8


def test_logs_give_the_causes_of_missed_intervals(tmp_path: Path) -> None:
    reports = clone("zanehpn+HLStrans", tmp_path)
    explained = 0
    for name in reports.names("/solution1/syn/report/csynth.xml")[:MOST]:
        synthesis = read_synthesis_xml(reports.file(name))
        log = f"{name.removesuffix('/syn/report/csynth.xml')}/solution1.log"
        causes = {(cause.module, cause.loop) for cause in read_log(reports.file(log))}
        loops = {(loop.module, loop.name): loop.ii for loop in synthesis.loops}
        assert causes <= set(loops)
        assert all((loops[place] or 0) > 1 for place in causes)
        explained += len(causes)
    assert explained


def test_implementation_reports_of_2025_agree(tmp_path: Path) -> None:
    """Compare Vivado's summary, hierarchy and timing with the report of export_design about the same run."""
    reports = clone(LABS, tmp_path)
    names = reports.names("/impl_1/bd_0_wrapper_utilization_placed.rpt")
    assert len(names) >= 5
    for name in names:
        run, project = name.rpartition("/")[0], name.partition("/impl/")[0]
        placed = read_utilisation(reports.file(name))
        path = reports.file(f"{project}/impl/verilog/report/top_kernel_utilization_hierarchical_routed.rpt")
        whole = read_hierarchy(path, "bd_0_wrapper")
        assert whole is not None
        for kind in ("lut", "ff", "dsp", "bram36", "lutram"):
            assert placed.counts.count(kind) == whole.counts.count(kind), (name, kind)
        timing = read_timing(reports.file(f"{run}/bd_0_wrapper_timing_summary_routed.rpt"))
        exported = reports.file(f"{project}/impl/report/verilog/export_impl.xml").read_text()
        assert f"<WNS_FINAL>{timing.wns_ns:.3f}</WNS_FINAL>" in exported
        assert f"<CP_FINAL>{timing.clocks[0].period_ns - timing.wns_ns:.3f}</CP_FINAL>" in exported


def test_implementation_reports_of_2023_are_read(tmp_path: Path) -> None:
    reports = clone("ssfortynine+GraduationDesign", tmp_path)
    (name,) = reports.names("impl_1/design_1_wrapper_timing_summary_routed.rpt")
    timing = read_timing(reports.file(name))
    assert (timing.version, timing.failing, timing.clocks[0].name) == ("2023.1", 0, "clk_pl_0")
    (name,) = reports.names("impl_1/design_1_wrapper_utilization_placed.rpt")
    placed = read_utilisation(reports.file(name))
    assert placed.available.dsp == 1248
    assert all(placed.counts.count(kind) is not None for kind in ("lut", "ff", "bram36", "dsp", "lutram"))


def test_cosimulation_reports_give_the_status(tmp_path: Path) -> None:
    passed = clone(LABS, tmp_path)
    facts = [read_cosimulation(passed.file(name)) for name in passed.names("_cosim.rpt")]
    assert {fact.status for fact in facts} == {"Pass"}
    assert all(fact.total and fact.latency == fact.total for fact in facts)
    failed = clone("terenceza+AccelAutoencoderOnFPGA", tmp_path)
    (name,) = failed.names("_cosim.rpt")
    assert read_cosimulation(failed.file(name)).status == "Fail"
