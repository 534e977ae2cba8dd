"""Extras combine: one environment can have everything, also [board], whose pynq wants an old numpy and protobuf.

Resolved by uv, nothing is installed here; .ci/host installs board, notebooks, solver and test together, and runs them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = tuple(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"])
CASES = (
    ("3.10", EXTRAS),
    ("3.13", EXTRAS),  # the last that pynq's numpy, below 2, can be had for
    ("3.11", ("board", "solver")),
    ("3.11", ("board", "test")),
    ("3.14", tuple(extra for extra in EXTRAS if extra != "board")),
)
"""Versions of Python, and extras. Those that clashed once are resolved alone too, as users would install them."""

pytestmark = pytest.mark.campaign

OUT_OF_REACH = ("error sending request", "Could not connect", "dns error", "timed out", "Connection refused")


def resolve(case: tuple[str, tuple[str, ...]]) -> subprocess.CompletedProcess[str]:
    """Ask uv for the packages of these extras with this version of Python."""
    python, extras = case
    command = [sys.executable, "-m", "uv", "pip", "compile", "--no-header", "--no-annotate", "--no-python-downloads"]
    command += ["--python-version", python, *(f"--extra={extra}" for extra in extras), str(ROOT / "pyproject.toml")]
    return subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "UV_SYSTEM_CERTS": "true"}, check=False
    )


def test_extras_combine() -> None:
    """Resolve all cases at once, since most of the time is the registry's."""
    pytest.importorskip("uv", reason="resolving needs uv: pip install -e '.[campaign]'")
    with ThreadPoolExecutor(len(CASES)) as pool:
        resolved = dict(zip(CASES, pool.map(resolve, CASES), strict=True))
    if all(any(sign in done.stderr for sign in OUT_OF_REACH) for done in resolved.values()):
        pytest.skip("no package registry is in reach")
    assert {case: done.stderr for case, done in resolved.items() if done.returncode} == {}
    for (_, extras), done in resolved.items():
        assert ("pynq==4." in done.stdout) == ("board" in extras)
        assert ("ortools==9." in done.stdout) == bool({"solver", "test"} & set(extras))
