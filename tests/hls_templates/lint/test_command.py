"""The linter's command: findings, exit codes, rules and their examples."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hls_templates.lint.__main__ import main
from tests.support.lint_designs import DESIGN, TYPES

ROOT = Path(__file__).parents[3]


def test_lint_command_with_a_finding_prints_it_and_exits_with_1(tmp_path: Path) -> None:
    (tmp_path / "top.cpp").write_text(DESIGN.replace("HLS UNROLL", "HLS UNROL"))
    (tmp_path / "types.h").write_text(TYPES)
    command = [
        sys.executable,
        "-m",
        "hls_templates.lint",
        str(tmp_path / "top.cpp"),
        str(tmp_path / "types.h"),
    ]
    done = subprocess.run([*command, "--top", "accelerate"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.startswith("top.cpp:8: unknown-directive: ")


def test_lint_command_exits_with_0_if_clean_and_2_if_unusable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "top.cpp").write_text(DESIGN)
    (tmp_path / "types.h").write_text(TYPES)
    files = [str(tmp_path / "top.cpp"), str(tmp_path / "types.h")]
    assert main([*files, "--top", "accelerate"]) == 0
    assert main([*files, "--top", "missing"]) == 2
    assert "got 'missing'" in capsys.readouterr().err


def test_lint_command_explain_prints_source_and_example_of_a_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--explain", "goto"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("5.10 goto: `goto`\nSource: UG1399, Unsupported C/C++ Constructs\n")
    assert "if (data[1]) goto again;" in text


def test_lint_page_has_the_table_that_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--rules"]) == 0
    document = ROOT / "docs/reference/lint.md"
    assert capsys.readouterr().out in document.read_text("utf-8")
