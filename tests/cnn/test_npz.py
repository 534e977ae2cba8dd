"""Tests of arrays from archives that may be damaged or hostile."""

from __future__ import annotations

import io
import itertools
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from boards.errors import (
    DamagedFileError,
    FileAccessError,
    InvalidValueError,
    MissingValueError,
    ShapeError,
    UnknownKeyError,
)
from cnn.stored.npz import array_headers, array_names, npy, read_arrays, write_arrays
from tests.support.errors import check_refusals, raises

ORDERS: tuple[Literal["C", "F"], ...] = ("C", "F")
SHAPES = {"a": (2, 3), "b": (4,)}


def arrays() -> dict[str, np.ndarray]:
    return {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.linspace(-1, 1, 4, dtype=np.float32)}


def archive(tmp_path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    path = tmp_path / "w.npz"
    with zipfile.ZipFile(path, "w", method) as made:
        for name, data in members.items():
            made.writestr(name, data)
    return path


def members(**changed: bytes) -> dict[str, bytes]:
    return {f"{name}.npy": npy(array) for name, array in arrays().items()} | {f"{n}.npy": d for n, d in changed.items()}


def test_arrays_saved_by_numpy_are_read(tmp_path: Path) -> None:
    saves: tuple[Callable[..., None], ...] = (np.savez, np.savez_compressed)
    for save, dtype, order in itertools.product(saves, ("f2", "f4", "f8"), ORDERS):
        saved = {name: np.asarray(array.astype(dtype), order=order) for name, array in arrays().items()}
        save(tmp_path / "w.npz", **saved)
        for name, array in read_arrays(tmp_path / "w.npz", SHAPES).items():
            assert array.dtype == np.float32
            np.testing.assert_array_equal(array, saved[name].astype(np.float32), f"{save} {dtype} {order}")
        assert array_headers(tmp_path / "w.npz") == SHAPES
        assert array_names(tmp_path / "w.npz") == tuple(SHAPES)


def test_wide_names_are_read_as_float64(tmp_path: Path) -> None:
    (tmp_path / "w.npz").write_bytes(write_arrays({"a": np.full((2, 3), 1e300), "b": np.zeros(4)}))
    read = read_arrays(tmp_path / "w.npz", SHAPES, ["a"])
    assert [str(array.dtype) for array in read.values()] == ["float64", "float32"]
    assert float(read["a"][0, 0]) == 1e300


def test_written_arrays_are_deterministic_and_numpy_reads_them(tmp_path: Path) -> None:
    data = write_arrays(arrays())
    assert data == write_arrays(arrays())
    with np.load(io.BytesIO(data), allow_pickle=False) as read:
        assert list(read) == ["a", "b"]
        np.testing.assert_array_equal(read["a"], arrays()["a"])


def pickled() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array([[{}, 1, 2], [3, 4, 5]], dtype=object), allow_pickle=True)
    return buffer.getvalue()


def test_wrong_arrays_are_refused(tmp_path: Path) -> None:
    good = npy(arrays()["a"])
    place = {"where": "w.npz"}
    numbers = "type float16, float32 or float64"
    check_refusals(
        lambda changed: read_arrays(archive(tmp_path, members(**changed)), SHAPES),
        [
            ({"a": npy(np.zeros((3, 2), np.float32))}, ShapeError, {"got": (3, 2), "required": (2, 3), **place}),
            ({"a": npy(np.zeros((2, 3), np.int32))}, ShapeError, {"got": "type <i4", "required": numbers}),
            ({"a": pickled()}, ShapeError, {"what": "'a'", "got": "type |O", "required": numbers}),
            ({"a": npy(np.full((2, 3), np.inf))}, InvalidValueError, {"what": "a number of 'a'", "got": np.inf}),
            ({"a": npy(np.full((2, 3), 1e300))}, InvalidValueError, {"what": "a number of 'a'", "got": np.inf}),
            ({"a": good[:-1]}, ShapeError, {"got": "23 bytes of numbers", "required": "24 bytes of numbers"}),
            ({"a": b"no array"}, DamagedFileError, {"path": "a", **place}),
            (
                {"a": b"\x93NUMPY\x09\x00" + bytes(90)},
                DamagedFileError,
                {"path": "a", "reason": "is an .npy array of version (9, 0), and 1.0 and 2.0 are read"},
            ),
            ({"a": good.replace(b"(2, 3), }", b"(2, 3), $")}, DamagedFileError, {"path": "a"}),
            ({"a": good.replace(b"(2, 3)", b"((((((")}, DamagedFileError, {"path": "a"}),
            ({"a": good.replace(b"'<f4'", b"'<x4'")}, DamagedFileError, {"remedy": "export it again"}),
            ({"c": npy(np.zeros(2))}, UnknownKeyError, {"keys": ["c"], "known": ("a", "b"), **place}),
        ],
    )
    with raises(InvalidValueError, what="a number of 'a'"):
        read_arrays(archive(tmp_path, members(a=npy(np.full((2, 3), np.nan)))), SHAPES)


