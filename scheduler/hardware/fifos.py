"""Which FIFO Vitis HLS builds of a stream, and how long a word takes through it: one rule for area and trace."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from scheduler.hardware.primitives import LEAST_FIFO_DEPTH

SHIFT_BITS = 1024
"""Without a directive, a FIFO of at most so many bits in all is a shift register (UG1399, config_storage fifo,
-auto_srl_max_bits), and so is one of LEAST_FIFO_DEPTH words (-auto_srl_max_depth); every other is a memory."""

SHIFT_REGISTER, MEMORY, LUT_MEMORY = "srl", "bram", "lutram"
"""The two kinds that Vitis HLS builds, by their names in BIND_STORAGE, and that of rtl_templates/common/fifo.sv."""

SHIFT_LATENCY, MEMORY_LATENCY = 1, 2
"""Cycles from a write to the first in which the word can be read. A shift register shows it in the next cycle; a memory
has a register at its output («RAW latency» in the FIFOs that Vitis HLS 2022.2 and 2023.2 write)."""

LATENCIES = {SHIFT_REGISTER: SHIFT_LATENCY, MEMORY: MEMORY_LATENCY, LUT_MEMORY: 1}
"""Cycles by kind; common/fifo.sv shows a word in the cycle after it was written."""


IN_STEP = "both ends run in step"
"""The reason of a FIFO that is as deep as both ends need to work in every cycle."""


@dataclass(frozen=True)
class FifoRow:
    """FIFOs of a design that are alike, as reports and JSON list them.

    Attributes:
        name: The stream, by its name in the sources.
        count: How many there are.
        bits: Bits of a word.
        depth: Words that it holds.
        kind: srl, bram or lutram.
        reason: Why it has that depth.
    """

    name: str
    count: int
    bits: int
    depth: int
    kind: str
    reason: str

    @property
    def latency(self) -> int:
        """Cycles from a write to the first in which the word can be read."""
        return LATENCIES[self.kind]

    def values(self) -> dict[str, str | int]:
        """Return the object of the JSON."""
        return {**asdict(self), "latency": self.latency}


def fifo_kind(bits: int, depth: int, bound: str = "") -> str:
    """Return the kind of a FIFO of ``depth`` words of ``bits``. bound: the impl of its BIND_STORAGE, "" without one."""
    if bound:
        return bound
    return SHIFT_REGISTER if depth <= LEAST_FIFO_DEPTH or bits * depth <= SHIFT_BITS else MEMORY
