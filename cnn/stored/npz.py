""".npz archives: the bytes written depend on the arrays only, and reading does not trust the file."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from boards.errors import (
    MAX_FAULT_LENGTH,
    DamagedFileError,
    FileAccessError,
    InvalidValueError,
    MissingValueError,
    ShapeError,
    SystolicError,
    UnknownKeyError,
    cut,
    shown,
)
from cnn.maps import FloatArray

Array = npt.NDArray[Any]

HEADER_BYTES = 4096  # the most bytes of an array's header: magic, version, shape, data type

_NUMBERS = ("<f2", "<f4", "<f8")

AGAIN, OTHER = "export it again", "check that the file is of this network"
"""Remedies for a file that is wrong."""


def put(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """Add a member to a zip archive, uncompressed and with a fixed time stamp, so that equal data give equal bytes."""
    entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    entry.create_system = 3  # otherwise the bytes depend on the system that wrote them
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, data)


def npy(array: Array) -> bytes:
    """Return the bytes of an array as an .npy file, little-endian."""
    buffer = io.BytesIO()
    little = np.ascontiguousarray(array).reshape(array.shape).astype(array.dtype.newbyteorder("<"), copy=False)
    np.lib.format.write_array(buffer, little, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def write_arrays(arrays: Mapping[str, Array]) -> bytes:
    """Return the bytes of an .npz of the arrays, in their order. The same arrays give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            put(archive, f"{name}.npy", npy(array))
    return buffer.getvalue()


def read_arrays(
    path: Path, shapes: Mapping[str, tuple[int, ...]], wide_names: Collection[str] = ()
) -> dict[str, FloatArray]:
    """Return the arrays of an .npz by name, as float32 or float64; it must hold exactly the arrays of ``shapes``.

    No more of each member is unpacked than an array of its shape takes.

    Args:
        path: The file.
        shapes: The shape of each array by its name.
        wide_names: The arrays to return as float64; all others are returned as float32.
    Raises:
        FileAccessError: The file cannot be read.
        DamagedFileError: The file is not an archive of arrays.
        MissingValueError: An array is missing; UnknownKeyError if the file holds another array.
        ShapeError: An array has another shape or data type.
        InvalidValueError: A number is not finite.
    """
    with _opened(path) as archive:
        _check_names(path.name, [entry.filename for entry in archive.infolist()], shapes)
        return {
            name: finite(path.name, name, _read(path.name, archive, name, shape), name in wide_names)
            for name, shape in shapes.items()
        }


