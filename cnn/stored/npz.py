""".npz archives: written so that the bytes depend on the arrays alone, and read without trust in the file."""

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

from boards.errors import LONGEST_FAULT, NetworkError, SystolicError, cut, shown
from cnn.network import FloatArray

Array = npt.NDArray[Any]

HEADER_BYTES = 4096  # of an array: magic, version, shape, dtype

_NUMBERS = ("<f2", "<f4", "<f8")


def put(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """Add a member, uncompressed and with a fixed time stamp."""
    entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    entry.create_system = 3  # else the bytes tell which system wrote them
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, data)


def npy(array: Array) -> bytes:
    """An array as an .npy file, little-endian."""
    buffer = io.BytesIO()
    little = np.ascontiguousarray(array).reshape(array.shape).astype(array.dtype.newbyteorder("<"), copy=False)
    np.lib.format.write_array(buffer, little, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def write_arrays(arrays: Mapping[str, Array]) -> bytes:
    """An .npz of ``arrays``, in their order; the same arrays give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            put(archive, f"{name}.npy", npy(array))
    return buffer.getvalue()


def read_arrays(
    path: Path, shapes: Mapping[str, tuple[int, ...]], wide_names: Collection[str] = ()
) -> dict[str, FloatArray]:
    """Exactly the arrays of ``shapes``, float32 and finite, from an .npz that may be compressed; those named in
    ``wide_names`` as float64.

    Of each member no more is unpacked than an array of its shape takes. NetworkError names the array that is missing,
    that no shape asks for, that has another shape or dtype, or that holds a number that is not finite.
    """
    with _opened(path) as archive:
        _check_names(path.name, [entry.filename for entry in archive.infolist()], shapes)
        return {
            name: finite(path.name, name, _read(path.name, archive, name, shape), name in wide_names)
            for name, shape in shapes.items()
        }


def array_headers(path: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of the arrays in an .npz, in its order, as their heads tell them; NetworkError where it is none."""
    shapes = {}
    with _opened(path) as archive:
        for entry in archive.infolist():
            name = entry.filename.removesuffix(".npy")
            with archive.open(entry) as member:
                shapes[name] = _header(path.name, name, member.read(HEADER_BYTES)).shape
    return shapes


def array_names(path: Path) -> tuple[str, ...]:
    """Names of the arrays in an .npz, in its order; NetworkError where it is none."""
    with _opened(path) as archive:
        return tuple(entry.filename.removesuffix(".npy") for entry in archive.infolist())


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        if path.exists() and not path.is_file():
            raise NetworkError(f"the weights file {path} must be a file, not a folder, a pipe or a device")
        with path.open("rb") as file, opened(file) as archive:
            yield archive
    except OSError as error:
        raise NetworkError(f"the weights file {path} cannot be read: {error.strerror or error}") from error
    except DamagedError as error:
        raise NetworkError(f"{path.name} must be an .npz file, but is damaged: {error}; export it again") from error


class DamagedError(Exception):
    """What is wrong with an archive; who read it adds which file it is."""


@contextmanager
def opened(file: IO[bytes]) -> Iterator[zipfile.ZipFile]:
    """An archive, opened. DamagedError where it cannot be opened, or a member cannot be read meanwhile."""
    try:
        with zipfile.ZipFile(file) as archive:
            yield archive
    except (SystolicError, UnusableError):
        raise
    except Exception as error:  # zipfile and its decoders raise nearly anything where an archive is damaged
        raise DamagedError(cut(error, LONGEST_FAULT)) from error


class UnusableError(Exception):
    """What is wrong inside an archive; who read it adds which file it is."""


def _check_names(file: str, members: Sequence[str], shapes: Mapping[str, tuple[int, ...]]) -> None:
    listed = [member.removesuffix(".npy") for member in members]
    bare = [member for member in members if not member.endswith(".npy")]
    if bare:
        raise NetworkError(f"{file} holds {shown(bare[0])}, which is no array; export it again")
    missing = [name for name in shapes if name not in listed]
    if missing:
        raise NetworkError(
            f"{file} lacks {len(missing)} array(s) that the network reads, the first is {missing[0]!r} "
            f"{list(shapes[missing[0]])}; is it of another network?"
        )
    unknown = [name for name in listed if name not in shapes]
    if unknown:
        raise NetworkError(
            f"{file} holds {len(unknown)} array(s) that no layer reads, the first is {shown(unknown[0])}; "
            "is it of another network?"
        )
    if len(listed) != len(shapes):
        raise NetworkError(f"{file} holds an array twice; export it again")


@dataclass(frozen=True)
class Header:
    """Of an .npy file. size: its bytes, behind which the numbers stand."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    size: int


def read_header(data: bytes) -> Header:
    """Of an .npy file of version 1.0 or 2.0; ValueError with a short sentence for any other bytes."""
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        return Header(*read(stream), stream.tell())
    except KeyError as error:
        raise ValueError(f"its version is {cut(error)}, and 1.0 and 2.0 are read") from error
    except Exception as error:  # numpy evaluates the header as Python, with all that can go wrong there
        raise ValueError(cut(error, LONGEST_FAULT)) from error


def _header(file: str, name: str, data: bytes) -> Header:
    try:
        return read_header(data)
    except ValueError as error:
        raise NetworkError(f"{file}: {shown(name)} is no .npy array: {error}; export it again") from error


def _read(file: str, archive: zipfile.ZipFile, name: str, shape: tuple[int, ...]) -> Array:
    limit = HEADER_BYTES + 8 * int(np.prod(shape))
    with archive.open(f"{name}.npy") as member:
        return parse_array(file, name, member.read(limit + 1), shape)


def parse_array(file: str, name: str, data: bytes, shape: tuple[int, ...]) -> Array:
    """The numbers of an .npy file, float16, float32 or float64 of ``shape``.

    NetworkError, which names ``file`` and the array, where the bytes are none such.
    """
    count = int(np.prod(shape))
    if len(data) > HEADER_BYTES + 8 * count:
        raise NetworkError(f"{file}: {name!r} must have the shape {list(shape)}, but has more bytes than that takes")
    header = _header(file, name, data)
    start = header.size
    if header.shape != shape:
        raise NetworkError(
            f"{file}: {name!r} must have the shape {list(shape)}, not {shown(list(header.shape))}; "
            "is it of another network?"
        )
    if header.dtype.str not in _NUMBERS:
        raise NetworkError(f"{file}: {name!r} must be float16, float32 or float64, not {cut(header.dtype.str)}")
    if len(data) - start != count * header.dtype.itemsize:
        raise NetworkError(f"{file}: {name!r} {list(shape)} has {len(data) - start} bytes of numbers; export it again")
    return np.frombuffer(data, header.dtype, count, start).reshape(shape, order="F" if header.fortran else "C")


def finite(file: str, name: str, values: Array, is_double: bool = False) -> Array:
    """float32, or float64 where ``is_double``, in C order; NetworkError where a number is not finite."""
    with np.errstate(over="ignore"):
        narrow: Array = np.array(values, np.float64 if is_double else np.float32, order="C")
    if not np.isfinite(narrow).all():
        raise NetworkError(
            f"{file}: {name!r} must hold finite float32 numbers, but some are infinite or not a number; "
            "the file is damaged, or training diverged"
        )
    return narrow
