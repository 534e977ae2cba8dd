"""Memory mapped by the kernel: an access after it was unmapped ends the process, here as on a board."""

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
"""The last mappings that were unmapped.

They are kept so that their addresses are not reused, which would hide an error.
"""


class MappedMemory:
    """Memory of ``size`` bytes mapped by the kernel: anonymous, or of the file ``descriptor`` from ``offset`` on, in
    whole pages."""

    def __init__(self, size: int, descriptor: int = -1, offset: int = 0) -> None:
        self._memory = mmap.mmap(descriptor, -(-size // PAGE) * PAGE, offset=offset)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        # Made from the address: an object that numpy knew of could not be unmapped.
        self.bytes: Any = (ctypes.c_uint8 * size).from_address(address)

    def unmap(self) -> None:
        """Make every later access a segmentation fault."""
        with contextlib.suppress(AttributeError, ValueError, OSError):  # frees the pages; not available everywhere
            self._memory.madvise(mmap.MADV_DONTNEED)
        ctypes.CDLL(None).mprotect(ctypes.c_void_p(ctypes.addressof(self.bytes)), len(self._memory), _NOTHING)
        _unmapped.append(self._memory)
