"""Test how g++ compiles the simulation library: once per change of the sources, and with an error if it fails."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from boards.errors import DamagedFileError, FileAccessError, MissingToolError, ToolError
from host.contract.libraries import SystolicLibrary
from host.contract.manifest import of_style, read_manifest
from host.contract.systolic import SystolicManifest
from host.whole_file import staging_folder
from systolic.execution import build as room
from systolic.execution import compiler
from systolic.execution.build import Variant, build, built
from tests.support.accelerators import Accelerator
from tests.support.cases import cases
from tests.support.errors import raises

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def made(accelerator: Callable[..., Accelerator], tmp_path: Path) -> Path:
    """Return a copy of a compiled design, which the test may change."""
    return accelerator("odd rows").copy(tmp_path / "design").path


def script(path: Path, text: str) -> Path:
    """Write an executable shell script and return its path."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@cases(
    "variant, name",
    [
        (Variant(), "native"),
        (Variant(ap_int=True, trace=True), "ap_int-trace"),
        (Variant(sanitize=True), "native-sanitize"),
    ],
)
def test_variant_has_a_name(variant: Variant, name: str) -> None:
    assert variant.name == name


def test_build_of_copied_design_keeps_the_library(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a copied design and a compiler that fails, so that the library can only be the copied one."""
    monkeypatch.setenv("CXX", "false")
    assert build(made).parent == made / "build"


def test_build_removes_leftovers_of_a_killed_run(made: Path) -> None:
    library = build(made)
    with staging_folder(library) as hidden:
        left = hidden
    left.mkdir()
    assert build(made) == library
    assert not left.exists()


def test_build_after_changed_source_compiles_again(made: Path) -> None:
    before = build(made)
    path = made / "src" / "parameters.h"
    path.write_text(path.read_text() + "// changed\n")
    after = build(made)
    assert after != before
    assert after.stat().st_mtime >= before.stat().st_mtime
    assert build(made) == after


def test_build_without_compiler_raises_missing_tool_error(
    made: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.delenv("CXX", raising=False)
    with raises(MissingToolError, tool="the C++17 compiler 'g++'") as caught:
        build(made)
    assert "apt install g++" in caught.value.remedy


def test_build_with_unknown_compiler_raises_missing_tool_error(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "nonsense++")
    with raises(MissingToolError, tool="the C++17 compiler 'nonsense++'"):
        build(made)


def test_build_calls_the_compiler_of_the_environment(
    made: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    library = build(made).rename(tmp_path / "library.so")
    (made / "src" / "types.h").open("a").write("// changed\n")
    take = f'while [ "$1" != -o ]; do shift; done\ncp {library} "$2"'
    monkeypatch.setenv("CXX", str(script(tmp_path / "mine", f"echo called > {tmp_path}/log\n{take}")))
    assert build(made).read_bytes() == library.read_bytes()
    assert (tmp_path / "log").read_text() == "called\n"


def test_build_error_quotes_the_compiler_and_leaves_no_file(made: Path) -> None:
    before = set((made / "build").iterdir())
    (made / "src" / "pass.h").open("a").write("#error planted\n")
    with raises(ToolError, reason="does not compile the generated code") as caught:
        build(made)
    assert "#error planted" in caught.value.output
    assert set((made / "build").iterdir()) == before


def test_built_compiles_again_if_library_does_not_load(made: Path) -> None:
    library = build(made)
    content = library.read_bytes()
    library.write_bytes(b"of another machine")
    loaded = built(lambda path: SystolicLibrary(path, of_style(SystolicManifest, read_manifest(made))), made)
    assert isinstance(loaded, SystolicLibrary)
    assert library.read_bytes() == content

    def refuse(path: Path) -> None:
        raise DamagedFileError(str(path), "cannot be loaded")

    with raises(DamagedFileError, path=str(library)):
        built(refuse, made)


def test_build_error_replaces_undecodable_bytes(made: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (made / "src" / "types.h").open("a").write("// changed\n")
    monkeypatch.setenv("CXX", str(script(tmp_path / "mine", "printf 'an error in \\377.h\\n' >&2; exit 1")))
    with raises(ToolError, output="an error in \ufffd.h"):
        build(made)


def test_build_with_endless_compiler_raises_tool_error(
    made: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (made / "src" / "types.h").open("a").write("// changed\n")
    monkeypatch.setenv("CXX", str(script(tmp_path / "slow", "exec sleep 60")))
    monkeypatch.setattr(compiler, "TIMEOUT_SECONDS", 0.2)
    with raises(ToolError, tool="the compiler", reason="did not finish in 0.2 s; is the machine overloaded?"):
        build(made)


def test_build_without_sources_raises_file_access_error(tmp_path: Path) -> None:
    with raises(FileAccessError, path=str(tmp_path), remedy="run systolic generate first"):
        build(tmp_path)


def test_build_of_read_only_design_uses_the_temporary_folder(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (made / "build").iterdir():
        path.rename(made.parent / path.name)
    (made / "build").rmdir()
    (made / "build").write_text("a file where the folder should be")
    monkeypatch.setattr("tempfile.tempdir", str(made.parent))
    monkeypatch.setenv("CXX", "false")
    with raises(ToolError, reason="does not compile the generated code"):
        build(made)
    assert (made.parent / f"systolic-{os.geteuid()}").is_dir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_build_refuses_a_folder_of_another_user(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room_of_mine = made.parent / f"systolic-{os.geteuid()}"
    room_of_mine.mkdir()
    os.chown(room_of_mine, 65534, 65534)
    monkeypatch.setattr("tempfile.tempdir", str(made.parent))
    for path in (made / "build").iterdir():
        path.rename(made.parent / path.name)
    (made / "build").rmdir()
    (made / "build").write_text("")
    with raises(FileAccessError, reason="belongs to another user", what="folder"):
        build(made)


def test_ap_int_folder_without_package_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SYSTOLIC_AP_TYPES", "XILINX_HLS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with raises(MissingToolError, tool="the vendor's ap_int.h") as caught:
        room.ap_int_folder()
    assert "pip install --no-deps hls4ml" in caught.value.remedy
    assert "SYSTOLIC_AP_TYPES" in caught.value.remedy


def test_ap_int_folder_reads_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ap_int.h").write_text("")
    monkeypatch.setenv("SYSTOLIC_AP_TYPES", str(tmp_path))
    assert room.ap_int_folder() == tmp_path
    monkeypatch.delenv("SYSTOLIC_AP_TYPES")
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "ap_int.h").write_text("")
    monkeypatch.setenv("XILINX_HLS", str(tmp_path))
    assert room.ap_int_folder() == tmp_path / "include"
