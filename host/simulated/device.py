"""A simulated board: a pynq device that executes the design's simulation library. Importing this needs pynq.

Through ``pynq`` a program sees what it would see on a board:

- registers that clear on read or toggle on write, and an interrupt through axi_intc;
- buffers whose CPU copy and DDR copy differ until they are flushed or invalidated;
- an ``allocate`` that fails before a bitstream is loaded, or if DDR is full;
- addresses above 4 GB, and bus errors at addresses without a slave.

AP_START runs the generated C++, or Verilator's model of an engine in SystemVerilog.
"""

from __future__ import annotations

import ctypes
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pynq import Device
from pynq.buffer import PynqBuffer
from pynq.interrupt import _InterruptController
from pynq.metadata.runtime_metadata_parser import RuntimeMetadataParser
from pynq.ps import Clocks
from pynqmetadata.frontends import Metadata

from host.contract.parts import Manifest
from host.simulated.ddr import CPU_PATTERN, DDR_BASE, BusError, SimulatedDdr
from host.simulated.dma import DmaModel, Stream
from host.simulated.fabric import pointer
from host.simulated.faults import Faults, InjectedFault
from host.simulated.mapping import MappedMemory
from host.simulated.pace import Pace
from host.simulated.registers import InterruptController, Registers, Slave
from host.styles import STYLES


