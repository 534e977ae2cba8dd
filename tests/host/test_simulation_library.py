"""Of several libraries the one is loaded that was made of the sources that lie beside it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from boards.errors import HostError
from host.contract.simulation_library import find_library
from systolic.execution.build import Variant, build


def test_finds_what_was_built_and_nothing_newer(tiny: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny, tmp_path / "design")
    built = build(folder)
    for name in ("native-0123456789abcdef-01234567.so", "native-trace-x.so", f"native-sanitize-{built.name[7:]}"):
        (built.parent / name).write_bytes(b"of something else, and newer")
        os.utime(built.parent / name, (2e9, 2e9))
    assert find_library(folder, None) == built.absolute()
    assert find_library(folder, str(built.parent / "native-trace-x.so")).name == "native-trace-x.so"
    assert Variant(trace=True).name == "native-trace"


@pytest.mark.parametrize("source", ["src/parameters.h", "simulation/simulate.cpp"])
def test_a_library_of_other_sources_is_not_taken(tiny: Path, tmp_path: Path, source: str) -> None:
    folder = shutil.copytree(tiny, tmp_path / "design")
    (folder / source).open("a").write("// another design\n")
    with pytest.raises(HostError) as caught:
        find_library(folder, None)
    assert str(caught.value) == (
        f"there is no board here, and {folder}/build holds no simulation library of this design to stand in for it, "
        f"only 1 of other sources or of another processor: run systolic simulate {folder} once, which builds it"
    )


def test_finds_what_was_built_beside_a_folder_that_cannot_be_written(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(tiny, tmp_path / "design")
    room = tmp_path / f"systolic-{os.geteuid()}"
    (folder / "build").rename(room)
    (folder / "build").write_text("a file where the folder should be")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert find_library(folder, None) == build(folder)
    assert find_library(folder, None).parent == room


def test_a_library_that_is_named_must_be_there(tiny: Path) -> None:
    with pytest.raises(HostError, match=r"nowhere\.so: there is no such simulation library"):
        find_library(tiny, "nowhere.so")
