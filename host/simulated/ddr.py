"""DDR memory of the simulated board, allocated in pages. An access outside an allocated buffer is an error."""

from __future__ import annotations

import mmap
import os
import tempfile
import threading
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from boards.errors import SystolicError
from host.simulated.mapping import PAGE, MappedMemory

DDR_BASE = {"aarch64": 0x8_0000_0000, "armv7l": 0x1000_0000}
"""Base addresses by architecture. On a Zynq UltraScale+ it needs 64 bits, so a lost upper half points elsewhere."""

MIN_ALLOCATION = 8192  # bytes, as in XRT
CPU_PATTERN, DDR_PATTERN = 0xA5, 0x5A
"""Contents of memory that was never written, in the CPU's copy and in DDR: no code may rely on zeros."""


_IN_MEMORY = hasattr(os, "memfd_create")


@dataclass(eq=False)
class BusError(SystolicError):
    """The error raised if no memory or register responds to an address. On a board this is a bus error or a decode
    error.

    Attributes:
        address: The first address without a response.
        subject: What should respond there.
    """

    address: int
    subject: str = "buffer"

    def message(self) -> str:
        return f"no {self.subject} answers at {self.address:#x}"


class SimulatedDdr:
    """The DDR memory of a simulated board. Buffers are allocated first-fit in whole pages.

    Attributes:
        data: All bytes of the memory.
        base: Physical address of its first byte.
        allocations: Size of each allocation in bytes, by its offset from the base.
    """

    def __init__(self, size: int) -> None:
        self._file = os.fdopen(os.memfd_create("ddr"), "wb") if _IN_MEMORY else tempfile.TemporaryFile()  # noqa: SIM115
        self._file.truncate(-(-size // PAGE) * PAGE)
        self.data = np.frombuffer(mmap.mmap(self._file.fileno(), 0), np.uint8, size)
        self.base = DDR_BASE["aarch64"]
        self.allocations: dict[int, int] = {}
        self._lock = threading.RLock()

    def allocate(self, count: int) -> int:
        """Allocate ``count`` contiguous bytes of the memory, and return their offset from its base.

        RuntimeError if no contiguous range of that size is free.
        """
        size = max(MIN_ALLOCATION, -(-count // PAGE) * PAGE)
        with self._lock:
            start = 0
            for offset in sorted(self.allocations):
                if start + size <= offset:
                    break
                start = offset + self.allocations[offset]
            if start + size > self.data.size:
                raise RuntimeError(f"BO allocation failed: {count} bytes of contiguous memory are not free")
            self.allocations[start] = size
        self.data[start : start + size] = DDR_PATTERN
        return start

    def close(self) -> None:
        """Close the file of the memory, so that nothing more can be mapped. Existing mappings stay valid."""
        self._file.close()

    def mapped(self, offset: int, count: int) -> MappedMemory:
        """Return a mapping of an allocated buffer, as a program sees it without a cache."""
        return MappedMemory(count, self._file.fileno(), offset)

    def free(self, offset: int) -> None:
        with self._lock:
            del self.allocations[offset]

    def view(self, address: int, count: int) -> npt.NDArray[np.uint8]:
        """Return a view of ``count`` bytes from ``address`` on. BusError if they are not all in one buffer."""
        memory = self.to_buffer_end(address)
        if count > memory.size:
            raise BusError(address + int(memory.size))
        return memory[:count]

    def to_buffer_end(self, address: int) -> npt.NDArray[np.uint8]:
        """Return a view of the bytes from ``address`` to the end of its buffer. BusError if it is in no buffer."""
        offset = address - self.base
        with self._lock:
            for start, size in self.allocations.items():
                if start <= offset < start + size:
                    return self.data[offset : start + size]
        raise BusError(address)

    def to_memory_end(self, address: int) -> npt.NDArray[np.uint8]:
        """Return a view of the bytes from ``address`` to the end of the last buffer. BusError if ``address`` is in no
        buffer."""
        self.to_buffer_end(address)
        with self._lock:
            return self.data[address - self.base : max(start + size for start, size in self.allocations.items())]
