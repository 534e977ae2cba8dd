"""The constants of a pass are written to the column memories at one per cycle, for any number of columns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("ziglang", reason="the checker needs the compiler of the package ziglang")
pytest.importorskip("llvmlite", reason="the checker reads LLVM IR by llvmlite")

from hls_schedule.check import CheckedLoop, read_sources
from hls_templates.headers import fixed_files, include_folders
from hls_templates.systolic.sources import systolic_sources
from tests.support.engine_values import SMALL, values

TOP = """#include "requantise.h"
void top(pass_t pass, hls::burst_maxi<requantiser_t> constants, hls::stream<group_t> &in, hls::stream<results_t> &out) {
    requantise(pass, constants, in, out);
}
"""


def loops(columns: int, folder: Path) -> tuple[CheckedLoop, ...]:
    """Return the loops of ``requantise`` in an array of ``columns`` columns."""
    sources = systolic_sources(values(replace(SMALL, columns=columns, save_rows=1)))
    for name, text in {**fixed_files(*include_folders("systolic")), **sources, "top.cpp": TOP}.items():
        (folder / name).write_text(text)
    return read_sources(folder / "top.cpp").check(300)


@pytest.mark.engine
@pytest.mark.parametrize("columns", [16, 40, 64])
def test_column_constants_of_any_array_width_are_written_at_one_per_cycle(columns: int, tmp_path: Path) -> None:
    found = loops(columns, tmp_path)
    assert len(found) == 2
    for loop in found:
        assert loop.holds, (loop.source, loop.derived_ii, loop.path_ns)
        assert not loop.deeper, (loop.source, loop.derived_depth)
