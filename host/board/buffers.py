"""Buffers in DDR that are allocated together, checked, and freed together."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from boards.errors import AcceleratorError, MismatchError, cut
from host.contract.parts import DataFile, read_data_file

Allocate = Callable[..., Any]
"""The type of ``pynq.allocate``."""


class Buffers:
    """A design's buffers in DDR. The CPU caches them, so they are flushed and invalidated explicitly.

    If one allocation fails, the others are freed. ``free`` may be called twice.

    Attributes:
        names: Attributes of the subclass that hold buffers. ``free`` deletes them.
    """

    names: tuple[str, ...] = ()

    def __init__(self, allocate: Allocate) -> None:
        self._allocate = allocate
        self._all: list[Any] = []
        self._uploaded: list[tuple[str, Any, int]] = []
        try:
            self.fill()
        except BaseException:
            self.free()
            raise

    def fill(self) -> None:
        """Allocate all buffers and upload their contents. Subclasses implement this."""
        raise NotImplementedError

    @property
    def table(self) -> tuple[tuple[int, int], ...]:
        """The physical address and the size in bytes of every buffer."""
        return tuple((int(buffer.device_address), int(buffer.nbytes)) for buffer in self._all)

    def verify(self) -> None:
        """Read all uploaded data back from DDR. MismatchError names the first buffer that has changed."""
        for name, buffer, expected in self._uploaded:
            buffer.invalidate()
            checksum = zlib.crc32(buffer)
            if checksum != expected:
                raise MismatchError(
                    f"the checksum of {name} in DDR",
                    f"{checksum:08x}",
                    f"{expected:08x}",
                    remedy="something else writes there, or the memory is faulty: call reset() to upload it again",
                )

    def free(self) -> None:
        """Free every buffer. None may be used afterwards."""
        buffers, self._all = self._all, []
        for name in self.names:
            self.__dict__.pop(name, None)
        self._uploaded = []
        for buffer in buffers:
            buffer.freebuffer()

    def zeros(self, size: int) -> Any:
        """Return a new buffer of ``size`` bytes in DDR, filled with zeros."""
        buffer = self.new(size)
        buffer[:] = 0
        return buffer

    def upload(self, folder: Path, file: DataFile) -> Any:
        """Return a new buffer in DDR that holds a data file of the design, written and checked as ``put`` does."""
        return self.put(file.path, read_data_file(folder, file))

    def put(self, name: str, data: bytes) -> Any:
        """Return a new buffer in DDR that holds the data, after flushing it and comparing it with what is read back."""
        buffer = self.new(len(data))
        buffer[:] = np.frombuffer(data, np.uint8)
        buffer.flush()
        expected = zlib.crc32(data)
        buffer.invalidate()
        checksum = zlib.crc32(buffer)
        if checksum != expected:
            raise MismatchError(
                f"the checksum of {name} in DDR, just uploaded,",
                f"{checksum:08x}",
                f"{expected:08x}",
                remedy="the cache was not flushed, or the memory is faulty: try again, else restart the board",
            )
        self._uploaded.append((name, buffer, expected))
        return buffer

    def new(self, size: int) -> Any:
        """Return a new buffer of ``size`` bytes in DDR, not initialised. AcceleratorError if the memory is not
        available."""
        try:
            buffer = self._allocate((size,), np.uint8, cacheable=1)
        except (RuntimeError, MemoryError) as error:
            allocated = sum(size for _, size in self.table)
            raise AcceleratorError(
                f"{size} bytes of contiguous memory cannot be allocated: {cut(error)}",
                f"{allocated} bytes are held already",
                remedy="close other accelerators, restart other kernels, or boot with a larger cma",
            ) from error
        self._all.append(buffer)
        return buffer
