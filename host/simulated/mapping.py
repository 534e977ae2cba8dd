"""Memory as the kernel maps it: what is used after it was unmapped ends the process, here as on a board."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
from collections import deque
from typing import Any

PAGE = mmap.PAGESIZE
_NOTHING = 0  # PROT_NONE
_KEPT = 1024

_unmapped: deque[mmap.mmap] = deque(maxlen=_KEPT)
"""The last ones: nothing else is mapped at their addresses, where a late access would not be noticed."""


class MappedMemory:
    """``size`` bytes, of this process alone or of the file ``descriptor`` from ``offset`` on, whole pages."""

    def __init__(self, size: int, descriptor: int = -1, offset: int = 0) -> None:
        self._memory = mmap.mmap(descriptor, -(-size // PAGE) * PAGE, offset=offset)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        # By its address: numpy keeps what it is given from being unmapped, and the kernel asks nobody.
        self.bytes: Any = (ctypes.c_uint8 * size).from_address(address)

    def unmap(self) -> None:
        """Every access from here on is a segmentation fault."""
        with contextlib.suppress(AttributeError, ValueError, OSError):  # gives its pages back; not everywhere
            self._memory.madvise(mmap.MADV_DONTNEED)
        ctypes.CDLL(None).mprotect(ctypes.c_void_p(ctypes.addressof(self.bytes)), len(self._memory), _NOTHING)
        _unmapped.append(self._memory)
