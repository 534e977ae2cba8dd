"""Registers of a generated IP, as a driver class for pynq. Importing this module needs pynq."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pynq import DefaultIP

from boards.errors import MissingValueError, listed
from host.board.interrupt import line_of

AP_START, AP_DONE, AP_IDLE, AP_READY, AUTO_RESTART = 1, 2, 4, 8, 0x80
CTRL, GIER, IER, ISR = 0x00, 0x04, 0x08, 0x0C
_LOW = 0xFFFFFFFF


class GeneratedIP(DefaultIP):
    """The pynq driver of a generated IP with ap_ctrl_hs on s_axilite. Register offsets are looked up by name in the
    .hwh.

    A register that already holds the wanted value is not written, which keeps the writes per frame low.

    Attributes:
        scalars: Names of the scalar registers that ``state`` reports.
    """

    scalars: tuple[str, ...] = ()

    def __init__(self, description: Mapping[str, Any]) -> None:
        super().__init__(description)
        registers = description.get("registers") or {}
        self._offsets = {name: int(entry["address_offset"]) for name, entry in registers.items()}
        self._values: dict[int, int] = {}
        self.line = line_of(getattr(self, "interrupt", None))

    # --- registers

    def offset(self, name: str) -> int:
        """Return the byte offset of a register by name. Vitis HLS appends _r to names that are C++ keywords.

        MissingValueError if the .hwh lists no such register.
        """
        stem, _, half = name.rpartition("_")
        for candidate in (name, f"{name}_r", f"{stem}_r_{half}"):
            if candidate in self._offsets:
                return self._offsets[candidate]
        raise MissingValueError(
            f"register {name!r} of the accelerator",
            f"the .hwh lists only {listed(sorted(self._offsets))}",
            remedy="the .hwh belongs to another design: copy .bit, .hwh and manifest.json of one folder",
        )

    def put(self, offset: int, value: int) -> None:
        """Write a value to a register, unless the register already holds it."""
        if self._values.get(offset) != value:
            self.write(offset, value & _LOW)
            self._values[offset] = value

    def put_pointer(self, name: str, address: int) -> None:
        """Write a 64-bit buffer address to the two registers of a pointer argument."""
        self.put(self.offset(f"{name}_1"), address & _LOW)
        self.put(self.offset(f"{name}_2"), address >> 32)

    @property
    def idle(self) -> bool:
        """Return whether the IP neither runs nor is about to run: AP_IDLE, because reading clears AP_DONE."""
        return bool(self.read(CTRL) & (AP_IDLE | AP_START) == AP_IDLE)

    @property
    def may_write(self) -> bool:
        """Return whether the IP may be writing to DDR."""
        return not self.idle

    @property
    def cannot_finish(self) -> bool:
        """Return whether a simulated board reports that the accelerator will not finish. A real board never does."""
        return bool(getattr(self.device, "stop_reason", ""))

    def state(self) -> str:
        """Return the registers that show the IP's state, as text for error messages."""
        control = self.read(CTRL)
        bits = {"AP_START": AP_START, "AP_DONE": AP_DONE, "AP_IDLE": AP_IDLE, "AP_READY": AP_READY}
        bits["AUTO_RESTART"] = AUTO_RESTART
        names = [name for name, bit in bits.items() if control & bit] or ["no bit set"]
        scalars = ", ".join(f"{name} {self.read(self.offset(name))}" for name in self.scalars)
        enabled, pending = self.read(IER), self.read(ISR)
        return f"CTRL {control:#04x} ({' '.join(names)}), {scalars}, IP_IER {enabled:#x}, IP_ISR {pending:#x}"
