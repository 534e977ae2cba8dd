"""Edits of one token, planted in a copy of the project: each changes the digest of the source that has it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.mutants.trial import Copy

CPP = {
    "hls_templates/common/instrument.h": ("#define SYSTOLIC_PIPELINE", "#define SYSTOLIC_PIPELINED"),
    "hls_templates/systolic/array/pe_array.h": ("+= a *", "-= a *"),
    "hls_templates/systolic/loader/load.h": ("r < ROWS", "r <= ROWS"),
    "hls_templates/systolic/saver/pool.h": ("more = true", "more = false"),
    "hls_templates/systolic/saver/requantise.h": ("++c", "--c"),
    "hls_templates/systolic/types.h": ("VALUE_BITS - 1", "VALUE_BITS - 2"),
    "hls_templates/streaming/arithmetic/dot.h": ("total0 = 0", "total0 = 1"),
    "hls_templates/streaming/compute/max_pool.h": ("1 << level", "2 << level"),
    "hls_templates/streaming/moving/window.h": ("KERNEL_W - 1", "KERNEL_W + 1"),
    "hls_templates/streaming/stream/gearbox.h": ("IN - 1", "IN - 0"),
}
SYSTEMVERILOG = {
    "rtl_templates/array/pe_array.sv": ("COLUMNS / 3", "COLUMNS / 2"),
    "rtl_templates/common/fifo.sv": ("'0", "'1"),
    "rtl_templates/loader/feed_weights.sv": ("step + 1", "step + 2"),
    "rtl_templates/saver/arrange.sv": ("group + 1", "group - 1"),
    "rtl_templates/saver/requantise_sum.sv": ("LATE_OFFSETS > 0", "LATE_OFFSETS > 1"),
}
TEMPLATES = {
    "hls_templates/templates/golden/golden.cpp.j2": ("(bytes + 1)", "(bytes + 2)"),
    "hls_templates/templates/streaming/top.cpp.j2": ("SYSTOLIC_DATAFLOW(0)", "SYSTOLIC_DATAFLOW(1)"),
    "hls_templates/templates/systolic/top.cpp.j2": ("SYSTOLIC_PIPELINE(1, 3)", "SYSTOLIC_PIPELINE(2, 3)"),
    "hls_templates/templates/vendor/build_vivado.tcl.j2": ("0.001 *", "0.002 *"),
    "rtl_templates/templates/systolic_geometry.sv.j2": ("shift[5:0]", "shift[4:0]"),
}
EDITS = {**CPP, **SYSTEMVERILOG, **TEMPLATES}
"""File of the project, text, text in its place."""


@pytest.mark.proof
def test_edited_token_changes_the_digest_of_its_source(tmp_path: Path) -> None:
    assert [len(CPP), len(SYSTEMVERILOG), len(TEMPLATES)] == [10, 5, 5]
    copy = Copy.of_project(tmp_path / "copy")
    for name, (before, after) in EDITS.items():
        text = (copy.root / name).read_text("utf-8")
        assert before in text, name
        (copy.root / name).write_text(text.replace(before, after, 1), "utf-8")
    command = [sys.executable, "-m", "tools.digests", "check", "--sources"]
    environment = {**os.environ, "PYTHONPATH": str(copy.root)}
    done = subprocess.run(command, cwd=copy.root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    differing = {Path(name).name for name in re.findall(r"^(\S+): differs in (?!comments)", done.stdout, re.MULTILINE)}
    assert differing == {Path(name.removesuffix(".j2")).name for name in EDITS}
