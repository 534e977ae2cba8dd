"""A board without a board: a device of the real pynq over the simulation library. Importing this needs pynq.

What a program sees through ``pynq`` is what it would see on the board: registers that clear on read or toggle on
write, an interrupt through axi_intc, buffers whose CPU copy and DDR copy are apart until flush or invalidate, an
``allocate`` that fails before a bitstream is loaded or when DDR is full, addresses above 4 GB, and a bus that
answers only where something is. What runs on AP_START is the generated C++.
"""

from __future__ import annotations

import asyncio
import ctypes
import struct
import threading
import time
import weakref
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from pynq import Device
from pynq.buffer import PynqBuffer
from pynq.interrupt import _InterruptController
from pynq.metadata.runtime_metadata_parser import RuntimeMetadataParser
from pynq.ps import Clocks
from pynqmetadata.frontends import Metadata

from boards.errors import HostError
from host.faults import Fault, Faults
from host.manifest import Manifest
from host.simulated_dma import DmaModel, Stream

DDR_BASE = {"aarch64": 0x8_0000_0000, "armv7l": 0x1000_0000}
"""The upper DDR of a Zynq UltraScale+: an address whose upper half is forgotten points elsewhere."""

PAGE = 4096
LEAST_ALLOCATION = 8192  # bytes; as XRT's
CPU_PATTERN, DDR_PATTERN = 0xA5, 0x5A
"""What lies in memory that nobody wrote: nothing may rely on zeros."""

_MESSAGE_ROOM = 4096
_LIBRARY = threading.Lock()
"""One execution at a time in a process: the library notifies through a static."""


class BusError(MemoryError):
    """Nothing answers at an address; on the board that is a bus error or a decode error."""


class Slave(Protocol):
    """What answers on the bus."""

    def read(self, offset: int) -> int: ...

    def write(self, offset: int, value: int) -> None: ...

    def stop(self) -> None:
        """A bitstream is loaded over it."""


class Registers:
    """A register file that only remembers."""

    def __init__(self, values: Mapping[int, int] | None = None) -> None:
        self.values = defaultdict(int, values or {})

    def read(self, offset: int) -> int:
        return self.values[offset]

    def write(self, offset: int, value: int) -> None:
        self.values[offset] = value

    def stop(self) -> None:
        """A bitstream is loaded over it."""


class InterruptController(Registers):
    """axi_intc (PG099) in level mode, and the UIO object through which Linux would pass it on."""

    ISR, IPR, IER, IAR, SIE, CIE, MER = 0x00, 0x04, 0x08, 0x0C, 0x10, 0x14, 0x1C

    def __init__(self) -> None:
        super().__init__()
        self._events: list[tuple[Any, asyncio.AbstractEventLoop]] = []
        self._lines = 0
        self._lock = threading.RLock()

    def line(self, number: int, level: bool) -> None:
        with self._lock:
            self._lines = self._lines & ~(1 << number) | int(level) << number
            self.values[self.ISR] |= self._lines
            self._fire()

    def read(self, offset: int) -> int:
        with self._lock:
            return self.values[self.ISR] & self.values[self.IER] if offset == self.IPR else self.values[offset]

    def write(self, offset: int, value: int) -> None:
        with self._lock:
            if offset == self.SIE:
                self.values[self.IER] |= value
            elif offset == self.CIE:
                self.values[self.IER] &= ~value
            elif offset == self.IAR:
                # A line that is still high is latched again: the second, bogus interrupt that is seen on boards.
                self.values[self.ISR] = self.values[self.ISR] & ~value | self._lines
            else:
                self.values[offset] = value
            self._fire()

    def add_event(self, event: Any, _number: int) -> None:
        """What ``pynq.uio.UioController`` has."""
        with self._lock:
            self._events.append((event, asyncio.get_running_loop()))
            self._fire()

    def _fire(self) -> None:
        if self.values[self.ISR] & self.values[self.IER] and self.values[self.MER] & 3 == 3:
            waiting, self._events = self._events, []
            for event, loop in waiting:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(event.set)


