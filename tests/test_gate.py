"""The gates count tests and steps: .ci/steps."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def last_line(script: str) -> tuple[str, int]:
    """Run steps of a gate; return its last line and its exit status."""
    text = f"set -uo pipefail\nsource .ci/steps\n{script}\nfinish\n"
    done = subprocess.run(["bash", "-c", text], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()[-1], done.returncode


def test_passed_and_failed_tests_of_all_steps_are_added() -> None:
    script = """
step "first" echo "3 passed, 1 skipped, 7 deselected in 0.52s"
step "second" bash -c 'echo "1 failed, 20 passed in 61.00s (0:01:01)"; exit 1'
later third bash -c 'echo "2 failed, 1 passed, 1 error in 4.20s"; exit 1'
waited third
"""
    assert last_line(script) == ("24 passed, 4 failed", 1)


def test_gate_counts_a_failing_step_without_tests_as_a_failure() -> None:
    assert last_line('step "types" true\nstep "lint" false') == ("0 passed, 1 failed", 1)
    assert last_line('step "suite" bash -c "echo ERROR: file not found; exit 4"') == ("0 passed, 1 failed", 1)
    assert last_line("later job false\nwaited job") == ("0 passed, 1 failed", 1)


def test_gate_without_failures_exits_with_0() -> None:
    assert last_line('step "types" true\nstep "suite" echo "5 passed in 1.00s"') == ("5 passed, 0 failed", 0)
