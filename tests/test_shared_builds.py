"""A library is compiled once, by the first test that needs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.shared_builds import shared


def test_shared_compilation_copies_the_first_library_into_the_second_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[Path] = []

    def compile_to(command: list[str], library: Path, folder: Path | None = None) -> None:
        compiled.append(library)
        library.write_bytes(b"a library")

    (tmp_path / "cache").mkdir()
    compile_once = shared(compile_to, tmp_path / "cache")
    monkeypatch.delenv("CXX", raising=False)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        compile_once(["g++", "-O3"], tmp_path / name / "native-1-2.so")
        assert (tmp_path / name / "native-1-2.so").read_bytes() == b"a library"
    assert compiled == [tmp_path / "a" / "native-1-2.so"]
    assert not (tmp_path / "a" / "native-1-2.so").samefile(tmp_path / "b" / "native-1-2.so")
    compile_once(["g++", "-O3"], tmp_path / "b" / "native-1-3.so")
    assert len(compiled) == 2
    monkeypatch.setenv("CXX", "mine")
    compile_once(["g++", "-O3"], tmp_path / "b" / "native-1-2.so")
    assert len(compiled) == 3, "a test of the compiler compiles"
