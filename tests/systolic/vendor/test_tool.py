"""Vitis HLS replaced by a script that writes reports: its arguments, its progress, its failures, and kernels."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import systolic
from boards.errors import InvalidValueError, UnsupportedError
from systolic.execution.compiler import compiler
from systolic.vendor.claims import Claims, read_claims
from systolic.vendor.kernel import kernel_files, kernel_folder, write_kernel
from systolic.vendor.tool import synthesise
from tests.support.command_line import call, refused
from tests.support.detectors import tiny_files
from tests.support.errors import raises
from tests.support.tcl import run_tcl
from tests.support.vendor import texts
from tests.support.vendor.texts import Module, Run, as_claimed, design_folder, scheduled
from tests.support.vendor_types import vendor_types

STAND_IN = """#!{python}
import os, pathlib, shutil, sys, time
pathlib.Path({calls!r}).write_text("\\n".join([os.getcwd(), os.environ["SYSTOLIC_STEPS"], *sys.argv[1:]]))
print("INFO: [HLS 200-10] -- Implementing module 'feed_weights'", flush=True)
shutil.copytree({reports!r}, ".", dirs_exist_ok=True)
print({output!r}, flush=True)
if {sleeps}:
    child = os.fork()
    pathlib.Path({calls!r} + f".{{'child' if child == 0 else 'parent'}}").write_text(str(os.getpid()))
    time.sleep(600)
sys.exit({code})
"""


class Tool:
    """A script that replaces Vitis HLS, copies prepared reports and records its call.

    Attributes:
        bin: The folder on the PATH that holds the script.
        reports: The folder whose reports the script copies into its working directory.
    """

    def __init__(self, folder: Path) -> None:
        self.bin, self.reports, self._calls = folder / "bin", folder / "leaves", folder / "calls"
        self.bin.mkdir(parents=True)
        self.reports.mkdir()

    def install(self, name: str = "vitis_hls", code: int = 0, output: str = "", sleeps: bool = False) -> None:
        path = self.bin / name
        settings = {"calls": str(self._calls), "reports": str(self.reports), "output": output, "sleeps": sleeps}
        path.write_text(STAND_IN.format(python=sys.executable, code=code, **settings))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    @property
    def called(self) -> list[str]:
        """The working directory of the script's call, the value of SYSTOLIC_STEPS, and the arguments."""
        return self._calls.read_text().split("\n")

    def process(self, which: str) -> int | None:
        """Return the process id of the sleeping script (``parent``) or its fork (``child``), if it has started."""
        path = self._calls.with_name(f"calls.{which}")
        return int(path.read_text() or 0) or None if path.is_file() else None


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    """Return the script that replaces Vitis HLS, on a PATH without any other folder."""
    made = Tool(tmp_path / "tool")
    monkeypatch.setenv("PATH", str(made.bin))
    return made


# --------------------------------------------------------------------------------------------- running


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("vitis_hls", ["-f", "run_hls.tcl"]), ("vitis-run", ["--mode", "hls", "--tcl", "run_hls.tcl"])],
)
def test_vendor_csynth_runs_the_tool_and_compares(
    tool: Tool, design: Path, run: Run, name: str, arguments: list[str]
) -> None:
    texts.write_run(tool.reports, run)
    tool.install(name)
    done = call("vendor", design, "--csynth", "--json", "-")
    assert (done.code, done.error) == (0, "")
    assert tool.called == [str(design), "synth", *arguments]
    assert done.json["holds"] is True
    assert done.json["verdicts"]["as claimed"] >= len(done.json["loops"])
    assert "Implementing module" in (design / "hls.log").read_text()


def test_vendor_only_synthesises_one_function(tool: Tool, design: Path, claims: Claims) -> None:
    (loop,) = (loop for loop in claims.loops if loop.function == "feed_phase")
    run = Run("feed_weights_kernel", claims.part, 10.0, (Module("feed_phase", (scheduled(loop),)),))
    texts.write_run(tool.reports, run)
    tool.install()
    done = call("vendor", design, "--csynth", "--only", "feed_weights", "--json", "-")
    assert (done.code, done.error) == (0, "")
    assert tool.called[0] == str(design / "kernels/feed_weights")
    assert [(row["process"], row["achieved_ii"]) for row in done.json["loops"]] == [("feed_phase", 1)]
    assert all(row["claimed"] is None for row in done.json["resources"])
    again = call("vendor", design, "--only", "feed_weights", "--json", "-")
    assert again.json["loops"] == done.json["loops"]
    refused(call("vendor", design, "--json", "-"), "contains no report of Vitis HLS or Vivado")


