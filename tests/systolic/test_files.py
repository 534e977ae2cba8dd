"""Test how a design is written: completely or not at all, and never over a foreign file or folder."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from boards.errors import FileAccessError, InvalidValueError
from host.contract.manifest import is_design
from host.contract.parts import MANIFEST
from systolic import files
from systolic.files import DesignFiles, design_files, output_folder, write
from tests.support.cases import cases
from tests.support.errors import raises

MANIFEST_TEXT = b'{"format": "systolic-manifest"}\n'
FILES = {"src/top.cpp": b"int top;\n", MANIFEST: MANIFEST_TEXT, "data/program.bin": b"\0\1"}


FOREIGN = "exists and is not a generated design, so it is not replaced"


def content(folder: Path) -> dict[str, bytes]:
    """Return the bytes of each file in a folder, by its relative path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_digest_covers_names_and_contents_in_any_order() -> None:
    made = design_files(FILES)
    assert made.digest == design_files(dict(reversed(FILES.items()))).digest
    assert list(made.files) == sorted(FILES)
    assert made.digest != design_files({**FILES, "src/top.cpp": b"int Top;\n"}).digest
    assert made.digest != design_files({**FILES, "src/other.cpp": b""}).digest
    # The boundary between a name and its content counts.
    assert design_files({"ab": b"c"}).digest != design_files({"a": b"bc"}).digest


@cases("name", ["../out", "/etc/passwd", "a/../../out", "a\\b", "", "."])
def test_design_files_with_name_outside_folder_are_refused(name: str) -> None:
    with raises(InvalidValueError, what="the name of a generated file", got=name):
        design_files({name: b""})


def test_write_creates_folder_with_exactly_the_files(tmp_path: Path) -> None:
    write(design_files(FILES), tmp_path / "deep" / "er" / "out")
    assert content(tmp_path) == {f"deep/er/out/{name}": data for name, data in FILES.items()}
    assert is_design(tmp_path / "deep/er/out")
    assert (tmp_path / "deep/er/out").stat().st_mode & 0o777 == 0o755


def test_write_fills_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    write(design_files(FILES), tmp_path / "out")
    assert content(tmp_path / "out") == FILES


def test_write_to_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "out")
    write(design_files(FILES), Path())
    assert content(tmp_path) == {f"out/{name}": data for name, data in FILES.items()}


