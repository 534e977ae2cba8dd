"""The accelerators' registers, as drivers of the real pynq. Importing this needs pynq."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from pynq import DefaultIP

from boards.errors import HostError
from host.board.interrupt import Line, line_of

AP_START, AP_DONE, AP_IDLE, AP_READY, AUTO_RESTART = 1, 2, 4, 8, 0x80
_CTRL, _GIER, _IER, _ISR = 0x00, 0x04, 0x08, 0x0C
_LOW = 0xFFFFFFFF
_LOOK_SECONDS = 0.05
"""How long an interrupt may be late before the registers are asked: none is lost for good."""
_NAP_SECONDS = 20e-6


class GeneratedIP(DefaultIP):
    """A generated IP, ap_ctrl_hs on s_axilite. Offsets come from the .hwh by name.

    A register that holds the wanted value already is not written: a frame costs as few writes as possible.
    """

    scalars: tuple[str, ...] = ()

    def __init__(self, description: Mapping[str, Any]) -> None:
        super().__init__(description)
        registers = description.get("registers") or {}
        self._offsets = {name: int(entry["address_offset"]) for name, entry in registers.items()}
        self._held: dict[int, int] = {}
        self.line = line_of(getattr(self, "interrupt", None))

    # --- registers

    def offset(self, name: str) -> int:
        """Vitis HLS appends _r to names that a hardware language keeps for itself."""
        stem, _, half = name.rpartition("_")
        for candidate in (name, f"{name}_r", f"{stem}_r_{half}"):
            if candidate in self._offsets:
                return self._offsets[candidate]
        raise HostError(
            f"the .hwh has no register {name!r} for the accelerator, only {', '.join(sorted(self._offsets))}; "
            "it belongs to another design: copy .bit, .hwh and manifest.json of one folder"
        )

    def put(self, offset: int, value: int) -> None:
        """Writes where another value stands."""
        if self._held.get(offset) != value:
            self.write(offset, value & _LOW)
            self._held[offset] = value

    def put_pointer(self, name: str, address: int) -> None:
        """Both halves: buffers may lie above 4 GB."""
        self.put(self.offset(f"{name}_1"), address & _LOW)
        self.put(self.offset(f"{name}_2"), address >> 32)

    @property
    def idle(self) -> bool:
        """Neither runs nor is about to. Reading clears AP_DONE, so that AP_IDLE is what is looked at."""
        return bool(self.read(_CTRL) & (AP_IDLE | AP_START) == AP_IDLE)

    @property
    def hopeless(self) -> bool:
        """A simulated board knows when a start will not end; a board does not say."""
        return bool(getattr(self.device, "trouble", ""))

    def state(self) -> str:
        """The registers that tell where it stands, for a person."""
        control = self.read(_CTRL)
        bits = {"AP_START": AP_START, "AP_DONE": AP_DONE, "AP_IDLE": AP_IDLE, "AP_READY": AP_READY}
        bits["AUTO_RESTART"] = AUTO_RESTART
        names = [name for name, bit in bits.items() if control & bit] or ["no bit set"]
        rest = ", ".join(f"{name} {self.read(self.offset(name))}" for name in self.scalars)
        enabled, pending = self.read(_IER), self.read(_ISR)
        return f"CTRL {control:#04x} ({' '.join(names)}), {rest}, IP_IER {enabled:#x}, IP_ISR {pending:#x}"


class SystolicIP(GeneratedIP):
    """The systolic engine: a start runs passes of its program."""

    bindto = ["systolic:cnn:systolic_top:1.0"]  # noqa: RUF012 (pynq reads a list)
    scalars = ("first", "count", "current")

    def __init__(self, description: Mapping[str, Any]) -> None:
        super().__init__(description)
        self._started = (0, 0)
        self._usual: dict[tuple[int, int], float] = {}  # seconds, by what was started
        self.missed_interrupts = 0

    @property
    def current_pass(self) -> int:
        return int(self.read(self.offset("current")))

    def start(self, first: int, count: int) -> None:
        """Passes ``first`` … ``first + count − 1``; returns at once."""
        self._started = (first, count)
        self.put(self.offset("first"), first)
        self.put(self.offset("count"), count)
        self.write(_CTRL, AP_START)

    def poll(self, timeout_s: float) -> bool:
        """Whether it became idle in time. Sleeps through most of what such a start usually takes.

        The clock may have run out while this process was not running: it is looked at once more before that is said.
        """
        began = time.perf_counter()
        usual = self._usual.get(self._started, 0.0)
        time.sleep(min(0.9 * usual, timeout_s))
        overslept = usual > 0 and self.idle
        while not self.idle:
            if (time.perf_counter() - began > timeout_s or self.hopeless) and not self.idle:
                return False
            time.sleep(_NAP_SECONDS)
        # It may have been idle for long: only a frame whose end was seen tells what one takes.
        self._usual[self._started] = 0.5 * usual if overslept else time.perf_counter() - began
        return True

    def enable_interrupt(self) -> None:
        self.put(_GIER, 1)
        self.put(_IER, 1)

    async def interrupted(self, timeout_s: float) -> bool:
        """As ``poll``, by the interrupt. A bogus one is ignored, a late or lost one does not matter."""
        assert self.line is not None
        until = time.perf_counter() + timeout_s
        while not self.idle:
            if (time.perf_counter() > until or self.hopeless) and not self.idle:
                return False
            await self._one_interrupt(self.line)
        self._acknowledge(self.line)
        return True

    async def _one_interrupt(self, line: Line) -> None:
        try:
            await asyncio.wait_for(line.wait(), _LOOK_SECONDS)
        except asyncio.TimeoutError:  # Python 3.10 has a name of its own for it
            if self.idle:
                self.missed_interrupts += 1
                line.disarmed()
            return
        self._acknowledge(line)

    def _acknowledge(self, line: Line) -> None:
        """IP_ISR is toggled by what is written: only bits that are set may be. The controller latches a level."""
        pending = self.read(_ISR)
        if pending:
            self.write(_ISR, pending)
            line.acknowledge()


class StreamingIP(GeneratedIP):
    """The streaming pipeline: started once, it takes frames for ever."""

    bindto = ["systolic:cnn:streaming_top:1.0"]  # noqa: RUF012 (pynq reads a list)
    scalars = ("frames",)

    def run(self, frames: int) -> None:
        """From here on; after each ``frames`` it starts itself again."""
        self.put(self.offset("frames"), frames)
        self.write(_CTRL, AP_START | AUTO_RESTART)
