"""All compute blocks under the sanitizers of addresses and undefined behaviour, with their values compared."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hls_templates.headers import fixed_files, include_folders
from tests.support.blocks.compute import HERE, compile_cases
from tests.support.blocks.weights import CASES

pytestmark = pytest.mark.engine

MODULES = ("matrix_vector", "elementwise", "weights")

RUN = """
import importlib, sys
from pathlib import Path
import tests.support.blocks.compute as compute
cases = importlib.import_module(sys.argv[1]).CASES
library = compute.Library(Path(sys.argv[2]), cases)
print(sum(bool((library.run(case) == case.expected).all()) for case in cases))
"""


@pytest.mark.parametrize("module", MODULES)
def test_block_cases_are_clean_under_the_address_sanitizer(module: str, tmp_path: Path) -> None:
    name = f"tests.support.blocks.{module}"
    cases = importlib.import_module(name).CASES
    library = compile_cases(cases, tmp_path, "sanitized", "-fsanitize=address")
    done = run(name, library.path)
    assert (done.returncode, done.stdout.strip()) == (0, str(len(cases))), done.stderr[-3000:]


def run(module: str, library: Path) -> subprocess.CompletedProcess[str]:
    """Run in a separate process that loads the sanitizers first."""
    libraries = [
        subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    environment = {**os.environ, "LD_PRELOAD": " ".join(libraries), "ASAN_OPTIONS": "detect_leaks=0"}
    return subprocess.run(
        [sys.executable, "-c", RUN, module, str(library)],
        cwd=HERE.parents[2],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_address_sanitizer_reports_an_access_beyond_an_array(tmp_path: Path) -> None:
    """Check the sanitizer itself with a streamer that reads one tile too many."""
    header = fixed_files(*include_folders("streaming"))["weights.h"]
    (tmp_path / "weights.h").write_text(header.replace("counter_t<TILES> tile;", "counter_t<TILES + 1> tile;"))
    library = compile_cases(CASES[:1], tmp_path, "sanitized", "-fsanitize=address", f"-I{tmp_path}")
    done = run("tests.support.blocks.weights", library.path)
    assert done.returncode != 0
    assert "outside" in done.stderr or "out of bounds" in done.stderr or "overflow" in done.stderr, done.stderr[-2000:]