def test_write_through_a_link_keeps_the_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write(design_files(FILES), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert content(tmp_path / "real") == FILES


# --------------------------------------------------------------------------------- targets that exist


def test_write_replaces_a_design_only_on_request(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(design_files({**FILES, "src/old.h": b""}), out)
    before = content(out)
    with raises(FileAccessError, path=str(out), remedy="add --force to replace it, or choose another folder"):
        write(design_files(FILES), out)
    assert content(out) == before
    write(design_files(FILES), out, replace=True)
    assert content(tmp_path) == {f"out/{name}": data for name, data in FILES.items()}


@pytest.mark.parametrize("replace", [False, True])
def test_write_keeps_a_foreign_folder(replace: bool, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("years of work")
    (tmp_path / "out" / MANIFEST).write_text('{"format": "another"}')
    before = content(tmp_path)
    with raises(FileAccessError, path=str(tmp_path / "out"), reason=FOREIGN):
        write(design_files(FILES), tmp_path / "out", replace=replace)
    assert content(tmp_path) == before


@pytest.mark.parametrize("replace", [False, True])
def test_write_keeps_a_file_at_the_target(replace: bool, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("kept")
    with raises(FileAccessError, path=str(tmp_path / "out"), reason="is a file"):
        write(design_files(FILES), tmp_path / "out", replace=replace)
    assert content(tmp_path) == {"out": b"kept"}


def test_write_keeps_a_dangling_link_at_the_target(tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to(tmp_path / "gone")
    with raises(FileAccessError, path=str(tmp_path / "out"), reason="is a file"):
        write(design_files(FILES), tmp_path / "out")
    assert not (tmp_path / "gone").exists()


# --------------------------------------------------------------------------------- targets that cannot be written


def test_write_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    out, reason = tmp_path / "file" / "deep" / "out", f"cannot be made, because {tmp_path / 'file'} is a file"
    with raises(FileAccessError, path=str(out), reason=reason, remedy="choose another output folder"):
        write(design_files(FILES), out)


def test_write_with_too_long_name_is_refused(tmp_path: Path) -> None:
    with raises(FileAccessError, reason="cannot be written: File name too long"):
        write(design_files(FILES), tmp_path / ("x" * 300))


@pytest.fixture
def read_only() -> Iterator[Path]:
    """Return a folder that this process cannot write. Root drops its rights during the test."""
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


def test_write_below_a_read_only_folder_is_refused(read_only: Path) -> None:
    with raises(FileAccessError, path=str(read_only / "out"), reason="cannot be written: Permission denied"):
        write(design_files(FILES), read_only / "out")
    assert list(read_only.iterdir()) == []


def test_write_below_an_unsearchable_folder_is_refused(read_only: Path) -> None:
    inner = read_only / "inner"
    effective = os.geteuid()
    os.seteuid(os.getuid())
    read_only.chmod(0o755)
    inner.mkdir(mode=0o700)
    os.seteuid(effective)
    if effective == os.getuid():
        inner.chmod(0)
    try:
        with raises(FileAccessError, reason="cannot be written: Permission denied"):
            write(design_files(FILES), inner / "out")
    finally:
        os.seteuid(os.getuid())
        inner.rmdir()


# --------------------------------------------------------------------------------- changes during a write


class Interrupted(dict[str, bytes]):
    """Files of a design that call ``event`` after the first file is written."""

    def __init__(self, event: Callable[[], object]) -> None:
        super().__init__(FILES)
        self.event = event

    def items(self) -> Any:
        first, *others = super().items()
        yield first
        self.event()
        yield from others


def put(folder: Path, **files: str) -> None:
    """Write text files into a folder, which is made if needed."""
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)


@pytest.mark.parametrize("replace", [False, True])
def test_write_keeps_a_foreign_folder_that_appears_during_it(replace: bool, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with raises(FileAccessError, path=str(out), reason=FOREIGN):
        write(DesignFiles(Interrupted(lambda: put(out, thesis="years of work"))), out, replace=replace)
    assert content(tmp_path) == {"out/thesis": b"years of work"}


def test_write_keeps_a_foreign_folder_that_replaces_the_design(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(design_files(FILES), out)

    def exchanged() -> None:
        out.rename(tmp_path / "before")
        put(out, thesis="years of work")

    with raises(FileAccessError, path=str(out), reason=FOREIGN):
        write(DesignFiles(Interrupted(exchanged)), out, replace=True)
    assert content(tmp_path) == {"out/thesis": b"years of work"} | {f"before/{name}": FILES[name] for name in FILES}


def test_output_folder_has_one_writer_at_a_time(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with output_folder(out, replace=False) as first:
        with (
            raises(FileAccessError, path=str(out), reason="cannot be written: another run is writing it"),
            output_folder(out, replace=True),
        ):
            pass
        first.write(design_files(FILES))
    assert content(tmp_path) == {f"out/{name}": data for name, data in FILES.items()}
    write(design_files(FILES), out, replace=True)


def test_write_from_many_threads_succeeds_at_most_once(tmp_path: Path) -> None:
    start = Barrier(8)

    def attempt(number: int) -> None:
        start.wait()
        write(design_files({**FILES, "number": bytes([number])}), tmp_path / "out")

    with ThreadPoolExecutor(8) as pool:
        attempts = [pool.submit(attempt, number) for number in range(8)]
    refusals = {number: str(attempts[number].exception()) for number in range(8) if attempts[number].exception()}
    assert all(re.search("another run is writing it|holds a generated design", text) for text in refusals.values())
    written = [number for number in range(8) if number not in refusals]
    assert len(written) <= 1  # none if each writer saw another one
    assert [path.name for path in tmp_path.iterdir()] == ["out"] * len(written)
    if written:
        assert (tmp_path / "out" / "number").read_bytes() == bytes(written)


KILLED = """
import os, sys
from pathlib import Path
from systolic.files import DesignFiles, write
class Deadly(dict):
    def items(self):
        yield "src/top.cpp", b"half"
        os._exit(9)
write(DesignFiles(Deadly()), Path(sys.argv[1]))
"""


def test_write_removes_leftovers_of_a_killed_run(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert subprocess.run([sys.executable, "-c", KILLED, out], check=False).returncode == 9
    (hidden,) = tmp_path.iterdir()
    assert hidden.name.startswith(".out.")
    with output_folder(tmp_path / "out.2", replace=False):
        assert hidden.exists(), "a run for another folder must not remove these leftovers"
    write(design_files(FILES), out)
    assert content(tmp_path) == {f"out/{name}": data for name, data in FILES.items()}


BETWEEN_TWO_RENAMES = """
import errno, os, sys
from pathlib import Path
from systolic import files
from systolic.files import DesignFiles, write

def no_such_call(*_):
    raise OSError(errno.ENOSYS, "not on this kernel")

def deadly(self, target, rename=Path.rename):
    rename(self, target)
    if target.name == "old":
        if sys.argv[2] == "killed":
            os._exit(9)
        raise KeyboardInterrupt

files._rename_exchange, Path.rename = no_such_call, deadly
write(DesignFiles({"src/top.cpp": b"new"}), Path(sys.argv[1]), replace=True)
"""


@pytest.mark.parametrize("ending", ["killed", "interrupted"])
def test_exchange_in_two_steps_restores_the_design_if_interrupted(ending: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(design_files(FILES), out)
    done = subprocess.run([sys.executable, "-c", BETWEEN_TWO_RENAMES, out, ending], check=False, capture_output=True)
    assert done.returncode == (9 if ending == "killed" else -signal.SIGINT)
    with raises(FileAccessError, path=str(out), reason="holds a generated design already"):
        write(design_files({**FILES, "more": b""}), out)
    assert content(tmp_path) == {f"out/{name}": data for name, data in FILES.items()}


def test_exchange_works_on_every_kernel(tmp_path: Path) -> None:
    for number, change in enumerate((files.exchange, files._rename_thrice)):
        (tmp_path / str(number)).mkdir()
        first, second = tmp_path / str(number) / "first", tmp_path / str(number) / "second"
        put(first, a="1")
        put(second, b="2")
        change(first, second)
        assert content(tmp_path / str(number)) == {"first/b": b"2", "second/a": b"1"}


def test_output_folder_removes_new_parents_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), output_folder(tmp_path / "deep" / "er" / "out", replace=False):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


# --------------------------------------------------------------------------------- errors during a write


@pytest.fixture
def breaking() -> DesignFiles:
    """Return files of which the second needs a folder where the first is a file, so the error strikes between two
    files."""
    return DesignFiles({"a": b"whole", MANIFEST: MANIFEST_TEXT, "a/b": b"never"})


def test_write_error_leaves_nothing(breaking: DesignFiles, tmp_path: Path) -> None:
    with raises(FileAccessError, path=str(tmp_path / "out")) as caught:
        write(breaking, tmp_path / "out")
    assert caught.value.reason.endswith("nothing was changed")
    assert list(tmp_path.iterdir()) == []


def test_write_error_keeps_the_old_design(breaking: DesignFiles, tmp_path: Path) -> None:
    write(design_files(FILES), tmp_path / "out")
    with raises(FileAccessError, path=str(tmp_path / "out")) as caught:
        write(breaking, tmp_path / "out", replace=True)
    assert caught.value.reason.endswith("nothing was changed")
    assert content(tmp_path) == {f"out/{name}": data for name, data in FILES.items()}


@cases("text", ["", "[]", '"systolic-manifest"', "{", '{"format": 1}'])
def test_is_design_of_other_json_is_false(text: str, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text(text)
    assert not is_design(tmp_path)