def test_missing_array_is_named_with_its_shape(tmp_path: Path) -> None:
    with raises(MissingValueError, what="the array 'b' (4,)", reason="", where="w.npz"):
        read_arrays(archive(tmp_path, {"a.npy": npy(arrays()["a"])}), SHAPES)
    with raises(MissingValueError, what="the array 'a' (2, 3)", reason="so are 1 more that the network reads"):
        read_arrays(archive(tmp_path, {}), SHAPES)


def test_array_stored_twice_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path, members())
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "a") as more:
        more.writestr("b.npy", npy(arrays()["b"]))
    with raises(DamagedFileError, path="w.npz", place="'b'", reason="is stored twice"):
        read_arrays(path, SHAPES)


def test_member_that_unpacks_to_too_many_bytes_is_refused(tmp_path: Path) -> None:
    """Use 64 MB of zeros, packed to 64 kB. Reading must stop after a few kilobytes."""
    path = archive(tmp_path, members(a=npy(np.zeros(1 << 23))))
    assert path.stat().st_size < 1 << 17
    with raises(ShapeError, what="'a'", got="more bytes than that takes", required="shape (2, 3)"):
        read_arrays(path, SHAPES)


def test_file_that_is_not_an_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "w.npz").write_bytes(b"PK\x03\x04 nothing")
    for read in (array_names, array_headers, lambda path: read_arrays(path, SHAPES)):
        with raises(DamagedFileError, path="w.npz", remedy="export it again"):
            read(tmp_path / "w.npz")
    missing = tmp_path / "no.npz"
    with raises(FileAccessError, path=str(missing), reason="cannot be read: No such file or directory"):
        read_arrays(missing, SHAPES)
    path = archive(tmp_path, members())
    data = bytearray(path.read_bytes())
    data[60] ^= 0xFF
    path.write_bytes(data)
    with raises(DamagedFileError, path="w.npz"):
        read_arrays(path, SHAPES)


def test_member_that_is_not_an_array_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path, {"a": npy(arrays()["a"]), "b.npy": npy(arrays()["b"])})
    with raises(DamagedFileError, path="w.npz", place="'a'", reason="is not an array"):
        read_arrays(path, SHAPES)


def test_damaged_packed_data_is_refused(tmp_path: Path) -> None:
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        path = archive(tmp_path, members(), method)
        data = bytearray(path.read_bytes())
        data[45:75] = bytes(30)
        path.write_bytes(data)
        with raises(DamagedFileError, path="w.npz", remedy="export it again"):
            read_arrays(path, SHAPES)


def test_pipe_folder_or_device_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npz")
    (tmp_path / "zero.npz").symlink_to("/dev/zero")
    for path in (tmp_path, tmp_path / "pipe.npz", tmp_path / "zero.npz"):
        with raises(FileAccessError, path=str(path), reason="is a folder, a pipe or a device", what="weights file"):
            read_arrays(path, SHAPES)
