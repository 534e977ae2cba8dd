"""Test the files that a generated streaming folder has for the vendor's tools and the host, and run its test bench."""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest

from host.contract.manifest import read_manifest
from host.simulated.pace import pace
from systolic.designs import design
from systolic.execution.build import build
from systolic.execution.frames import save_cycles
from systolic.loading import load_model
from systolic.model import sample_pictures
from systolic.package import package
from systolic.styles.streaming.measure import StreamingReport
from tests.support.host.manifests import manifest_fields

pytest.importorskip("ortools", reason="exact folding needs OR-tools: pip install -e '.[solver]'")

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a design of the built-in network "shapes" with the weights of one layer in DDR."""
    folder = tmp_path_factory.mktemp("streaming") / "design"
    design(
        load_model("shapes"),
        "ultra96-v2",
        "streaming",
        calibrate=sample_pictures()[:2],
        fps=200,
        estimated_fifos=True,
        external=("conv7",),
        deadline=10,
    ).write(folder)
    return folder


@pytest.fixture(scope="module")
def compiled(folder: Path) -> Path:
    """Return the folder, with its test bench compiled as its README says."""
    command = re.search(r"`(g\+\+ [^`]*-o test_bench) && \./test_bench data`", (folder / "README.md").read_text())
    assert command
    words = command[1].replace("-O2", "-O1").split()
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return folder


def bench(folder: Path, data: Path) -> tuple[int, str]:
    """Run the compiled test bench on a data folder and return its status and output."""
    done = subprocess.run([str(folder / "test_bench"), str(data)], capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout


def test_streaming_bench_passes_on_expected_data(compiled: Path) -> None:
    folder = compiled
    manifest = manifest_fields(folder)
    sizes = [manifest[packet]["bytes"] for packet in ("packet_in", "packet_out")]
    assert bench(folder, folder / "data") == (0, f"PASS: {sizes[0]} bytes in, {sizes[1]} bytes out\n")


@pytest.mark.parametrize("name", ["in.bin", "weights_conv7.bin", "expected.bin"])
def test_streaming_bench_fails_on_changed_data(compiled: Path, tmp_path: Path, name: str) -> None:
    data = shutil.copytree(compiled / "data", tmp_path / "data")
    values = bytearray((data / name).read_bytes())
    values[: len(values) // 2] = bytes(value ^ 0x11 for value in values[: len(values) // 2])
    (data / name).write_bytes(bytes(values))
    rc, out = bench(compiled, data)
    assert rc == 1
    assert out.startswith("FAIL beat ")


def test_streaming_manifest_lists_every_file_of_the_host(folder: Path) -> None:
    manifest = manifest_fields(folder)
    named = [*manifest["images"], *manifest["check"].values()]
    assert [one["path"] for one in named] == ["data/weights_conv7.bin", "data/in.bin", "data/expected.bin"]
    assert all(zlib.crc32((folder / one["path"]).read_bytes()) == one["crc32"] for one in named)
    assert "m_axi_weights_conv7" in (folder / "systolic.hwh").read_text()
    assert "streaming_top_0/m_axi_weights_conv7" in (folder / "build_vivado.tcl").read_text()


def test_streaming_scripts_name_existing_files(folder: Path) -> None:
    text = (folder / "run_hls.tcl").read_text()
    units = re.findall(r"add_files .*\$here/(\S+)", text)
    assert units == ["src/top.cpp", "test_bench.cpp"]
    assert all((folder / unit).is_file() for unit in units)
    assert re.findall(r"-I\$here/(\w+)", text) == ["src"]


def test_traced_cycles_set_the_pace_of_the_simulated_board(folder: Path) -> None:
    manifest = read_manifest(folder)
    modelled = pace(folder, manifest, 1.0)
    nothing: Any = None  # only the cycles of the report are kept
    report = StreamingReport(
        network="shapes",
        clock_mhz=manifest.clock_mhz,
        dsp=52,
        macs_per_cycle=104,
        layers=(),
        timing=nothing,
        interval=1_382_500,
        latency=2_000_000,
    )
    assert save_cycles(folder, report) == folder / "cycles.json"
    traced = pace(folder, manifest, 1.0)
    assert modelled is not None
    assert traced is not None
    assert (modelled.source, traced.source) == ("modelled", "traced")
    said = re.search(r"\| cycles per frame \| ([0-9,]+) \(slowest", (folder / "README.md").read_text())
    assert said
    assert modelled.pass_cycles == (int(said[1].replace(",", "")),)
    assert traced.pass_cycles == (report.cycles_per_frame,)
    assert traced.seconds(0, 1) == report.cycles_per_frame / (manifest.clock_mhz * 1e6)


def test_streaming_wheel_holds_the_files_of_the_host(folder: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(package(folder, tmp_path, simulation=build(folder))) as wheel:
        names = set(wheel.namelist())
    data = {f"systolic_shapes/data/{name}.bin" for name in ("in", "expected", "weights_conv7")}
    assert {"systolic_shapes/manifest.json", "systolic_shapes/shapes.hwh", "host/streaming/driver.py", *data} <= names
