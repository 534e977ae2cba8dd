"""Readers of vendor reports: the values that each returns, and the refusal of damaged files."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from boards.errors import DamagedFileError, FileAccessError
from systolic.vendor.reading import text as text_module
from systolic.vendor.reading.cosimulation import read_cosimulation
from systolic.vendor.reading.facts import CoSimulation, LoopFact, Resources, Step, StorageFact
from systolic.vendor.reading.log import read_log
from systolic.vendor.reading.reports import read_reports
from systolic.vendor.reading.schedule import read_schedule
from systolic.vendor.reading.synthesis_text import read_synthesis_text
from systolic.vendor.reading.synthesis_xml import read_synthesis_xml
from systolic.vendor.reading.text import number
from systolic.vendor.reading.vivado import read_hierarchy, read_timing, read_utilisation
from tests.support.cases import cases
from tests.support.errors import raises
from tests.support.vendor import texts
from tests.support.vendor.texts import Loop, Module, Run

RUN = Run(
    "top",
    "xc7z020clg400-1",
    10.0,
    (
        Module("feed_phase", (Loop("VITIS_LOOP_62_1", 2, 5, "src/feed.h:62"),), (), 3.25),
        Module("top", (Loop("VITIS_LOOP_9_1", None, 70),), (texts.storage("top_rows_3", "uram", 0, 2),)),
    ),
    estimated_ns=3.25,
)


def written(folder: Path, text: str, name: str = "report") -> Path:
    path = folder / name
    path.write_text(text)
    return path


# ------------------------------------------------------------------------------------------- Vitis HLS


def test_read_synthesis_xml_gives_all_facts(tmp_path: Path) -> None:
    synthesis = read_synthesis_xml(texts.write_run(tmp_path, RUN))
    assert (synthesis.version, synthesis.top, synthesis.part) == ("2023.2", "top", "xc7z020clg400-1")
    assert (synthesis.target_ns, synthesis.uncertainty_ns, synthesis.estimated_ns) == (10.0, 2.7, 3.25)
    assert synthesis.budget_ns == pytest.approx(7.3)
    assert synthesis.resources == Resources(lut=30000, ff=9000, dsp=200, bram18=40, uram=0)
    assert synthesis.resources.count("bram36") == 20
    assert synthesis.available.dsp == 220
    assert synthesis.loops == (
        LoopFact("VITIS_LOOP_62_1", "feed_phase", 2, 5, "src/feed.h:62"),
        LoopFact("VITIS_LOOP_9_1", "top", None, 70),
    )
    assert [module.estimated_ns for module in synthesis.modules] == [3.25, 2.0]
    assert synthesis.storages == (StorageFact("top", "top_rows_3", "ram_s2p", "uram", 0, 2),)
    assert synthesis.latency is None, "the report has undef, because the latency depends on the data"


def test_read_synthesis_xml_reads_nested_loops(tmp_path: Path) -> None:
    inner = "<inner><Name>inner</Name><PipelineII>1</PipelineII><PipelineDepth>3</PipelineDepth></inner>"
    text = texts.csynth_xml(RUN).replace("<PipelineType>no</PipelineType></VITIS", f"{inner}</VITIS")
    loops = read_synthesis_xml(written(tmp_path, text)).loops
    assert [(loop.name, loop.ii) for loop in loops] == [("VITIS_LOOP_62_1", 2), ("VITIS_LOOP_9_1", None), ("inner", 1)]


def test_read_synthesis_xml_lists_refused_directives(tmp_path: Path) -> None:
    pragmas = (
        '<Pragma type="pipeline" location="src/feed.h:63" status="valid" options="II=1"/>'
        '<Pragma type="allocation" location="src/top.cpp:9" status="invalid" options="function">'
        "no such function</Pragma>"
    )
    run = Run(RUN.top, RUN.part, RUN.target_ns, RUN.modules, pragmas=pragmas)
    refused = read_synthesis_xml(texts.write_run(tmp_path, run)).refused
    assert [str(pragma) for pragma in refused] == ["src/top.cpp:9: allocation function (no such function)"]


def test_read_synthesis_text_gives_all_facts(tmp_path: Path) -> None:
    synthesis = read_synthesis_text(written(tmp_path, texts.SUMMARY))
    assert (synthesis.version, synthesis.top, synthesis.part) == ("2024.2", "top", "xc7z020clg400-1")
    assert (synthesis.latency, synthesis.interval) == (6643, 6644)
    assert synthesis.resources == Resources(lut=30501, ff=35932, dsp=320, bram18=4, uram=0)
    assert synthesis.loops == (
        LoopFact("VITIS_LOOP_9_1", "top", None, 70),
        LoopFact("VITIS_LOOP_62_1", "feed_phase", 2, 5),
    )
    assert synthesis.storages == (
        StorageFact("top", "rows_3", "ram_s2p", "uram", 0, 2),
        StorageFact("top", "out", "fifo", "bram", 4, 0),
    )
    assert synthesis.budget_ns is None


def test_read_schedule_gives_the_longest_path(tmp_path: Path) -> None:
    path = read_schedule(written(tmp_path, texts.SCHEDULE.format(module="feed"), "feed.verbose.sched.rpt"))
    assert path is not None
    assert (path.module, path.ns) == ("feed", 4.01)
    assert path.steps == (
        Step("icmp", "feed.h:70", 0.859),
        Step("select", "feed.h:71", 0.243),
        Step("control", "", 0.605),
        Step("add", "feed.h:72", 2.303),
    )
    assert read_schedule(written(tmp_path, "nothing of the kind\n", "x.verbose.sched.rpt")) is None


def test_read_schedule_skips_states_without_a_number(tmp_path: Path) -> None:
    lines = "<State 1>: 1.2.3 ns\n\tx (1.0 ns)\n\n<State 2>: 2.5 ns\n\tadd (1.2.3 ns)\n\tsub (2.5 ns)\n"
    path = read_schedule(written(tmp_path, lines, "x.verbose.sched.rpt"))
    assert path is not None
    assert (path.ns, [step.ns for step in path.steps]) == (2.5, [2.5])


def test_lines_of_cuts_long_lines(tmp_path: Path) -> None:
    path = written(tmp_path, "x" * (3 * text_module.MAX_LINE_LENGTH) + "\nsecond\nthird")
    assert list(text_module.lines_of(path)) == ["x" * text_module.MAX_LINE_LENGTH, "second\n", "third"]


def test_read_log_gives_the_cause_of_a_missed_ii(tmp_path: Path) -> None:
    (violation,) = read_log(written(tmp_path, texts.LOG.format(module="feed_phase", loop="VITIS_LOOP_62_1")))
    assert (violation.module, violation.loop) == ("feed_phase", "VITIS_LOOP_62_1")
    assert violation.cause.startswith(
        "Unable to schedule 'store' operation ('buffer_write', feed.h:32) on array 'buffer'"
    )
    assert "/home/user" not in violation.cause


@cases(
    "text, fact",
    [
        (texts.cosim("Pass", 1200), CoSimulation("Pass", 600, None, 1200)),
        (texts.cosim("Fail", "NA"), CoSimulation("Fail", None, None, None)),
    ],
)
def test_read_cosimulation_gives_status_and_cycles(tmp_path: Path, text: str, fact: CoSimulation) -> None:
    assert read_cosimulation(written(tmp_path, text)) == fact


# ---------------------------------------------------------------------------------------------- Vivado


def test_read_utilisation_gives_counts_and_limits(tmp_path: Path) -> None:
    used = read_utilisation(written(tmp_path, texts.UTILISATION))
    assert (used.version, used.part, used.state) == ("2023.2", "xc7z020clg400-1", "Routed")
    assert used.counts == Resources(lut=23000, ff=30100, dsp=208, bram18=59, uram=None, lutram=4600)
    assert used.available == Resources(lut=53200, ff=106400, dsp=220, bram18=280, uram=None, lutram=17400)


def test_read_utilisation_of_ultrascale_finds_its_luts(tmp_path: Path) -> None:
    text = texts.UTILISATION.replace("Slice LUTs ", "CLB LUTs*  ").replace("Slice Registers", "CLB Registers  ")
    assert read_utilisation(written(tmp_path, text)).counts.lut == 23000


def test_read_hierarchy_gives_the_accelerator_alone(tmp_path: Path) -> None:
    path = written(tmp_path, texts.HIERARCHY)
    accelerator = read_hierarchy(path, "systolic_top_0")
    assert accelerator is not None
    assert accelerator.counts == Resources(lut=20100, ff=27000, dsp=208, bram18=57, lutram=4100)
    assert read_hierarchy(path, "another_0") is None


def test_read_timing_gives_slacks_and_clocks(tmp_path: Path) -> None:
    timing = read_timing(written(tmp_path, texts.timing(-0.2, 0.011, 3.333)))
    assert (timing.wns_ns, timing.whs_ns, timing.failing) == (-0.2, 0.011, 7)
    assert [(clock.name, clock.period_ns, clock.wns_ns) for clock in timing.clocks] == [("clk_fpga_0", 3.333, -0.2)]


# --------------------------------------------------------------------------------------- damaged files

READERS: list[tuple[Callable[[Path], object], str, str]] = [
    (read_synthesis_xml, "<a/>", "is not a csynth.xml of Vitis HLS"),
    (read_synthesis_xml, "<profile><UserAssignments>", "is not XML"),
    (read_synthesis_text, "hello", "is not a csynth.rpt of Vitis HLS"),
    (read_cosimulation, "hello", "has no line Verilog or VHDL with a status"),
    (read_utilisation, "hello", "has no table of site types"),
    (lambda path: read_hierarchy(path, "a"), "hello", "has no table of instances"),
    (
        read_timing,
        "| Design Timing Summary\n| ---\n\n   ---- ----\n  NA NA\n",
        "has no Design Timing Summary with slacks",
    ),
]


def test_readers_of_a_file_without_a_report_give_the_reason(tmp_path: Path) -> None:
    for reader, text, reason in READERS:
        path = written(tmp_path, text)
        with raises(DamagedFileError, path=str(path)) as caught:
            reader(path)
        assert caught.value.reason.startswith(reason), caught.value.reason


def test_readers_of_an_unreadable_file_refuse_it(tmp_path: Path) -> None:
    for reader in [reader for reader, _, _ in READERS] + [read_schedule, read_log]:
        with raises(FileAccessError, path=str(tmp_path), remedy="copy the whole folder of reports"):
            reader(tmp_path)


def test_read_synthesis_xml_refuses_entities(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;&b;">]><profile>&c;</profile>'
    with raises(DamagedFileError, reason="has a DOCTYPE or an entity, which no report of Vitis HLS has"):
        read_synthesis_xml(written(tmp_path, bomb))
    hidden = bomb.replace("<!DOCTYPE a [", "").encode("utf-16")
    (tmp_path / "utf16").write_bytes(b'<?xml version="1.0" encoding="utf-16"?>' + hidden)
    with raises(DamagedFileError, path=str(tmp_path / "utf16")):
        read_synthesis_xml(tmp_path / "utf16")


def test_readers_refuse_a_large_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, "x" * 1001)
    with raises(FileAccessError, path=str(path), reason="has more than 1,000 bytes, which no report has"):
        text_module.read_text(path, 1000)
    assert len(text_module.read_text(path, 1001)) == 1001
    monkeypatch.setattr(text_module, "MAX_REPORT_BYTES", 1000)
    for reader in (read_log, read_schedule):
        with raises(FileAccessError, path=str(path), reason="has more than 1,000 bytes, which no report has"):
            reader(path)


def test_read_synthesis_xml_limits_the_elements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit the number of XML elements, because a parsed element takes a hundred times its bytes in memory."""
    monkeypatch.setattr(text_module, "MAX_ELEMENTS", 10)
    path = written(tmp_path, f"<profile>{'<b/>' * 20}</profile>")
    with raises(DamagedFileError, path=str(path), reason="has more than 10 elements, which no report has"):
        read_synthesis_xml(path)