def test_vendor_csynth_without_the_tool_says_how_to_run_it(tool: Tool, design: Path) -> None:
    sentence = r"vitis_hls .* or vitis-run .*--csynth.*settings64\.sh.*vitis_hls -f run_hls\.tcl in "
    refused(call("vendor", design, "--csynth"), sentence)
    refused(call("vendor", design, "--csynth", "--only", "feed_weights"), r"run_hls\.tcl in .*kernels/feed_weights")
    assert (design / "kernels/feed_weights/kernel.cpp").is_file(), (
        "the kernel is written, so that another machine can synthesise it"
    )


def test_vendor_csynth_of_a_failing_tool_quotes_its_errors(tool: Tool, design: Path) -> None:
    tool.install(code=3, output="ERROR: [HLS 207-3771] use of undeclared identifier 'x'\nINFO: bye")
    refused(
        call("vendor", design, "--csynth"),
        r"(?s)vitis_hls .*3.*ERROR: \[HLS 207-3771\] use of undeclared identifier 'x'.*\.log",
    )


def test_vendor_csynth_of_a_broken_tool_is_refused(tool: Tool, design: Path) -> None:
    (tool.bin / "vitis_hls").write_text("#!/no/such/interpreter\n")
    (tool.bin / "vitis_hls").chmod(0o755)
    refused(call("vendor", design, "--csynth"), r"vitis_hls.*No such file or directory")


def test_synthesise_reports_the_steps(tool: Tool, design: Path) -> None:
    tool.install()
    steps: list[str] = []
    synthesise(design, "run_hls.tcl", steps.append)
    assert steps == ["running vitis_hls", "Vitis HLS: Implementing module 'feed_weights'"]


def alive(process: int | None) -> bool:
    """Return whether the process is running; a zombie is not."""
    try:
        return process is not None and "Z" not in Path(f"/proc/{process}/stat").read_text().split(")")[1].split()[0]
    except OSError:
        return False


def until(condition: Callable[[], Any]) -> Any:
    for _ in range(600):
        if result := condition():
            return result
        time.sleep(0.05)
    raise AssertionError("the condition was not met within 30 s")


