"""A second front-end, slang, reads every module with its warnings of conversions, in addition to Verilator's -Wall."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from scheduler.systolic.array import Array
from systolic.files import write
from tests.support.accelerators import GEOMETRIES
from tests.support.arrays.joins import NETWORKS
from tests.support.rtl.engines import ARRAYS, FIRST, design_of
from tests.support.rtl.slang import complaints

pytest.importorskip("pyslang", reason="the second front-end is slang: pip install 'systolic-cnn[proof]'")

pytestmark = pytest.mark.proof


DESIGNS: Mapping[str, Array] = {**{f"{bits} bits": array for bits, array in ARRAYS.items()}, **GEOMETRIES}


@pytest.mark.parametrize("name", DESIGNS)
def test_slang_of_generated_design_reports_nothing(tmp_path: Path, name: str) -> None:
    bits = DESIGNS[name].bits
    network = FIRST if bits == 8 else NETWORKS["late"](bits)
    write(design_of(network, DESIGNS[name]), tmp_path / "design")
    assert complaints(tmp_path / "design") == ""


@pytest.mark.parametrize(
    ("module", "right", "wrong", "told"),
    [
        ("axi_bursts", "8'(beats - 1)", "beats - 1", "width-trunc"),
        ("fifo", "assign pop = out_valid && out_ready", "assign pop = out_valid && take", "take"),
    ],
)
def test_slang_of_lossy_conversion_reports_it(tmp_path: Path, module: str, right: str, wrong: str, told: str) -> None:
    write(design_of(FIRST, ARRAYS[8]), tmp_path / "design")
    path = tmp_path / f"design/src/{module}.sv"
    assert right in path.read_text()
    path.write_text(path.read_text().replace(right, wrong))
    assert told in complaints(tmp_path / "design")
