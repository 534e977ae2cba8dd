"""Writing a design: whole or not at all, and never over what is somebody else's."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from boards.errors import GenerateError
from host.contract.manifest import is_design
from host.contract.parts import MANIFEST
from systolic.files import DesignFiles, design_files, write

MANIFEST_TEXT = b'{"format": "systolic-manifest"}\n'
FILES = {"src/top.cpp": b"int top;\n", MANIFEST: MANIFEST_TEXT, "data/program.bin": b"\0\1"}


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_digest_is_of_names_and_contents_in_any_order() -> None:
    made = design_files(FILES)
    assert made.digest == design_files(dict(reversed(FILES.items()))).digest
    assert list(made.files) == sorted(FILES)
    assert made.digest != design_files({**FILES, "src/top.cpp": b"int Top;\n"}).digest
    assert made.digest != design_files({**FILES, "src/other.cpp": b""}).digest
    # The border between a name and its content counts.
    assert design_files({"ab": b"c"}).digest != design_files({"a": b"bc"}).digest


@pytest.mark.parametrize("name", ["../out", "/etc/passwd", "a/../../out", "a\\b", "", "."])
def test_a_name_that_leaves_the_folder_is_refused(name: str) -> None:
    with pytest.raises(GenerateError) as caught:
        design_files({name: b""})
    assert str(caught.value) == f"a generated file stays inside the output folder, {name!r} does not"


def test_a_new_folder_holds_exactly_the_files(tmp_path: Path) -> None:
    write(design_files(FILES), tmp_path / "deep" / "er" / "out")
    assert content(tmp_path) == {f"deep/er/out/{name}": data for name, data in FILES.items()}
    assert is_design(tmp_path / "deep/er/out")
    assert (tmp_path / "deep/er/out").stat().st_mode & 0o777 == 0o755


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    write(design_files(FILES), tmp_path / "out")
    assert content(tmp_path / "out") == FILES


def test_the_current_folder_can_be_the_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "out")
    write(design_files(FILES), Path())
    assert content(tmp_path) == {f"out/{name}": data for name, data in FILES.items()}


def test_a_link_to_a_folder_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write(design_files(FILES), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert content(tmp_path / "real") == FILES


# --------------------------------------------------------------------------------- what stands there


def test_a_design_is_replaced_only_when_asked(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(design_files({**FILES, "src/old.h": b""}), out)
    before = content(out)
    with pytest.raises(GenerateError) as caught:
        write(design_files(FILES), out)
    assert str(caught.value) == (
        f"{out} holds a generated design already; add --force to replace it, or choose another folder"
    )
    assert content(out) == before
    write(design_files(FILES), out, replace=True)
    assert content(tmp_path) == {f"out/{name}": data for name, data in FILES.items()}


@pytest.mark.parametrize("replace", [False, True])
def test_a_foreign_folder_is_left_alone(replace: bool, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("years of work")
    (tmp_path / "out" / MANIFEST).write_text('{"format": "another"}')
    before = content(tmp_path)
    with pytest.raises(GenerateError) as caught:
        write(design_files(FILES), tmp_path / "out", replace=replace)
    assert str(caught.value) == (
        f"{tmp_path / 'out'} exists and is not a generated design, so it is left alone; choose another folder"
    )
    assert content(tmp_path) == before


@pytest.mark.parametrize("replace", [False, True])
def test_a_file_in_the_way(replace: bool, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("kept")
    with pytest.raises(GenerateError) as caught:
        write(design_files(FILES), tmp_path / "out", replace=replace)
    assert str(caught.value) == f"the output folder {tmp_path / 'out'} is a file; choose another"
    assert content(tmp_path) == {"out": b"kept"}


def test_a_link_to_nothing_is_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to(tmp_path / "gone")
    with pytest.raises(GenerateError, match="is a file; choose another"):
        write(design_files(FILES), tmp_path / "out")
    assert not (tmp_path / "gone").exists()


# --------------------------------------------------------------------------------- what cannot be written


def test_a_file_where_a_parent_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    with pytest.raises(GenerateError) as caught:
        write(design_files(FILES), tmp_path / "file" / "deep" / "out")
    assert str(caught.value) == (
        f"{tmp_path / 'file' / 'deep' / 'out'} cannot be a folder, because {tmp_path / 'file'} is a file; "
        "choose another output folder"
    )


def test_a_name_that_no_file_system_takes(tmp_path: Path) -> None:
    with pytest.raises(GenerateError, match="cannot be written: File name too long; choose another output folder"):
        write(design_files(FILES), tmp_path / ("x" * 300))


@pytest.fixture
def read_only() -> Iterator[Path]:
    """A folder that this process may not write; root gives its rights up for the time."""
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o555)
        if root:
            os.seteuid(65534)
        try:
            yield folder
        finally:
            if root:
                os.seteuid(0)
            folder.chmod(0o755)


def test_a_read_only_parent(read_only: Path) -> None:
    with pytest.raises(GenerateError) as caught:
        write(design_files(FILES), read_only / "out")
    assert str(caught.value) == (
        f"{read_only / 'out'} cannot be written: Permission denied; choose another output folder"
    )
    assert list(read_only.iterdir()) == []


def test_a_parent_that_may_not_even_be_looked_into(read_only: Path) -> None:
    inner = read_only / "inner"
    effective = os.geteuid()
    os.seteuid(os.getuid())
    read_only.chmod(0o755)
    inner.mkdir(mode=0o700)
    os.seteuid(effective)
    if effective == os.getuid():
        inner.chmod(0)
    try:
        with pytest.raises(GenerateError, match="cannot be written: Permission denied; choose another output folder"):
            write(design_files(FILES), inner / "out")
    finally:
        os.seteuid(os.getuid())
        inner.rmdir()


@pytest.fixture
def breaking() -> DesignFiles:
    """The second file needs a folder where the first is a file: the error strikes between two files."""
    return DesignFiles({"a": b"whole", MANIFEST: MANIFEST_TEXT, "a/b": b"never"})


def test_an_error_in_between_leaves_nothing(breaking: DesignFiles, tmp_path: Path) -> None:
    with pytest.raises(
        GenerateError, match=r"out cannot be written: (File exists|Not a directory); nothing was changed"
    ):
        write(breaking, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_an_error_in_between_leaves_the_old_design(breaking: DesignFiles, tmp_path: Path) -> None:
    write(design_files(FILES), tmp_path / "out")
    with pytest.raises(GenerateError, match="nothing was changed"):
        write(breaking, tmp_path / "out", replace=True)
    assert content(tmp_path) == {f"out/{name}": data for name, data in FILES.items()}


@pytest.mark.parametrize("text", ["", "[]", '"systolic-manifest"', "{", '{"format": 1}'])
def test_what_is_no_manifest(text: str, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text(text)
    assert not is_design(tmp_path)
