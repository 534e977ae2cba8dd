"""A file that a command writes is the complete old one or the complete new one."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from boards.errors import FileAccessError
from host.vision.drawing import check_picture, save_picture
from host.whole_file import check_whole, staging_folder, write_whole
from tests.support.errors import raises
from tests.support.host.results import result

FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from host.whole_file import write_whole
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_whole(Path(sys.argv[1]), bytes(100_000))
except OSError as error:
    print("refused", error.strerror)
"""

KILLED = """
import os, sys
from pathlib import Path
from host.whole_file import write_whole
os.fsync = lambda descriptor: os._exit(9)  # killed with all of it written, and before it has its name
write_whole(Path(sys.argv[1]), bytes(100_000))
"""


ORPHAN = """
import itertools, sys
for number in itertools.count():
    try:
        open(f"{sys.argv[1]}/{number}.o", "x").close()
    except FileNotFoundError:
        break
    if number == 5000:  # so that removing them takes a while
        print("busy", flush=True)
"""


def test_write_on_full_disk_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    for old in (None, b"old"):
        if old is not None:
            path.write_bytes(old)
        done = subprocess.run([sys.executable, "-c", FULL_DISK, path], capture_output=True, text=True, check=True)
        assert done.stdout.startswith("refused")
        assert [left.name for left in tmp_path.iterdir()] == ([] if old is None else [path.name])
        assert old is None or path.read_bytes() == old


def test_write_killed_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "wheel.whl"
    path.write_bytes(b"old")
    assert subprocess.run([sys.executable, "-c", KILLED, path], check=False).returncode == 9
    assert path.read_bytes() == b"old"


def test_write_keeps_link_mode_and_device(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_whole(link, b"new")
    assert link.is_symlink()
    assert (target.read_bytes(), target.stat().st_mode & 0o777) == (b"new", 0o640)
    write_whole(Path("/dev/null"), b"gone")
    assert Path("/dev/null").is_char_device()


def test_save_picture_format_follows_the_suffix(tmp_path: Path) -> None:
    image = Image.fromarray(np.zeros((4, 6, 3), np.uint8))
    for name, kind in {"a.png": "PNG", "b.JPG": "JPEG"}.items():
        save_picture(image, tmp_path / name)
        assert Image.open(tmp_path / name).format == kind
    for name, reason in (
        ("c.txt", "cannot be written: .txt is not the suffix of a picture format"),
        ("d", "cannot be written: its name has no suffix"),
        ("nowhere/e.png", "cannot be written: No such file or directory"),
    ):
        with raises(FileAccessError, path=str(tmp_path / name), reason=reason, remedy="choose another FILE.png"):
            save_picture(image, tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "b.JPG"]


def test_write_removes_files_of_a_killed_run(tmp_path: Path) -> None:
    path = tmp_path / "wheel.whl"
    assert subprocess.run([sys.executable, "-c", KILLED, path], check=False).returncode == 9
    assert [left.name.startswith(".wheel.whl.") for left in tmp_path.iterdir()] == [True]
    with staging_folder(path) as alive:
        write_whole(path, b"new")
        assert alive.is_dir(), "a folder of a running process must be kept"
    assert [left.name for left in tmp_path.iterdir()] == [path.name]


def test_write_removes_folder_that_an_orphan_still_writes(tmp_path: Path) -> None:
    with staging_folder(tmp_path / "library.so") as hidden:
        left = hidden
    left.mkdir()
    with subprocess.Popen([sys.executable, "-c", ORPHAN, str(left)], stdout=subprocess.PIPE) as orphan:
        assert orphan.stdout is not None
        assert orphan.stdout.readline() == b"busy\n"
        with staging_folder(tmp_path / "library.so"):
            pass
        remains = list(tmp_path.iterdir())
        orphan.kill()
    assert remains == []


def test_write_name_of_255_bytes_is_possible(tmp_path: Path) -> None:
    path = tmp_path / ("ä" * 127)
    write_whole(path, b"new")
    assert [left.name for left in tmp_path.iterdir()] == [path.name]


def test_check_of_unwritable_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    check_whole(path)
    check_whole(Path("/dev/null"))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(IsADirectoryError):
        check_whole(tmp_path)
    with pytest.raises(FileNotFoundError):
        check_whole(tmp_path / "absent" / "report.html")
    with raises(FileAccessError, path=str(tmp_path / "d"), reason="cannot be written: its name has no suffix"):
        check_picture(tmp_path / "d")
    for name in ("e.png", "e.npz"):
        with raises(FileAccessError, reason="cannot be written: No such file or directory"):
            check_picture(tmp_path / "absent" / name)


def test_tensors_of_a_result_are_saved_as_npz(tmp_path: Path) -> None:
    found = result(np.zeros((4, 6, 3), np.uint8), 0)
    tensors = {"file": np.arange(6, dtype=np.float32).reshape(1, 2, 3)}
    for detections in (found.detections, ()):
        replace(found, detections=detections, tensors=tensors).save(tmp_path / "a.npz")
        with np.load(tmp_path / "a.npz") as arrays:
            np.testing.assert_array_equal(arrays["file"], tensors["file"])


def test_write_to_link_to_itself_replaces_it(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    write_whole(loop, b"new")
    assert loop.read_bytes() == b"new"
