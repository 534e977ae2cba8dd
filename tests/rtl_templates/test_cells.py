"""The names of cells in constraints, compared with the cells that slang elaborates."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from systolic.execution.verilate import modules
from systolic.files import write
from tests.support.arrays.joins import NETWORKS
from tests.support.rtl.engines import ARRAYS, FIRST, SIX, design_of

pytest.importorskip("pyslang", reason="the second front-end is slang: pip install 'systolic-cnn[proof]'")

pytestmark = pytest.mark.proof

DESIGNS = {
    name: replace(array, dsp="DSP48E2")
    for name, array in {
        **{f"{bits} bits": array for bits, array in ARRAYS.items()},
        "six products": SIX,
        "doubled": replace(ARRAYS[8], columns=8, dsp_clock=2),
    }.items()
}

PROGRAM = """
import sys
from pyslang.ast import SymbolKind
from pyslang.driver import Driver
driver = Driver()
driver.addStandardArgs()
assert driver.parseCommandLine(" ".join(sys.argv)) and driver.processOptions() and driver.parseAllSources()
def instances(symbol):
    if symbol.kind == SymbolKind.Instance:
        print(symbol.definition.name, symbol.hierarchicalPath)
driver.createCompilation().getRoot().visit(instances)
"""


def dsps(folder: Path) -> list[str]:
    """Return the cells of all DSP48E2 as Vivado names them: '/' between instances, '.' between generate blocks."""
    instances = instances_of(folder)
    return [cell(path, instances) for path, kind in instances.items() if kind == "DSP48E2"]


def instances_of(folder: Path) -> dict[str, str]:
    """Return the module of every instance below the wrapper, by its path."""
    paths = [*modules(folder), folder / "src/systolic_top_ip.v"]
    command = [sys.executable, "-c", PROGRAM, "--top", "systolic_top_ip", *map(str, paths)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return {path: kind for kind, path in map(str.split, done.stdout.splitlines())}


def cell(path: str, instances: Collection[str]) -> str:
    """Return Vivado's name of an instance in the wrapper, from its path and the paths of all instances."""
    words = path.split(".")
    ends = [n for n in range(1, len(words) + 1) if ".".join(words[:n]) in instances]
    return "/".join(".".join(words[start:end]) for start, end in pairwise(ends))


@pytest.mark.parametrize("name", DESIGNS)
def test_chain_cells_hold_all_dsps_of_the_array(tmp_path: Path, name: str) -> None:
    array = DESIGNS[name]
    network = FIRST if array.bits == 8 else NETWORKS["late"](array.bits)
    files = design_of(network, array)
    write(files, tmp_path / "design")
    assert "floorplan.xdc" in files.files
    text = (tmp_path / "design/floorplan.xdc").read_text()
    cells = re.findall(r"^    \{system_i/systolic_top_0/inst/(\S+)\}", text, re.MULTILINE)
    assert len(set(cells)) == len(cells)
    holding = Counter(cell for path in dsps(tmp_path / "design") for cell in cells if path.startswith(f"{cell}/"))
    assert set(holding) == set(cells)
    assert set(holding.values()) == {array.mac_dsps // len(cells)}
    assert sum(holding.values()) == array.mac_dsps


def test_argument_cells_are_all_registers_that_the_host_writes(tmp_path: Path) -> None:
    write(design_of(FIRST, DESIGNS["8 bits"]), tmp_path / "design")
    text = (tmp_path / "design/timing.xdc").read_text()
    cells = re.findall(r"^    \{top/control/(\w+)_reg\[\*\]\}", text, re.MULTILINE)
    assert "systolic_top_ip.top.control" in instances_of(tmp_path / "design")
    module = (tmp_path / "design/src/control_slave.sv").read_text()
    stored = re.findall(r"\) (\w+)(?:\[[\d:]+\])? <= merged\(", module)
    assert set(cells) == set(stored)
    assert len(set(cells)) == len(cells)