def test_vendor_csynth_stopped_by_a_signal_stops_the_tool(tool: Tool, design: Path) -> None:
    tool.install(sleeps=True)
    environment = {**os.environ, "PYTHONPATH": str(texts.ROOT)}
    command = [sys.executable, "-m", "systolic", "vendor", str(design), "--csynth"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as running:
        processes = [until(partial(tool.process, which)) for which in ("child", "parent")]
        assert all(map(alive, processes))
        running.send_signal(signal.SIGTERM)
        try:
            until(lambda: not any(map(alive, processes)))
            assert running.wait(60) == 128 + signal.SIGTERM
        finally:
            for process in filter(alive, processes):
                os.kill(process, signal.SIGKILL)


def test_vendor_with_conflicting_options_is_refused(design: Path) -> None:
    refused(call("vendor", design, "--csynth", "--reports", design), "--csynth and --reports")
    refused(call("vendor", design, "--only", "../x"), r"feed_weights.*'\.\./x'")


def test_vendor_reports_reads_another_folder(tmp_path: Path, design: Path, run: Run) -> None:
    texts.write_run(tmp_path / "copied", run)
    page = tmp_path / "vendor.html"
    done = call("vendor", design, "--reports", tmp_path / "copied", "--report", page)
    assert (done.code, done.error) == (0, "")
    assert done.out.rstrip().endswith("nothing is worse than claimed")
    assert "Achieved: reported by Vitis HLS" in page.read_text()


@pytest.mark.engine
def test_vendor_derived_has_values_of_every_loop(tmp_path: Path) -> None:
    """Give every loop derived values, because ``systolic check`` and the claims name the same lines."""
    pytest.importorskip("llvmlite", reason="the extra check is not installed")
    tiny_cfg, names = tiny_files(tmp_path)
    network = systolic.load(tiny_cfg, names=names, seed=1)
    design = systolic.design(network, board="pynq-z2", clock_mhz=100, calibrate=[systolic.samples()[0]])
    folder = design.write(tmp_path / "design").folder
    texts.write_run(folder, as_claimed(read_claims(folder)))
    report = systolic.open(folder).vendor(derived=True)
    rows = report.values()["loops"]
    assert len(rows) > 10
    assert all(row["derived_ii"] and row["derived_depth"] for row in rows)
    assert report.comparison.holds
    assert str(report) == report.text()
    report.save(tmp_path / "vendor.html")
    assert "<table>" in report._repr_html_()
    assert (tmp_path / "vendor.html").read_text() == report.page()


# --------------------------------------------------------------------------------------------- kernels


@pytest.mark.engine
@pytest.mark.parametrize("style", ["systolic", "streaming"])
def test_kernel_files_of_every_process_compile(tmp_path: Path, style: str) -> None:
    """Compile all kernels by g++ with the vendor's own types, except ``hls::burst_maxi``, which the simulation has."""
    design = design_folder(tmp_path / "design", style)
    claims = read_claims(design)
    for header in (texts.ROOT / "hls_templates/simulation").glob("hls_burst_maxi.h"):
        shutil.copy(header, design / "simulation")
    names = [f.name for f in claims.sources.functions if f.process and f.name in claims.sources.reached(claims.top)]
    assert len(names) >= 8
    lines = []
    for name in names:
        source = kernel_files(name, claims)["kernel.cpp"]
        assert f"void {name}_kernel(" in source
        lines += [line for line in source.split("\n") if line and not line.startswith(("#include", "//"))]
    unit = design / "kernels.cpp"
    unit.write_text('#include "top.cpp"\n' + "\n".join(lines) + "\n")
    command = [compiler(), "-std=c++14", "-fsyntax-only", "-w", "-DSYSTOLIC_AP_INT", f"-I{design / 'src'}"]
    command += [f"-I{vendor_types()}", f"-I{texts.ROOT / 'hls_templates/simulation'}"]
    done = subprocess.run([*command, str(unit)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]


def test_kernel_files_partition_memories_like_the_design(claims: Claims) -> None:
    source = kernel_files("load", claims)["kernel.cpp"]
    assert "#pragma HLS ARRAY_PARTITION variable=from complete dim = 2\n" in source
    design = claims.sources.texts["top.cpp"].replace("from,", "buffer,")
    design += "\n#pragma HLS ARRAY_PARTITION variable=map_buffer_1 cyclic factor=2 dim=1\n"
    sources = replace(claims.sources, texts={**claims.sources.texts, "top.cpp": design})
    source = kernel_files("load", replace(claims, sources=sources))["kernel.cpp"]
    lines = [line for line in source.split("\n") if "PARTITION" in line]
    assert len(lines) == 2, "both directives of the array that has the type, none of another buffer"
    source = kernel_files("read_rows", claims)["kernel.cpp"]
    assert "#pragma HLS INTERFACE mode=m_axi port=maps bundle=maps offset=slave latency=64\n" in source
    assert "    read_rows<0>(pass, maps, rows);\n" in source


def test_kernel_script_sets_the_function_as_top(tmp_path: Path, claims: Claims) -> None:
    folder = tmp_path / "design/kernels/feed_weights"
    ran = run_tcl(folder, "run_hls.tcl", kernel_files("feed_weights", claims)["run_hls.tcl"])
    assert ran.rc == 0, ran.out
    assert ran.one("set_top") == ["feed_weights_kernel"]
    assert ran.one("set_part") == [claims.part]
    assert ran.one("create_clock") == ["-period", "10.000000", "-name", "clock"]
    flags = f"-std=c++14 -DSYSTOLIC_AP_INT -I{tmp_path}/design/src"
    assert ran.one("add_files") == ["-cflags", flags, f"{folder}/kernel.cpp"]
    assert [call[0] for call in ran.calls][-2:] == ["csynth_design", "close_project"]
    failed = run_tcl(
        folder, "run_hls.tcl", kernel_files("feed_weights", claims)["run_hls.tcl"], STUB_FAIL="csynth_design"
    )
    assert (failed.rc, "run_hls.tcl: csynth_design failed" in failed.out) == (1, True)


def test_kernel_files_of_an_open_template_are_refused(claims: Claims) -> None:
    with raises(UnsupportedError, subject="the function multiply_unit alone", remedy="name a function that calls it"):
        kernel_files("multiply_unit", claims)
    with raises(InvalidValueError, what="--only", got="../x"):
        kernel_folder(Path(), "../x")


def test_write_kernel_takes_the_process_name_of_traces(design: Path, claims: Claims) -> None:
    folder = write_kernel(design, "first", claims)
    assert "first_process(frames, in, out);" in (folder / "kernel.cpp").read_text()
