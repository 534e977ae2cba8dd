"""What the simulated accelerator does when it is started: the generated C++ over what DDR holds."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import HostError
from host.contract.systolic import SystolicManifest
from host.simulated.ddr import BusError, Ddr
from host.simulated.faults import Fault
from host.simulated.registers import AcceleratorModel

MESSAGE_ROOM = 4096
_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_uint32)
AT_ONCE = threading.Lock()
"""One execution at a time in a process: the library notifies through a static."""


class Execution:
    """A design's simulation library, over a board's DDR. HostError where it cannot be loaded."""

    def __init__(self, library: Path, manifest: SystolicManifest, ddr: Ddr) -> None:
        self._library = load_library(library)
        self._manifest, self._ddr = manifest, ddr

    def run(self, model: AcceleratorModel, registers: Mapping[str, int], hang: Fault | None) -> str:
        """The generated code over DDR; an empty sentence, or what stopped it."""
        current = ctypes.c_uint32()

        def after_pass(index: int) -> None:
            model.show("current", index)
            if hang and index - registers["first"] >= hang.in_pass:
                model.stopped.wait()

        message = ctypes.create_string_buffer(MESSAGE_ROOM)
        try:
            with AT_ONCE:
                failed = self._library.systolic_simulate(
                    *self._arguments(registers),
                    ctypes.c_uint32(registers["first"]),
                    ctypes.c_uint32(registers["count"]),
                    ctypes.byref(current),
                    _CALLBACK(after_pass),
                    message,
                    ctypes.c_size_t(MESSAGE_ROOM),
                )
        except BusError as error:
            return str(error)
        model.show("current", current.value)
        return message.value.decode("utf-8", "replace") if failed else ""

    def _arguments(self, registers: Mapping[str, int]) -> tuple[Any, ...]:
        """Pointers and sizes in words, taken from the registers and from what is allocated there."""
        ports = self._manifest.array.weight_ports
        weights = [self._ddr.rest(pointer(registers, f"weights_{port}")) for port in range(ports)]
        images = (ctypes.c_void_p * ports)(*(one.ctypes.data for one in weights))
        maps = self._map_arena(registers)
        requantisers = self._ddr.rest(pointer(registers, "requantisers"))
        program = self._ddr.rest(pointer(registers, "program"))
        word = self._manifest.word_bytes
        return (
            ctypes.c_void_p(maps.ctypes.data),
            ctypes.c_size_t(maps.size // word),
            images,
            ctypes.c_size_t(min(one.size for one in weights) // self._manifest.weight_word_bytes),
            ctypes.c_void_p(requantisers.ctypes.data),
            ctypes.c_size_t(requantisers.size // 16),
            ctypes.c_void_p(program.ctypes.data),
            ctypes.c_size_t(program.size // 4),
        )

    def _map_arena(self, registers: Mapping[str, int]) -> npt.NDArray[np.uint8]:
        """From the map pointers, which must agree, to the end of what is allocated."""
        found = {
            pointer(registers, f"maps_{way}_{port}")
            for port in range(self._manifest.array.map_ports)
            for way in ("read", "write")
        }
        if len(found) != 1:
            raise BusError(f"the map pointers are {', '.join(f'{one:#x}' for one in sorted(found))}, not one address")
        return self._ddr.from_here(found.pop())


def load_library(path: Path) -> ctypes.CDLL:
    """HostError where it is damaged or of another machine."""
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise HostError(f"a simulation library cannot be loaded ({error}); remove it and build it again") from error


def pointer(registers: Mapping[str, int], name: str) -> int:
    """Both halves of an address."""
    return registers[f"{name}_1"] | registers[f"{name}_2"] << 32
