"""Every loop of every streaming block reaches an II of 1 at 300 MHz, by the estimate from its code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("ziglang", reason="the checker needs the compiler of the package ziglang")
pytest.importorskip("llvmlite", reason="the checker reads LLVM IR by llvmlite")

from hls_schedule.check import CheckedLoop, read_sources
from hls_templates.headers import fixed_files, include_folders

BLOCKS = Path(__file__).with_name("kernels") / "blocks.cpp"
MHZ = 300

UNIT = """#include "matrix_vector.h"
static const requantise_t<4, false, 2, 3> BY = {{{1}}, {{1}}, {{1}}, {{1}}};
static const int_t<4>::carrier WEIGHTS[2][12][4] = {{{1, 2, 3}}};
void unit(int frames, hls::stream<word<uint_t<4>::carrier, 4>> &in, hls::stream<word<integer<4, false>, 2>> &out) {
    matrix_vector<320, 16, 6, 4, 2, 1, int_t<4>, uint_t<4>, 14, DSP48E2>(frames, in, out, WEIGHTS, BY);
}
"""
CONVERTER = """#include "width.h"
void convert(int frames, hls::stream<word<ap_int<4>, 6>> &in, hls::stream<word<ap_int<4>, 4>> &out) {
    convert_width<6, 4, 400>(frames, in, out);
}
"""


def check(
    folder: Path, header: str = "", right: str = "", wrong: str = "", blocks: str = ""
) -> tuple[CheckedLoop, ...]:
    """Check the loops of all blocks, with ``right`` replaced by ``wrong`` in a header."""
    for name, text in fixed_files(*include_folders("streaming")).items():
        (folder / name).write_text(text.replace(right, wrong) if name == header else text)
        assert name != header or right in text
    (folder / "top.cpp").write_text(blocks or BLOCKS.read_text("utf-8"), "utf-8")
    return read_sources(folder / "top.cpp").check(MHZ)


@pytest.mark.engine
def test_streaming_loops_reach_their_declared_interval_and_depth(tmp_path: Path) -> None:
    loops = check(tmp_path)
    assert len(loops) >= 132
    slow = [loop for loop in loops if loop.path_ns > loop.budget_ns or loop.derived_ii > loop.declared_ii]
    assert [(loop.process, loop.source, loop.path_ns, loop.reason) for loop in slow] == []
    deep = [loop for loop in loops if loop.derived_depth > loop.declared_depth]
    assert [(loop.process, loop.source, loop.declared_depth, loop.derived_depth) for loop in deep] == []


def test_carried_path_sources_cover_every_documented_block(tmp_path: Path) -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "reference" / "streaming_blocks.md").read_text("utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    blocks = {name for row in rows for name in re.findall(r"`(\w+)`", row) if not name.endswith("_op")}
    assert len(blocks) >= 26
    assert [name for name in sorted(blocks) if f" {name}<" not in BLOCKS.read_text("utf-8")] == []


def test_check_finds_a_declared_depth_that_is_too_small(tmp_path: Path) -> None:
    (loop,) = check(tmp_path, "fold.h", "LEAST_UNIT_DEPTH = 32;", "LEAST_UNIT_DEPTH = 8;", UNIT)
    assert loop.derived_depth > loop.declared_depth == 8


def test_check_finds_a_sum_that_is_compared_in_its_own_cycle(tmp_path: Path) -> None:
    sum_of_ones = "int units = 0; for (int u = 0; u < ROOM; ++u) units += full[u]; return units < OUT;"
    (loop,) = check(tmp_path, "gearbox.h", "return !full[OUT - 1];", sum_of_ones, CONVERTER)
    assert loop.path_ns > loop.budget_ns
    assert any(step.source.startswith("gearbox.h") for step in loop.path)
