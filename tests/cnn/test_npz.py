"""Arrays out of archives that nobody vouches for."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from boards.errors import NetworkError
from cnn.stored.npz import npy, read_arrays, write_arrays

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


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("order", ORDERS)
def test_what_numpy_saves_is_read(
    save: Callable[..., None], dtype: str, order: Literal["C", "F"], tmp_path: Path
) -> None:
    saved = {name: np.asarray(array.astype(dtype), order=order) for name, array in arrays().items()}
    save(tmp_path / "w.npz", **saved)
    for name, array in read_arrays(tmp_path / "w.npz", SHAPES).items():
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, saved[name].astype(np.float32))


def test_the_same_arrays_give_the_same_bytes_which_numpy_reads(tmp_path: Path) -> None:
    data = write_arrays(arrays())
    assert data == write_arrays(arrays())
    with np.load(io.BytesIO(data), allow_pickle=False) as read:
        assert list(read) == ["a", "b"]
        np.testing.assert_array_equal(read["a"], arrays()["a"])


def pickled() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array([[{}, 1, 2], [3, 4, 5]], dtype=object), allow_pickle=True)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"a": npy(np.zeros((3, 2), np.float32))}, "'a' must have the shape [2, 3], not [3, 2]; is it of another"),
        ({"a": npy(np.zeros((2, 3), np.int32))}, "'a' must be float16, float32 or float64, not <i4"),
        ({"a": npy(np.full((2, 3), np.nan))}, "'a' must hold finite float32 numbers"),
        ({"a": npy(np.full((2, 3), 1e300))}, "'a' must hold finite float32 numbers"),
        ({"a": npy(arrays()["a"])[:-1]}, "'a' [2, 3] has 23 bytes of numbers; export it again"),
        ({"a": b"no array"}, "w.npz: 'a' is no .npy array: "),
        (
            {"a": b"\x93NUMPY\x09\x00" + bytes(90)},
            "'a' is no .npy array: its version is (9, 0), and 1.0 and 2.0 are read",
        ),
        ({"a": npy(arrays()["a"]).replace(b"(2, 3), }", b"(2, 3), $")}, "'a' is no .npy array: "),
        ({"a": npy(arrays()["a"]).replace(b"(2, 3)", b"((((((")}, "'a' is no .npy array: "),
        ({"a": npy(arrays()["a"]).replace(b"'<f4'", b"'<x4'")}, "'a' is no .npy array: "),
        ({"a": pickled()}, "'a' must be float16, float32 or float64, not |O"),
        ({"c": npy(np.zeros(2))}, "1 array(s) that no layer reads, the first is 'c'; is it of another network?"),
    ],
)
def test_arrays_that_are_wrong(changed: dict[str, bytes], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(NetworkError) as error:
        read_arrays(archive(tmp_path, members(**changed)), SHAPES)
    assert sentence in str(error.value)


def test_an_array_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match=r"w\.npz lacks 1 array\(s\) that the network reads, the first is 'b' \[4\]"):
        read_arrays(archive(tmp_path, {"a.npy": npy(arrays()["a"])}), SHAPES)


def test_a_member_that_unpacks_to_more_than_its_array_takes(tmp_path: Path) -> None:
    """64 MB of zeros in 64 kB: given up after a few kilobytes."""
    path = archive(tmp_path, members(a=npy(np.zeros(1 << 23))))
    assert path.stat().st_size < 1 << 17
    with pytest.raises(NetworkError, match=r"'a' must have the shape \[2, 3\], but has more bytes than that takes"):
        read_arrays(path, SHAPES)


def test_files_that_are_no_archives(tmp_path: Path) -> None:
    (tmp_path / "w.npz").write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(NetworkError, match=r"w\.npz must be an \.npz file, but is damaged"):
        read_arrays(tmp_path / "w.npz", SHAPES)
    with pytest.raises(NetworkError, match=r"no\.npz cannot be read: No such file or directory"):
        read_arrays(tmp_path / "no.npz", SHAPES)
    path = archive(tmp_path, members())
    data = bytearray(path.read_bytes())
    data[60] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(NetworkError, match="damaged"):
        read_arrays(path, SHAPES)


def test_a_member_that_is_no_array(tmp_path: Path) -> None:
    path = archive(tmp_path, {"a": npy(arrays()["a"]), "b.npy": npy(arrays()["b"])})
    with pytest.raises(NetworkError, match=r"w\.npz holds 'a', which is no array; export it again"):
        read_arrays(path, SHAPES)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_packed_numbers_that_are_damaged(method: int, tmp_path: Path) -> None:
    path = archive(tmp_path, members(), method)
    data = bytearray(path.read_bytes())
    data[45:75] = bytes(30)
    path.write_bytes(data)
    with pytest.raises(NetworkError, match=r"w\.npz must be an \.npz file, but is damaged: .*; export it again"):
        read_arrays(path, SHAPES)


def test_a_pipe_is_not_waited_for_and_a_device_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npz")
    (tmp_path / "zero.npz").symlink_to("/dev/zero")
    for path in (tmp_path, tmp_path / "pipe.npz", tmp_path / "zero.npz"):
        with pytest.raises(NetworkError, match="must be a file, not a folder, a pipe or a device"):
            read_arrays(path, SHAPES)
