"""The search for a simulation library: only a library made from the folder's sources is loaded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from boards.errors import FileAccessError
from host.contract import simulation_library
from host.contract.simulation_library import find_library, library_folder, sources, sources_key
from systolic.execution.build import Variant, build
from tests.support.errors import raises


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a design's folder with sources and without a library."""
    for name, content in (("src/a.h", "a" * 99_999), ("src/b.cpp", "b"), ("simulation/c.cpp", "c")):
        (tmp_path / "design" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "design" / name).write_text(content)
    (tmp_path / "design" / "src" / "folder").mkdir()
    return tmp_path / "design"


def put(folder: Path, name: str, age: int) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("")
    os.utime(folder / name, (1000 + age, 1000 + age))
    return (folder / name).absolute()


def test_newest_library_of_these_sources_is_found(folder: Path) -> None:
    files = sources(folder)
    assert [path.name for path in files] == ["c.cpp", "a.h", "b.cpp"]
    key = sources_key(files)
    assert len(key) == 16
    assert library_folder(folder) == folder / "build"
    with raises(
        FileAccessError, path=f"{folder}/build", remedy=f"run systolic simulate {folder} once, which builds it"
    ):
        find_library(folder, None)
    other, _, newest, _ = (
        put(folder / "build", name, age)
        for age, name in enumerate(
            ("native-0000-x.so", f"native-{key}-old.so", f"native-{key}-new.so", f"traced-{key}-a.so")
        )
    )
    assert find_library(folder, None) == newest
    assert find_library(folder, str(other)) == other
    with raises(FileAccessError, path=str(folder / "none.so"), what="simulation library"):
        find_library(folder, folder / "none.so")


def test_find_library_of_other_sources_is_refused(folder: Path) -> None:
    put(folder / "build", f"native-{sources_key(sources(folder))}-x.so", 0)
    find_library(folder, None)
    with (folder / "src" / "a.h").open("a") as file:
        file.write("// another design\n")
    with raises(FileAccessError, path=f"{folder}/build", what="folder") as caught:
        find_library(folder, None)
    assert "1 of other sources or of another processor" in caught.value.reason
    for path in sources(folder):
        path.unlink()
    with raises(FileAccessError) as caught:
        find_library(folder, None)
    assert "--without-bitstream" in caught.value.remedy


def test_key_depends_on_names_and_contents(tmp_path: Path) -> None:
    keys = set()
    for contents in (("a", "b"), ("b", "a"), ("ab", "")):
        paths = []
        for number, content in enumerate(contents):
            path = tmp_path / f"{number}.h"
            path.write_text(content)
            paths.append(path)
        keys |= {sources_key(paths), sources_key(paths[:1])}
    assert len(keys) == 6


def test_find_library_finds_the_library_of_build(tiny: Path) -> None:
    assert find_library(tiny, None) == build(tiny).absolute()
    assert Variant(trace=True).name == "native-trace"


def test_library_in_the_temporary_folder_is_found(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Use a design whose own folder cannot be written."""
    (folder / "build").write_text("a file where the folder should be")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    own = tmp_path / f"systolic-{os.geteuid()}"
    assert library_folder(folder) == own
    made = put(own, f"native-{sources_key(sources(folder))}-x.so", 0)
    assert find_library(folder, None) == made


def test_temporary_folder_of_another_user_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Use a link, which may lead to a folder that another user can write."""
    (folder / "build").write_text("a file where the folder should be")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    own = tmp_path / f"systolic-{os.geteuid()}"
    (tmp_path / "elsewhere").mkdir()
    own.symlink_to(tmp_path / "elsewhere")
    with raises(FileAccessError, path=str(own), what="folder", remedy="name another folder in TMPDIR"):
        library_folder(folder)
    own.unlink()
    own.write_text("")
    with raises(FileAccessError, path=str(own), what="folder") as caught:
        library_folder(folder)
    assert caught.value.reason.startswith("cannot be made: ")
    assert simulation_library.MAX_SOURCE_BYTES == 1 << 28
