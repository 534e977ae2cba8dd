"""The systolic accelerator of the simulated board: registers, interrupt, and the generated C++ over simulated DDR."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from boards.errors import MismatchError
from host.contract.libraries import StoppedError, SystolicLibrary, SystolicMemory
from host.contract.manifest import of_style
from host.contract.parts import Manifest
from host.contract.systolic import SystolicManifest
from host.simulated.ddr import BusError
from host.simulated.fabric import FabricBoard, pointer
from host.simulated.faults import Faults, InjectedFault
from host.simulated.registers import Registers

Kernel = Callable[["SystolicModel", Mapping[str, int]], bool]
"""Runs the passes that the registers select. Returns False if it hangs."""


class SystolicModel(Registers):
    """Model of the engine's registers (ap_ctrl_hs on s_axilite) and interrupt. AP_START calls ``run`` in a thread of
    its own."""

    CTRL, GIER, IER, ISR = 0x00, 0x04, 0x08, 0x0C
    START, DONE, IDLE, READY = 1, 2, 4, 8

    def __init__(self, offsets: Mapping[str, int], run: Kernel, faults: Faults, irq: Callable[[bool], None]) -> None:
        super().__init__({self.CTRL: self.IDLE})
        self.offsets = dict(offsets)
        self.stopped = threading.Event()
        self.starts = 0
        self._run, self._faults, self._irq = run, faults, irq
        self._lock = threading.RLock()
        self._threads: list[threading.Thread] = []

    def read(self, offset: int) -> int:
        with self._lock:
            value = self.values[offset]
            if offset == self.CTRL:
                self.values[offset] &= ~(self.DONE | self.READY)
                value |= int(self._line) << 9
            return value

    def write(self, offset: int, value: int) -> None:
        with self._lock:
            if offset == self.CTRL:
                self._control(value)
            elif offset == self.ISR:
                self.values[offset] ^= value  # toggle on write
            else:
                self.values[offset] = value
            self._irq(self._line)

    def show(self, name: str, value: int) -> None:
        """Set the value of a register that the accelerator writes and the host reads."""
        with self._lock:
            self.values[self.offsets[name]] = value

    def stop(self) -> None:
        self.stopped.set()
        with self._lock:  # a start may just be written
            threads = [thread for thread in self._threads if thread.ident is not None]
        for thread in threads:
            thread.join()

    def reaches(self, address: int, size: int) -> bool:
        """Return whether the engine is running and may access this range of DDR.

        Maps may be anywhere above the map pointers.
        """
        with self._lock:
            if self.values[self.CTRL] & self.IDLE or self.stopped.is_set():
                return False
            registers = self.named()
        names = {name.rpartition("_")[0] for name in registers if name.endswith("_1")}
        places = {name: pointer(registers, name) for name in names if f"{name}_2" in registers}
        return any(
            address <= place < address + size or (name.startswith("maps_") and place <= address)
            for name, place in places.items()
        )

    def named(self) -> dict[str, int]:
        """Return the value of every register by its name."""
        return {name: self.values[offset] for name, offset in self.offsets.items()}

    @property
    def _line(self) -> bool:
        return bool(self.values[self.GIER] & 1 and self.values[self.ISR])

    def _control(self, value: int) -> None:
        if value & self.START and self.values[self.CTRL] & self.IDLE:
            self.values[self.CTRL] = self.START
            registers = self.named()
            thread = threading.Thread(target=self._execute, args=(registers, self.starts), daemon=True)
            self.starts += 1
            self._threads = [earlier for earlier in self._threads if earlier.is_alive()] + [thread]
            thread.start()

    def _execute(self, registers: Mapping[str, int], number: int) -> None:
        if not self._run(self, registers) or self.stopped.is_set():
            return
        lost, late, twice = (self._faults.pop_due(f"{kind} interrupt", number) for kind in ("lost", "late", "double"))
        with self._lock:
            self.values[self.CTRL] = self.DONE | self.IDLE | self.READY
            if not (lost or late):
                self._raise_interrupt()
        for again in (late, twice):
            if again:
                self.stopped.wait(again.seconds)
                self._raise_interrupt()

    def _raise_interrupt(self) -> None:
        with self._lock:
            self.values[self.ISR] |= self.values[self.IER] & 3
            self._irq(self._line)


class SystolicFabric:
    """The simulated accelerator (``host.simulated.fabric.SimulatedFabric``) of a systolic design, executed by its
    simulation library.

    DamagedFileError if it cannot be loaded.
    """

    stream = None

    def __init__(self, board: FabricBoard, manifest: Manifest, library: Path) -> None:
        self._board, self._manifest = board, of_style(SystolicManifest, manifest)
        self._library = SystolicLibrary(library, self._manifest)

    def slave(self, offsets: Mapping[str, int], irq: Callable[[bool], None]) -> SystolicModel:
        """Return a new model of the engine's registers, as after loading a bitstream."""
        return SystolicModel(offsets, self._start, self._board.faults, irq)

    def _start(self, model: SystolicModel, registers: Mapping[str, int]) -> bool:
        """Execute the engine instructions (passes) that the registers select, as one start, and return whether it
        ended.

        Return False if it does not end, for instance after a decode error or with an invalid program.
        """
        begin, start = time.perf_counter(), model.starts - 1
        hang = self._board.faults.pop_due("hang", start)
        try:
            self._board.corrupt(registers, start)
            self._board.stop_reason = self._run(model, registers, hang)
        except Exception as error:  # this is the start's own thread, so no caller would see the exception
            self._board.stop_reason = f"{type(error).__name__}: {error}"
        if self._board.stop_reason or (hang and model.stopped.wait()):
            return False
        first = registers["first"]
        return self._board.wait_board_time(model.stopped, range(first, first + registers["count"]), begin)

    def _run(self, model: SystolicModel, registers: Mapping[str, int], hang: InjectedFault | None) -> str:
        """Execute the generated code of the selected instructions on the simulated DDR. Return "" or the reason why it
        stopped.

        A start that should hang is executed up to its last pass. It does not wait inside the generated code, because
        other threads of this process may need that code.
        """
        count = registers["count"] if hang is None else min(registers["count"], hang.in_pass + 1)
        try:
            memory = self._memory(registers)
            current = self._library.run(memory, registers["first"], count, lambda index: model.show("current", index))
        except (BusError, MismatchError) as error:
            return str(error)
        except StoppedError as error:
            model.show("current", error.current)
            return error.sentence
        if hang is None:
            model.show("current", current)
        return ""

    def _memory(self, registers: Mapping[str, int]) -> SystolicMemory:
        """Return views of DDR from each pointer register's address to the end of the buffer there."""
        ports = self._manifest.array.weight_ports
        weights = tuple(
            self._board.memory.to_buffer_end(pointer(registers, f"weights_{port}")) for port in range(ports)
        )
        requantisers = self._board.memory.to_buffer_end(pointer(registers, "requantisers"))
        return SystolicMemory(
            self._map_arena(registers),
            weights,
            requantisers,
            self._board.memory.to_buffer_end(pointer(registers, "program")),
        )

    def _map_arena(self, registers: Mapping[str, int]) -> npt.NDArray[np.uint8]:
        """Return a view of DDR from the map pointers' address, which must be the same, to the end of the last
        buffer."""
        addresses = {
            pointer(registers, f"maps_{way}_{port}")
            for port in range(self._manifest.array.maps_ports)
            for way in ("read", "write")
        }
        if len(addresses) != 1:
            named = ", ".join(f"{address:#x}" for address in sorted(addresses))
            raise MismatchError("the addresses in the map pointers", named, "each other")
        return self._board.memory.to_memory_end(addresses.pop())