class SimulatedBoard(Device):
    """A pynq device that simulates one board with one design loaded. ``close`` restores pynq's global state.

    Args:
        manifest: The design's manifest.
        library: Its simulation library.
        pace: How long frames take. None: as long as they take to execute.
        ddr_bytes: Size of the memory for ``allocate``.
        faults: Faults to inject; see ``host.simulated.faults``.
        stream: The accelerator that an AXI DMA feeds, if it is not the design's own.
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
        self.faults = faults or Faults()
        self.stop_reason = ""
        self.overruns = 0
        self.register_writes: dict[str, int] = defaultdict(int)
        self.memory = SimulatedDdr(ddr_bytes)
        self.freed_at_work: list[str] = []
        self._mapped: dict[int, MappedMemory] = {}
        self._fabric = STYLES[manifest.style].fabric(self, manifest, library)
        self._stream = stream or self._fabric.stream
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
        """Return the contents of the .hwh next to the .bit, read by pynq's own parser. They are not cached, so they are
        never out of date."""
        description = Path(name).with_suffix(".hwh")
        self.arch = "armv7l" if "processing_system7" in description.read_text("utf-8") else "aarch64"
        self.memory.base = DDR_BASE[self.arch]
        _forget_clocks(self)
        return RuntimeMetadataParser(Metadata(input=description))

    def download(self, bitstream: Any, parser: Any = None) -> None:
        """Stop all simulated hardware and reset all registers, as loading a bitstream does. DDR keeps its contents."""
        for _, _, _, model in self._slaves:
            model.stop()
        parser = parser or self.get_bitfile_metadata(bitstream.bitfile_name)
        self._slaves = self._models(parser)
        self._loaded = True
        self.stop_reason = ""
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

    def allocate(self, shape: Any, dtype: Any, cacheable: int = 0, **_: Any) -> Any:
        if not self._loaded:
            raise RuntimeError("BO allocation failed: no bitstream is loaded")
        element = np.dtype(dtype)
        size = int(np.prod(shape)) * element.itemsize
        if self.faults.allocation():
            raise RuntimeError("BO allocation failed: injected")
        offset = self.memory.allocate(size)
        # Without a cache the CPU reads and writes DDR itself.
        mapping = MappedMemory(max(size, 1)) if cacheable else self.memory.mapped(offset, max(size, 1))
        if cacheable:
            np.frombuffer(mapping.bytes, np.uint8)[:] = CPU_PATTERN
        address = self.memory.base + offset
        buffer = PynqBuffer(
            shape, element, buffer=mapping.bytes, device=self, device_address=address, bo=offset, coherent=False
        )
        self._mapped[address] = mapping
        # pynq frees the buffer through these. Otherwise it would call a munmap that exists only on a board.
        buffer.memory, buffer.pointer, buffer.return_to, buffer.freed = mapping, address, self, True
        return buffer

    def return_pointer(self, address: int) -> None:
        """Free a buffer and unmap the program's memory of it, even if the buffer is still in use.

        If the accelerator is still using the buffer, that is recorded in ``freed_at_work``: a board would let it write
        there.
        """
        offset = address - self.memory.base
        size = self.memory.allocations[offset]
        users = [name for _, _, name, model in self._slaves if model.reaches(address, size)]
        self.freed_at_work += [f"{name} is at work on the buffer at {address:#x}, which is freed" for name in users]
        self._mapped.pop(address).unmap()
        self.memory.free(offset)

    def flush(self, bo: int, offset: int, address: int, count: int) -> None:
        if not self.faults.flush():
            ctypes.memmove(self.memory.data.ctypes.data + bo + offset, address, count)

    def invalidate(self, bo: int, offset: int, address: int, count: int) -> None:
        ctypes.memmove(address, self.memory.data.ctypes.data + bo + offset, count)

    # --- inspection by tests and notebooks

    @property
    def allocations(self) -> int:
        """Number of buffers that are allocated in DDR."""
        return len(self.memory.allocations)

    def ddr(self, address: int, count: int) -> npt.NDArray[np.uint8]:
        """Return ``count`` bytes of DDR as an AXI master in the fabric sees them. BusError outside of allocated
        buffers."""
        return self.memory.view(address, count)

    def inject(self, *faults: InjectedFault) -> None:
        self.faults.inject(*faults)

    def close(self) -> None:
        """Stop all simulated hardware, and restore pynq's global state."""
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
        self.memory.close()

    # --- the fabric

    def _slave(self, address: int) -> tuple[str, int, Slave]:
        for base, size, name, model in (*self._slaves, *self._peripherals):
            if base <= address < base + size:
                return name, address - base, model
        raise BusError(address, "slave")

    def _models(self, parser: Any) -> list[tuple[int, int, str, Slave]]:
        controller = InterruptController()
        self._connect(parser, controller)
        slaves = []
        for name, entry in parser.ip_dict.items():
            if "phys_addr" in entry:
                model = self._model(name, entry, parser, controller)
                slaves.append((int(entry["phys_addr"]), int(entry["addr_range"]), name, model))
        return slaves

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
        offsets = {key: int(register["address_offset"]) for key, register in entry["registers"].items()}
        pins = [pin for path, pin in parser.interrupt_pins.items() if path.startswith(f"{name}/")]
        number = pins[0]["index"] if pins else None

        def irq(level: bool) -> None:
            if number is not None:
                controller.line(number, level)

        return self._fabric.slave(offsets, irq)

    # --- services for the accelerator in the fabric

    def wait_board_time(self, stopped: threading.Event, passes: range, begin: float) -> bool:
        """Wait for the time that the given engine instructions (passes) would take on the board; return False if
        stopped meanwhile."""
        if self.pace is not None:
            remaining = begin + self.pace.seconds(passes.start, len(passes)) - time.perf_counter()
            self.overruns += remaining < 0
            stopped.wait(max(remaining, 0))
        return not stopped.is_set()

    def corrupt(self, registers: Mapping[str, int], start: int) -> None:
        """Invert the words of DDR that injected faults name for this start of the accelerator."""
        for fault in self.faults.corruptions(start):
            word = self.ddr(pointer(registers, fault.buffer) + 4 * fault.word, 4)
            word ^= 0xFF


def _forget_clocks(device: Device | None) -> None:
    """Make pynq forget the clocks of the device that it saw first, and read the clocks of ``device`` next."""
    Clocks.device = device
    if hasattr(Clocks, "_real_instance"):
        del Clocks._real_instance
