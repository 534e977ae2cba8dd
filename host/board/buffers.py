"""Everything of a design that lies in DDR, allocated together and freed together."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from boards.errors import HostError
from host.contract.layout import Addresses, map_base, place_program
from host.contract.parts import Image, read_image
from host.contract.systolic import SystolicManifest

Allocate = Callable[..., Any]
"""``pynq.allocate``."""


class Memory:
    """Buffers, cacheable, so that the CPU works at full speed and syncs explicitly.

    Created whole or not at all; ``free`` may be called twice. names: the attributes that hold some of them.
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
        """Allocates everything."""
        raise NotImplementedError

    @property
    def table(self) -> tuple[tuple[int, int], ...]:
        """(address, bytes) of every buffer."""
        return tuple((int(one.device_address), int(one.nbytes)) for one in self._all)

    def verify(self) -> None:
        """Reads what was uploaded back from DDR; HostError names what is not there any more."""
        for name, buffer, wanted in self._uploaded:
            buffer.invalidate()
            found = zlib.crc32(buffer)
            if found != wanted:
                raise HostError(
                    f"{name} has checksum {found:08x} in DDR, not {wanted:08x}: something else writes there, or the "
                    "memory is faulty; call reset() to upload it again"
                )

    def free(self) -> None:
        """Gives every buffer back; none may be used after."""
        buffers, self._all = self._all, []
        for name in self.names:
            self.__dict__.pop(name, None)
        self._uploaded = []
        for buffer in buffers:
            buffer.freebuffer()

    def zeros(self, size: int) -> Any:
        """As ``new``, filled."""
        buffer = self.new(size)
        buffer[:] = 0
        return buffer

    def upload(self, folder: Path, image: Image) -> Any:
        """A file of the design, as ``put``."""
        return self.put(image.path, read_image(folder, image))

    def put(self, name: str, data: bytes) -> Any:
        """Into a new buffer, flushed, and read back from DDR."""
        buffer = self.new(len(data))
        buffer[:] = np.frombuffer(data, np.uint8)
        buffer.flush()
        wanted = zlib.crc32(data)
        buffer.invalidate()
        found = zlib.crc32(buffer)
        if found != wanted:
            raise HostError(
                f"{name} was uploaded with checksum {wanted:08x}, but DDR holds {found:08x}: the cache was not "
                "flushed or the memory is faulty; try again, and if it stays, restart the board"
            )
        self._uploaded.append((name, buffer, wanted))
        return buffer

    def new(self, size: int) -> Any:
        """uint8 [size], whatever lies there. HostError where there is no room."""
        try:
            buffer = self._allocate((size,), np.uint8, cacheable=1)
        except (RuntimeError, MemoryError) as error:
            held = sum(size for _, size in self.table)
            raise HostError(
                f"{size} bytes of contiguous memory cannot be allocated ({error}); {held} bytes are held already: "
                "close other accelerators, restart other kernels, or boot with a larger cma"
            ) from error
        self._all.append(buffer)
        return buffer


@dataclass(frozen=True)
class FrameSet:
    """What one batch in flight needs; its passes start at ``first_pass``."""

    first_pass: int
    input: Any
    results: tuple[Any, ...]


class Buffers(Memory):
    """Those of a systolic design."""

    names = ("weights", "requantisers", "inner", "sets", "program")

    def __init__(self, manifest: SystolicManifest, folder: Path, sets: int, allocate: Allocate) -> None:
        self.manifest, self._folder, self._count = manifest, folder, sets
        super().__init__(allocate)

    def fill(self) -> None:
        manifest, folder = self.manifest, self._folder
        self.weights = tuple(self.upload(folder, image) for image in manifest.images.weights)
        self.requantisers = self.upload(folder, manifest.images.requantisers)
        self.inner = self.new(manifest.maps_bytes)
        self.sets = tuple(self._frame_set(index) for index in range(self._count))
        words = np.frombuffer(read_image(folder, manifest.images.program), "<u4").astype(np.uint32)
        if words.size != manifest.passes * manifest.pass_words:
            raise HostError(
                f"{manifest.images.program.path} holds {words.size} words, the manifest says {manifest.passes} passes "
                f"of {manifest.pass_words}; copy the design again"
            )
        placed = place_program(manifest, words.reshape(manifest.passes, -1), self.inner.device_address, self.addresses)
        self.program = self.put("the program", placed.astype("<u4").tobytes())

    @property
    def shown_pass(self) -> int:
        """The first pass of the copy of the program with which the host sees every map of the first set."""
        return len(self.sets) * self.manifest.passes

    @property
    def addresses(self) -> tuple[Addresses, ...]:
        return tuple(
            Addresses(one.input.device_address, tuple(result.device_address for result in one.results))
            for one in self.sets
        )

    @property
    def map_base(self) -> int:
        return map_base(self.inner.device_address, self.addresses)

    def _frame_set(self, index: int) -> FrameSet:
        # No buffer in a local variable: an exception that somebody keeps would keep it too.
        manifest = self.manifest
        return FrameSet(
            index * manifest.passes,
            self.zeros(manifest.batch * manifest.input.bytes),
            tuple(self.new(manifest.batch * manifest.layers[layer].output.bytes) for layer in manifest.output_layers),
        )
