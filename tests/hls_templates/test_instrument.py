"""The macros in each kind of build, and the native stream."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from hls_templates.headers import COMMON, SIMULATION
from tests.support.cases import cases
from tests.support.vendor_types import vendor_types

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "tests/hls_templates/kernels"
STRICT = ["g++", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", f"-I{COMMON}"]


def run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def body(source: str, tmp_path: Path, *options: str) -> str:
    """Return the source after expansion of the macros, without line markers and with single blanks."""
    path = tmp_path / "source.cpp"
    path.write_text(f'#include "instrument.h"\n===\n{source}\n')
    text = run(["g++", "-E", f"-I{COMMON}", f"-I{SIMULATION}", *options, str(path)])
    lines = text.rpartition("===")[2].splitlines()
    return " ".join(" ".join(line for line in lines if not re.match(r"# \d", line)).split())


@cases(
    "macro, pragma",
    [
        ("SYSTOLIC_DATAFLOW(3)", "#pragma HLS DATAFLOW"),
        ("SYSTOLIC_PIPELINE(2, 9)", "#pragma HLS PIPELINE II = 2"),
        ("SYSTOLIC_STREAM(rows, DEPTH)", "#pragma HLS STREAM variable = rows depth = 64"),
        (
            "SYSTOLIC_FIFO(rows, 128, DEPTH, srl)",
            "#pragma HLS STREAM variable = rows depth = 64 "
            "#pragma HLS BIND_STORAGE variable = rows type = fifo impl = srl",
        ),
        ('SYSTOLIC_PROCESS("load")', ""),
        ("SYSTOLIC_ENTER", ""),
        ("SYSTOLIC_FORWARD(below, weight)", "(below).write(weight)"),
        ("SYSTOLIC_SEQUENTIAL(4)", ""),
        ("SYSTOLIC_BURST_READ(0, a, n)", ""),
        ("SYSTOLIC_BURST_WRITE(0, a, n)", ""),
        ("SYSTOLIC_BURST_RESPONSE(0)", ""),
        ("x = SYSTOLIC_LOAD(1, words, i + 1)", "x = ((words)[i + 1])"),
        ("SYSTOLIC_STORE(1, words, i, pair{1, 2})", "((words)[i] = pair{1, 2})"),
    ],
)
def test_macro_for_synthesis_expands_to_its_pragma_alone(macro: str, pragma: str, tmp_path: Path) -> None:
    assert body(macro, tmp_path, "-D__SYNTHESIS__", "-DDEPTH=64") == pragma


@pytest.mark.engine
def test_native_stream_keeps_order_owners_and_names(tmp_path: Path) -> None:
    program = tmp_path / "streams"
    source = KERNELS / "streams.cpp"
    run(
        [
            *STRICT,
            "-std=c++17",
            "-O1",
            f"-I{SIMULATION}",
            "-fsanitize=address,undefined",
            "-o",
            str(program),
            str(source),
        ]
    )
    assert run([str(program)]) == ""


def test_native_build_has_no_symbol_of_the_recorder(tmp_path: Path) -> None:
    """Check that the object of a native build contains no symbol of the recorder, so that it does not trace."""
    built = tmp_path / "kernels.o"
    run([*STRICT, "-std=c++17", f"-I{SIMULATION}", "-c", "-o", str(built), str(KERNELS / "kernels.cpp")])
    assert "systolic5trace" not in run(["nm", str(built)])


@pytest.mark.engine
@pytest.mark.parametrize("standard", ["c++14", "c++17"])
def test_kernels_compile_with_the_genuine_stream(standard: str, tmp_path: Path) -> None:
    command = [*STRICT, f"-std={standard}", f"-isystem{vendor_types()}", "-c", "-o", str(tmp_path / "kernels.o")]
    run([*command, str(KERNELS / "kernels.cpp")])


@pytest.mark.engine
def test_synthesis_build_of_the_kernels_compiles_with_the_genuine_stream(tmp_path: Path) -> None:
    command = [*STRICT, "-std=c++14", "-D__SYNTHESIS__", "-Wno-unused-parameter", "-Wno-empty-body"]
    command += [f"-isystem{vendor_types()}", "-c", "-o", str(tmp_path / "kernels.o"), str(KERNELS / "kernels.cpp")]
    run(command)


def test_traced_build_refuses_the_genuine_stream(tmp_path: Path) -> None:
    (tmp_path / "hls_stream.h").write_text("namespace hls { template <typename T> class stream {}; }\n")
    (tmp_path / "traced.cpp").write_text('#include "instrument.h"\n')
    command = [*STRICT, "-DSYSTOLIC_TRACE", f"-I{tmp_path}", "-c", "-o", str(tmp_path / "x.o"), "traced.cpp"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode != 0
    assert "needs hls_templates/simulation/hls_stream.h first on the include path" in done.stderr
