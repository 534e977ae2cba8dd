"""Every loop of every streaming block reaches its interval of 1 at 300 MHz, as far as its code tells."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest.importorskip("ziglang", reason="the checker needs the compiler of the package ziglang")
pytest.importorskip("llvmlite", reason="the checker reads LLVM IR by llvmlite")

from hls_schedule.check import CheckedLoop, read_sources
from hls_templates.headers import fixed_files, include_folders

BLOCKS = Path(__file__).with_name("kernels") / "blocks.cpp"
MHZ = 300


def check(folder: Path, header: str = "", right: str = "", wrong: str = "") -> tuple[CheckedLoop, ...]:
    """The loops of all blocks, with ``wrong`` in the place of ``right`` in a header."""
    for name, text in fixed_files(*include_folders("streaming")).items():
        (folder / name).write_text(text.replace(right, wrong) if name == header else text)
        assert name != header or right in text
    shutil.copy(BLOCKS, folder / "top.cpp")
    return read_sources(folder / "top.cpp").check(MHZ)


def test_no_loop_waits_for_itself_longer_than_a_cycle(tmp_path: Path) -> None:
    loops = check(tmp_path)
    assert len(loops) >= 49
    slow = [loop for loop in loops if loop.path_ns > loop.budget_ns or loop.derived_ii > loop.declared_ii]
    assert [(loop.process, loop.source, loop.path_ns, loop.reason) for loop in slow] == []
    deep = [loop for loop in loops if loop.derived_depth > loop.declared_depth]
    assert [(loop.process, loop.source, loop.declared_depth, loop.derived_depth) for loop in deep] == []


def test_a_depth_that_is_declared_too_small_is_found(tmp_path: Path) -> None:
    loops = check(tmp_path, "fold.h", "LEAST_UNIT_DEPTH = 32;", "LEAST_UNIT_DEPTH = 8;")
    assert "mvu_requantise_block" in {loop.process for loop in loops if loop.derived_depth > loop.declared_depth}


def test_a_sum_that_is_compared_in_its_own_cycle_is_found(tmp_path: Path) -> None:
    right, wrong = "less && (more ? !enough : hungry);", "less && units + (more ? IN : 0) < OUT;"
    slow = [loop for loop in check(tmp_path, "gearbox.h", right, wrong) if loop.path_ns > loop.budget_ns]
    assert "convert_width_block" in {loop.process for loop in slow}
    assert all(any(step.source.startswith("gearbox.h") for step in loop.path) for loop in slow)