@cases(
    "text, value",
    [
        ("320 (3%)", 320),
        ("~0", 0),
        ("7.30 ns", 7.3),
        ("-", None),
        ("undef", None),
        ("NA", None),
        ("", None),
        ("1e999", None),
        ("1e308", None),
    ],
)
def test_number_of_a_cell_is_a_value_or_none(text: str, value: float | None) -> None:
    assert number(text) == value


TEXTS = [
    (read_synthesis_xml, texts.csynth_xml(RUN)),
    (read_synthesis_text, texts.SUMMARY),
    (read_cosimulation, texts.cosim()),
    (read_utilisation, texts.UTILISATION),
    (lambda path: read_hierarchy(path, "systolic_top_0"), texts.HIERARCHY),
    (read_timing, texts.timing()),
    (read_schedule, texts.SCHEDULE),
    (read_log, texts.LOG),
]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_readers_of_changed_reports_give_a_value_or_refuse(tmp_path: Path, data: st.DataObject) -> None:
    """Remove, double or replace parts of a report: its reader returns a value or raises DamagedFileError."""
    reader, text = data.draw(st.sampled_from(TEXTS))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = start + data.draw(st.integers(0, 60))
        text = (
            text[:start]
            + data.draw(st.sampled_from(["", text[start:end] * 2, "|", "NA", "-", "9" * 400, "\n"]))
            + text[end:]
        )
    path = tmp_path / "report"
    path.write_text(text)
    with contextlib.suppress(DamagedFileError):
        reader(path)


# ---------------------------------------------------------------------------------------------- places


def test_read_reports_of_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with raises(FileAccessError, path=str(tmp_path), reason="contains no report of Vitis HLS or Vivado"):
        read_reports(tmp_path, "top_0")
    with raises(FileAccessError, path=str(tmp_path / "none"), reason="is not a folder"):
        read_reports(tmp_path / "none", "top_0")


def test_read_reports_finds_reports_of_other_projects(tmp_path: Path) -> None:
    """Find reports below folders with other project and solution names, but not below kernels."""
    project = tmp_path / "proj/solution1/syn/report"
    project.mkdir(parents=True)
    (project / "csynth.rpt").write_text(texts.SUMMARY)
    runs = tmp_path / "project/project.runs/impl_1"
    runs.mkdir(parents=True)
    (runs / "system_wrapper_utilization_placed.rpt").write_text(texts.UTILISATION)
    (runs / "system_wrapper_timing_summary_routed.rpt").write_text(texts.timing())
    texts.write_run(tmp_path / "kernels/feed", RUN)
    reports = read_reports(tmp_path, "top_0")
    assert set(reports.paths) == {"csynth.rpt", "utilisation", "timing"}
    assert reports.versions == ("2024.2", "2023.2")
    assert reports.accelerator is None