Kernel = Callable[["AcceleratorModel", Mapping[str, int]], bool]
"""Runs what the registers say; False where it hangs."""


class AcceleratorModel(Registers):
    """ap_ctrl_hs on s_axilite with its interrupt; ``run`` is called in a thread of its own on AP_START."""

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

    def stop(self) -> None:
        self.stopped.set()
        for thread in self._threads:
            thread.join()

    @property
    def _line(self) -> bool:
        return bool(self.values[self.GIER] & 1 and self.values[self.ISR])

    def _control(self, value: int) -> None:
        if value & self.START and self.values[self.CTRL] & self.IDLE:
            self.values[self.CTRL] = self.START
            registers = {name: self.values[offset] for name, offset in self.offsets.items()}
            thread = threading.Thread(target=self._execute, args=(registers, self.starts), daemon=True)
            self.starts += 1
            self._threads = [one for one in self._threads if one.is_alive()] + [thread]
            thread.start()

    def _execute(self, registers: Mapping[str, int], number: int) -> None:
        if not self._run(self, registers) or self.stopped.is_set():
            return
        with self._lock:
            self.values[self.CTRL] = self.DONE | self.IDLE | self.READY
        self._interrupt(number)

    def _interrupt(self, number: int) -> None:
        if self._faults.take("lost interrupt", number):
            return
        late = self._faults.take("late interrupt", number)
        if late:
            self.stopped.wait(late.seconds)
        self._raise_interrupt()
        twice = self._faults.take("double interrupt", number)
        if twice:
            self.stopped.wait(twice.seconds)
            self._raise_interrupt()

    def _raise_interrupt(self) -> None:
        with self._lock:
            self.values[self.ISR] |= self.values[self.IER] & 3
            self._irq(self._line)


@dataclass(frozen=True)
class Pace:
    """How long a frame takes: cycles · time_scale / clock, or however long the simulation runs, if that is longer.

    source: "traced" or "modelled", whichever the cycles of the passes are; it is printed with every rate.
    """

    pass_cycles: tuple[float, ...]
    clock_mhz: float
    time_scale: float
    source: str

    def seconds(self, first: int, count: int) -> float:
        total = len(self.pass_cycles)
        cycles = sum(self.pass_cycles[index % total] for index in range(first, first + count))
        return cycles * self.time_scale / (self.clock_mhz * 1e6)