def array_headers(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the arrays in an .npz by name, in the file's order, without reading their numbers.

    Raises:
        DamagedFileError: The file is not an .npz.
    """
    shapes = {}
    with _opened(path) as archive:
        for entry in archive.infolist():
            name = entry.filename.removesuffix(".npy")
            with archive.open(entry) as member:
                shapes[name] = _header(path.name, name, member.read(HEADER_BYTES)).shape
    return shapes


def array_names(path: Path) -> tuple[str, ...]:
    """Return the names of the arrays in an .npz, in the file's order; DamagedFileError if it is not an .npz."""
    with _opened(path) as archive:
        return tuple(entry.filename.removesuffix(".npy") for entry in archive.infolist())


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        if path.exists() and not path.is_file():
            raise FileAccessError(str(path), "is a folder, a pipe or a device", "weights file")
        with path.open("rb") as file, opened(file, path.name, AGAIN) as archive:
            yield archive
    except OSError as error:
        raise FileAccessError(str(path), f"cannot be read: {error.strerror or error}", "weights file") from error


@contextmanager
def opened(file: IO[bytes], source: str, remedy: str) -> Iterator[zipfile.ZipFile]:
    """Yield an .npz archive opened for reading; any fault of it while it is open becomes a DamagedFileError.

    Args:
        file: The archive's bytes.
        source: The file's name in errors.
        remedy: The remedy in errors.

    Raises:
        DamagedFileError: The archive cannot be opened, or a member cannot be read while it is open.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            yield archive
    except SystolicError:  # raised by the code that reads the archive
        raise
    except Exception as error:  # zipfile and its decoders may raise any exception for a damaged archive
        reason = f"is not an .npz file, or is damaged: {cut(error, MAX_FAULT_LENGTH)}"
        raise DamagedFileError(source, reason, remedy=remedy) from error


def _check_names(file: str, members: Sequence[str], shapes: Mapping[str, tuple[int, ...]]) -> None:
    listed = [member.removesuffix(".npy") for member in members]
    bare = [member for member in members if not member.endswith(".npy")]
    if bare:
        raise DamagedFileError(file, "is not an array", shown(bare[0]), remedy=AGAIN)
    missing = [name for name in shapes if name not in listed]
    if missing:
        what, others = f"the array {missing[0]!r} {shapes[missing[0]]}", len(missing) - 1
        reason = f"so are {others:,} more that the network reads" if others else ""
        raise MissingValueError(what, reason, where=file, remedy=OTHER)
    unknown = [name for name in listed if name not in shapes]
    if unknown:
        raise UnknownKeyError(unknown, tuple(shapes), where=file, remedy=OTHER)
    twice = sorted({name for name in listed if listed.count(name) > 1})
    if twice:
        raise DamagedFileError(file, "is stored twice", shown(twice[0]), remedy=AGAIN)


@dataclass(frozen=True)
class Header:
    """The header of an .npy file: the array's shape, order and data type, and the header's length.

    Attributes:
        shape: The shape of the array.
        fortran: Whether the array is stored in Fortran order.
        dtype: The data type of its numbers.
        size: The number of bytes of the header; the numbers follow it.
    """

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    size: int


def read_header(data: bytes, name: str) -> Header:
    """Return the header of an .npy file of version 1.0 or 2.0.

    Raises:
        DamagedFileError: The bytes are not such a file; the error gives ``name`` as its name.
    """
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        return Header(*read(stream), stream.tell())
    except KeyError as error:
        reason = f"is an .npy array of version {cut(error)}, and 1.0 and 2.0 are read"
        raise DamagedFileError(cut(name), reason) from error
    except Exception as error:  # numpy evaluates the header as Python, so that any exception may be raised
        raise DamagedFileError(cut(name), f"is not an .npy array: {cut(error, MAX_FAULT_LENGTH)}") from error


def _header(file: str, name: str, data: bytes) -> Header:
    try:
        return read_header(data, name)
    except DamagedFileError as error:
        raise error.at(file, AGAIN) from error


def _read(file: str, archive: zipfile.ZipFile, name: str, shape: tuple[int, ...]) -> Array:
    limit = HEADER_BYTES + 8 * int(np.prod(shape))
    with archive.open(f"{name}.npy") as member:
        return parse_array(file, name, member.read(limit + 1), shape)


def parse_array(file: str, name: str, data: bytes, shape: tuple[int, ...]) -> Array:
    """Return the array in the bytes of an .npy file; its type must be float16, float32 or float64, its shape ``shape``.

    Raises:
        DamagedFileError: The bytes are not an .npy file; ShapeError for another shape or data type. The place of both
            is ``file``.
    """
    count, what = int(np.prod(shape)), repr(name)
    if len(data) > HEADER_BYTES + 8 * count:
        raise ShapeError(what, "more bytes than that takes", f"shape {shape}", where=file, remedy=OTHER)
    header = _header(file, name, data)
    start = header.size
    if header.shape != shape:
        raise ShapeError(what, header.shape, shape, where=file, remedy=OTHER)
    if header.dtype.str not in _NUMBERS:
        got = f"type {cut(header.dtype.str)}"
        raise ShapeError(what, got, "type float16, float32 or float64", where=file, remedy=AGAIN)
    size = count * header.dtype.itemsize
    if len(data) - start != size:
        got = f"{len(data) - start} bytes of numbers"
        raise ShapeError(what, got, f"{size} bytes of numbers", where=file, remedy=AGAIN)
    return np.frombuffer(data, header.dtype, count, start).reshape(shape, order="F" if header.fortran else "C")


def finite(file: str, name: str, values: Array, is_double: bool = False) -> Array:
    """Return ``values`` as float32, or as float64 if ``is_double``; InvalidValueError if a number is not finite."""
    with np.errstate(over="ignore"):
        narrow: Array = np.array(values, np.float64 if is_double else np.float32, order="C")
    wrong = narrow[~np.isfinite(narrow)]
    if wrong.size:
        raise InvalidValueError(
            f"a number of {name!r}",
            float(wrong[0]),
            "finite as float32",
            where=file,
            remedy="export it again: the file is damaged, or training diverged",
        )
    return narrow
