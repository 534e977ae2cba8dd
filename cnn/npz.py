""".npz archives: written so that the bytes depend on the arrays alone, and read without trust in the file."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import NetworkError
from cnn.network import FloatArray

Array = npt.NDArray[Any]

HEADER_BYTES = 4096  # of an array: magic, version, shape, dtype

# What zipfile raises for bytes that are no archive; BadZipFile is not all.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    NotImplementedError,
    EOFError,
    RuntimeError,
    ValueError,
    OSError,
)
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
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
    np.lib.format.write_array(buffer, little, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def write_arrays(arrays: Mapping[str, Array]) -> bytes:
    """An .npz of ``arrays``, in their order; the same arrays give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            put(archive, f"{name}.npy", npy(array))
    return buffer.getvalue()


def read_arrays(path: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, FloatArray]:
    """Exactly the arrays of ``shapes``, float32 and finite, from an .npz that may be compressed.

    Of each member no more is unpacked than an array of its shape takes. NetworkError names the array that is missing,
    that no shape asks for, that has another shape or dtype, or that holds a number that is not finite.
    """
    with _opened(path) as archive:
        _check_names(path.name, (entry.filename for entry in archive.infolist()), shapes)
        return {name: _read(path.name, archive, name, shape) for name, shape in shapes.items()}


def array_names(path: Path) -> tuple[str, ...]:
    """Names of the arrays in an .npz, in its order; NetworkError where it is none."""
    with _opened(path) as archive:
        return tuple(entry.filename.removesuffix(".npy") for entry in archive.infolist())


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except FileNotFoundError as error:
        raise NetworkError(f"the weights file {path} cannot be read: there is no such file") from error
    except _DAMAGE as error:
        raise NetworkError(f"{path.name} must be an .npz file, but is damaged: {error}; export it again") from error


def _check_names(file: str, members: Iterable[str], shapes: Mapping[str, tuple[int, ...]]) -> None:
    listed = [member.removesuffix(".npy") for member in members]
    missing = [name for name in shapes if name not in listed]
    if missing:
        raise NetworkError(
            f"{file} lacks {len(missing)} array(s) that the network reads, the first is {missing[0]!r} "
            f"{list(shapes[missing[0]])}; is it of another network?"
        )
    unknown = [name for name in listed if name not in shapes]
    if unknown:
        raise NetworkError(
            f"{file} holds {len(unknown)} array(s) that no layer reads, the first is {unknown[0][:80]!r}; "
            "is it of another network?"
        )
    if len(listed) != len(shapes):
        raise NetworkError(f"{file} holds an array twice; export it again")


@dataclass(frozen=True)
class _Header:
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]


def _read(file: str, archive: zipfile.ZipFile, name: str, shape: tuple[int, ...]) -> FloatArray:
    count = int(np.prod(shape))
    limit = HEADER_BYTES + 8 * count
    with archive.open(f"{name}.npy") as member:
        data = member.read(limit + 1)
    if len(data) > limit:
        raise NetworkError(f"{file}: {name!r} must have the shape {list(shape)}, but has more bytes than that takes")
    header, start = _header(file, name, data)
    if header.shape != shape:
        raise NetworkError(
            f"{file}: {name!r} must have the shape {list(shape)}, not {list(header.shape)}; is it of another network?"
        )
    if header.dtype.str not in _NUMBERS:
        raise NetworkError(f"{file}: {name!r} must be float16, float32 or float64, not {header.dtype.str}")
    if len(data) - start != count * header.dtype.itemsize:
        raise NetworkError(f"{file}: {name!r} {list(shape)} has {len(data) - start} bytes of numbers; export it again")
    values = np.frombuffer(data, header.dtype, count, start).reshape(shape, order="F" if header.fortran else "C")
    return _finite(file, name, values)


def _header(file: str, name: str, data: bytes) -> tuple[_Header, int]:
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise NetworkError(f"{file}: {name!r} must be an array of .npy version 1.0 or 2.0, not {version}")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return _Header(*read(stream)), stream.tell()


def _finite(file: str, name: str, values: Array) -> FloatArray:
    with np.errstate(over="ignore"):
        narrow = np.array(values, np.float32, order="C")
    if not np.isfinite(narrow).all():
        raise NetworkError(
            f"{file}: {name!r} must hold finite float32 numbers, but some are infinite or not a number; "
            "the file is damaged, or training diverged"
        )
    return narrow