class SimulatedBoard(Device):
    """One board with one design. ``close`` gives back what it took of pynq's global state.

    manifest: of the design. library: its simulation library. pace: how long frames take, None for as fast as
    they are executed. ddr_bytes: what ``allocate`` may give. faults: what goes wrong; see ``host.faults``.
    stream: the streaming accelerator behind an AXI DMA, if the description has one.
    """

    def __init__(
        self,
        manifest: Manifest,
        library: Path,
        pace: Pace | None = None,
        ddr_bytes: int = 1 << 30,
        faults: Faults | None = None,
        stream: Stream | None = None,
    ) -> None:
        super().__init__("simulated")
        self.name = "simulated " + manifest.board
        self.arch = "aarch64"
        self.capabilities = {"REGISTER_RW": True}
        self.manifest, self.pace = manifest, pace
        self._stream = stream
        self.faults = faults or Faults()
        self.trouble = ""
        self.overruns = 0
        self.register_writes: dict[str, int] = defaultdict(int)
        self._library = _load(library)
        self._memory = _Ddr(ddr_bytes)
        self._slaves: list[tuple[int, int, str, Slave]] = []
        self._irqs: list[int] = []
        self._loaded = False
        self._peripherals: list[tuple[int, int, str, Slave]] = [
            (0xFF5E0000, 0x1000, "crl_apb", Registers({0x20: 0x15A00, 0xC0: 0x1010800})),  # IOPLL 1500 MHz
            (0xFD1A0000, 0x1000, "crf_apb", Registers({0x20: 0x14800, 0x60: 0x3000100})),
            (0xF8000000, 0x1000, "slcr", Registers({0x108: 0x1E000, 0x100: 0x28000, 0x170: 0x400800})),  # Zynq-7000
        ]
        self._before = getattr(Device, "_active_device", None)
        Device.active_device = self
        _forget_clocks(self)

    # --- what pynq asks of a device

    def get_bitfile_metadata(self, name: str, partial: bool = False) -> Any:
        """The .hwh beside the .bit, read by pynq's own parser; no cache, so never a stale one."""
        description = Path(name).with_suffix(".hwh")
        self.arch = "armv7l" if "processing_system7" in description.read_text("utf-8") else "aarch64"
        _forget_clocks(self)
        return RuntimeMetadataParser(Metadata(input=description))

    def download(self, bitstream: Any, parser: Any = None) -> None:
        """Whatever ran is stopped; every register is as after power-up. DDR keeps its contents."""
        for _, _, _, model in self._slaves:
            model.stop()
        parser = parser or self.get_bitfile_metadata(bitstream.bitfile_name)
        self._slaves = self._models(parser)
        self._loaded = True
        self.trouble = ""
        self.post_download(bitstream, parser, self.name)

    def read_registers(self, address: int, count: int) -> bytes:
        _, offset, model = self._slave(address)
        words = (model.read(offset + i) & 0xFFFFFFFF for i in range(0, count, 4))
        return b"".join(struct.pack("<I", word) for word in words)

    def write_registers(self, address: int, data: bytes) -> None:
        name, offset, model = self._slave(address)
        data = bytes(data)
        for i in range(0, len(data), 4):
            self.register_writes[name] += 1
            model.write(offset + i, struct.unpack_from("<I", data, i)[0])

    @property
    def base(self) -> int:
        """Physical address of the first byte that ``allocate`` gives."""
        return DDR_BASE[self.arch]

    def allocate(self, shape: Any, dtype: Any, cacheable: int = 0, **_: Any) -> Any:
        if not self._loaded:
            raise RuntimeError("BO allocation failed: no bitstream is loaded")
        wanted = np.dtype(dtype)
        size = int(np.prod(shape)) * wanted.itemsize
        if self.faults.allocation():
            raise RuntimeError("BO allocation failed: injected")
        offset = self._memory.take(size)
        cpu = np.full(size, CPU_PATTERN, np.uint8)
        buffer = PynqBuffer(
            shape, wanted, buffer=cpu, device=self, device_address=self.base + offset, bo=offset, coherent=False
        )
        weakref.finalize(buffer, self._memory.give_back, offset)
        return buffer

    def flush(self, bo: int, offset: int, address: int, count: int) -> None:
        if not self.faults.flush():
            ctypes.memmove(self._memory.data.ctypes.data + bo + offset, address, count)

    def invalidate(self, bo: int, offset: int, address: int, count: int) -> None:
        ctypes.memmove(address, self._memory.data.ctypes.data + bo + offset, count)

    # --- what tests and notebooks ask

    @property
    def allocations(self) -> int:
        """Buffers that live."""
        return len(self._memory.taken)

    def ddr(self, address: int, count: int) -> npt.NDArray[np.uint8]:
        """What a master in the fabric sees; BusError outside what is allocated."""
        return self._memory.view(address - self.base, count)

    def inject(self, *faults: Fault) -> None:
        self.faults.inject(*faults)

    def close(self) -> None:
        """Stops what runs and leaves pynq as it was."""
        for _, _, _, model in self._slaves:
            model.stop()
        for irq in self._irqs:
            _InterruptController._uio_devices.pop(irq, None)
        _InterruptController._controllers.clear()
        if getattr(Device, "_active_device", None) is self:
            Device._active_device = self._before
            if self._before is None:
                del Device._active_device
        _forget_clocks(None)

    # --- the fabric

    def _slave(self, address: int) -> tuple[str, int, Slave]:
        for base, size, name, model in (*self._slaves, *self._peripherals):
            if base <= address < base + size:
                return name, address - base, model
        raise BusError(f"no slave answers at {address:#x}")

    def _models(self, parser: Any) -> list[tuple[int, int, str, Slave]]:
        controller = InterruptController()
        self._connect(parser, controller)
        found = []
        for name, entry in parser.ip_dict.items():
            if "phys_addr" in entry:
                model = self._model(name, entry, parser, controller)
                found.append((int(entry["phys_addr"]), int(entry["addr_range"]), name, model))
        return found

    def _connect(self, parser: Any, controller: InterruptController) -> None:
        for entry in parser.interrupt_controllers.values():
            if entry["parent"] == "":
                _InterruptController._uio_devices[entry["raw_irq"]] = controller
                self._irqs.append(entry["raw_irq"])

    def _model(self, name: str, entry: Any, parser: Any, controller: InterruptController) -> Slave:
        if ":axi_intc:" in entry["type"]:
            return controller
        if ":axi_dma:" in entry["type"] and self._stream is not None:
            return DmaModel(self.ddr, self._stream)
        if entry["type"] != self.manifest.vlnv:
            return Registers()
        pins = [pin for path, pin in parser.interrupt_pins.items() if path.startswith(f"{name}/")]
        number = pins[0]["index"] if pins else None

        def irq(level: bool) -> None:
            if number is not None:
                controller.line(number, level)

        offsets = {key: int(one["address_offset"]) for key, one in entry["registers"].items()}
        return AcceleratorModel(offsets, self._execute, self.faults, irq)

    def _execute(self, model: AcceleratorModel, registers: Mapping[str, int]) -> bool:
        """One start; False where it does not end, as with a decode error or a program that makes no sense."""
        began = time.perf_counter()
        number = model.starts - 1
        for fault in self.faults.corruptions(number):
            self._corrupt(registers, fault)
        hang = self.faults.take("hang", number)
        with _LIBRARY:
            self.trouble = self._call(model, registers, hang)
        if self.trouble or (hang and model.stopped.wait()):
            return False
        return self._keep_pace(model, registers, began)

    def _keep_pace(self, model: AcceleratorModel, registers: Mapping[str, int], began: float) -> bool:
        if self.pace is not None:
            left = began + self.pace.seconds(registers["first"], registers["count"]) - time.perf_counter()
            self.overruns += left < 0
            model.stopped.wait(max(left, 0))
        return not model.stopped.is_set()

    def _corrupt(self, registers: Mapping[str, int], fault: Fault) -> None:
        word = self.ddr(_pointer(registers, fault.buffer) + 4 * fault.word, 4)
        word ^= 0xFF

    def _call(self, model: AcceleratorModel, registers: Mapping[str, int], hang: Fault | None) -> str:
        """The generated code over DDR; an empty sentence, or what stopped it."""
        current = ctypes.c_uint32()

        def after_pass(index: int) -> None:
            with model._lock:
                model.values[model.offsets["current"]] = index
            if hang and index - registers["first"] >= hang.in_pass:
                model.stopped.wait()

        message = ctypes.create_string_buffer(_MESSAGE_ROOM)
        try:
            failed = self._library.systolic_simulate(
                *self._arguments(registers), ctypes.c_uint32(registers["first"]), ctypes.c_uint32(registers["count"]),
                ctypes.byref(current), _CALLBACK(after_pass), message, ctypes.c_size_t(_MESSAGE_ROOM),
            )  # fmt: skip
        except BusError as error:
            return str(error)
        model.values[model.offsets["current"]] = current.value
        return message.value.decode("utf-8", "replace") if failed else ""

    def _arguments(self, registers: Mapping[str, int]) -> tuple[Any, ...]:
        """Pointers and sizes in words, taken from the registers and from what is allocated there."""
        ports = self.manifest.weight_ports
        weights = [self._memory.rest(_pointer(registers, f"weights_{port}") - self.base) for port in range(ports)]
        images = (ctypes.c_void_p * ports)(*(one.ctypes.data for one in weights))
        maps = self._map_arena(registers)
        requantisers = self._memory.rest(_pointer(registers, "requantisers") - self.base)
        program = self._memory.rest(_pointer(registers, "program") - self.base)
        lanes = self.manifest.lanes
        return (
            ctypes.c_void_p(maps.ctypes.data), ctypes.c_size_t(maps.size // lanes),
            images, ctypes.c_size_t(min(one.size for one in weights) // lanes),
            ctypes.c_void_p(requantisers.ctypes.data), ctypes.c_size_t(requantisers.size // 16),
            ctypes.c_void_p(program.ctypes.data), ctypes.c_size_t(program.size // 4),
        )  # fmt: skip

    def _map_arena(self, registers: Mapping[str, int]) -> npt.NDArray[np.uint8]:
        """From the map pointers, which must agree, to the end of what is allocated."""
        found = {
            _pointer(registers, f"maps_{way}_{port}")
            for port in range(self.manifest.map_ports)
            for way in ("read", "write")
        }
        if len(found) != 1:
            raise BusError(f"the map pointers are {', '.join(f'{one:#x}' for one in sorted(found))}, not one address")
        return self._memory.from_here(found.pop() - self.base)


class _Ddr:
    """Contiguous memory, given out first-fit in pages."""

    def __init__(self, size: int) -> None:
        whole = np.zeros(size + PAGE, np.uint8)
        start = -whole.ctypes.data % PAGE
        self.data = whole[start : start + size]
        self.taken: dict[int, int] = {}
        self._lock = threading.RLock()

    def take(self, count: int) -> int:
        size = max(LEAST_ALLOCATION, -(-count // PAGE) * PAGE)
        with self._lock:
            at = 0
            for offset in sorted(self.taken):
                if at + size <= offset:
                    break
                at = offset + self.taken[offset]
            if at + size > self.data.size:
                raise RuntimeError(f"BO allocation failed: {count} bytes of contiguous memory are not free")
            self.taken[at] = size
        self.data[at : at + size] = DDR_PATTERN
        return at

    def give_back(self, offset: int) -> None:
        with self._lock:
            del self.taken[offset]

    def view(self, offset: int, count: int) -> npt.NDArray[np.uint8]:
        rest = self.rest(offset)
        if count > rest.size:
            raise BusError(f"nothing answers {offset + rest.size:#x} bytes into DDR: no buffer is allocated there")
        return rest[:count]

    def rest(self, offset: int) -> npt.NDArray[np.uint8]:
        """From ``offset`` to the end of the buffer that it lies in."""
        with self._lock:
            for start, size in self.taken.items():
                if start <= offset < start + size:
                    return self.data[offset : start + size]
        raise BusError(f"nothing answers {offset:#x} bytes into DDR: no buffer is allocated there")

    def from_here(self, offset: int) -> npt.NDArray[np.uint8]:
        """From ``offset``, where a buffer is, to the end of the last buffer."""
        self.rest(offset)
        with self._lock:
            return self.data[offset : max(start + size for start, size in self.taken.items())]


_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_uint32)


def _load(path: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise HostError(f"a simulation library cannot be loaded ({error}); remove it and build it again") from error


def _pointer(registers: Mapping[str, int], name: str) -> int:
    return registers[f"{name}_1"] | registers[f"{name}_2"] << 32


def _forget_clocks(device: Device | None) -> None:
    """pynq keeps the clocks of the first device that it saw."""
    Clocks.device = device
    if hasattr(Clocks, "_real_instance"):
        del Clocks._real_instance
