"""The fixed headers of a design are exactly the headers that it includes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from hls_templates.headers import FOLDER, fixed_files, include_folders, included
from hls_templates.lint import lint
from tests.support.cases import cases
from tests.support.command_line import call
from tests.support.golden_designs import DESIGNS

FIXED = {
    "a.h": '#include "b.h"\n#include <vector>\n',
    "b.h": '#ifdef NEVER\n  # include <c.h>\n#endif\n#include "a.h"\n',
    "c.h": "",
    "d.h": '#include "a.h"\n',
    "e.h": "",
}


@cases(
    "text, names",
    [
        ("", []),
        ('#include "c.h"\n', ["c.h"]),
        ('#include "generated.h"\n#include "a.h"\n', ["a.h", "b.h", "c.h"]),
        ('#include "e.h"\n#include "d.h"\n', ["a.h", "b.h", "c.h", "d.h", "e.h"]),
        ('// #include "c.h"\nint i;  // "d.h"\n', []),
    ],
)
def test_included_headers_are_listed_transitively_in_a_fixed_order(text: str, names: list[str]) -> None:
    assert list(included([text], FIXED)) == names


def test_fixed_files_are_the_sorted_sources_of_a_folder(tmp_path: Path) -> None:
    for name in ("b.h", "a.cpp", "c.txt", "d.j2"):
        (tmp_path / name).write_text(name)
    assert list(fixed_files(tmp_path).items()) == [("a.cpp", "a.cpp"), ("b.h", "b.h")]


@pytest.mark.parametrize("engine", DESIGNS)
def test_engine_headers_have_unique_names(engine: str) -> None:
    """Check that names differ, because a design's folder is flat."""
    folders = include_folders(engine)
    assert sum(len(fixed_files(folder)) for folder in folders) == len(fixed_files(*folders))


def test_header_folders_have_at_most_12_headers() -> None:
    counts = {path: len(list(path.glob("*.h"))) for path in FOLDER.rglob("*") if path.is_dir()}
    assert {path: count for path, count in counts.items() if count > 12} == {}


@pytest.fixture(scope="module", params=["systolic", pytest.param("streaming", marks=pytest.mark.engine)])
def design(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    done = call("generate", *DESIGNS[request.param](folder), "-o", folder / "design")
    assert done.code == 0, done.error
    return folder / "design"


def dependencies(design: Path) -> set[Path]:
    """Return the files of the design that its traced build reads; the compiler fails if one is missing."""
    units = [design / "src/top.cpp", *sorted((design / "simulation").glob("*.cpp"))]
    flags = ["-std=c++17", "-DSYSTOLIC_TRACE", f"-I{design / 'src'}", f"-I{design / 'simulation'}"]
    done = subprocess.run(["g++", "-MM", *flags, *map(str, units)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {Path(word) for word in re.findall(r"[^\s\\]+", done.stdout) if not word.endswith(":")}


def test_design_compiles_with_exactly_its_headers(design: Path) -> None:
    assert dependencies(design) == {*(design / "src").iterdir(), *(design / "simulation").iterdir()}


def test_design_sources_have_no_lint_finding(design: Path) -> None:
    top = "systolic_top" if "systolic_top" in (design / "src/top.h").read_text() else "streaming_top"
    sources = {path.name: path.read_text() for path in (design / "src").iterdir()}
    assert lint(sources, top) == ()


def test_run_hls_script_names_existing_files(design: Path) -> None:
    script = (design / "run_hls.tcl").read_text()
    named = re.findall(r"^ +add_files .*?\$here/([\w./]+)$", script, re.M)
    assert len(named) == 2
    assert [name for name in named if not (design / name).is_file()] == []
