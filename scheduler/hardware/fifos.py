"""The kind and the latency of the FIFO that Vitis HLS builds for a stream. Area model and cycle trace use this rule."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from scheduler.hardware.primitives import MIN_FIFO_DEPTH

SHIFT_BITS = 1024
"""Maximum bits, width times depth, of a FIFO that Vitis HLS builds as a shift register if no directive binds it
(UG1399, config_storage fifo, -auto_srl_max_bits). A FIFO of at most MIN_FIFO_DEPTH words is a shift register too
(-auto_srl_max_depth). All other FIFOs are memories."""

SHIFT_REGISTER, MEMORY, LUT_MEMORY = "srl", "bram", "lutram"
"""The kinds of FIFO. Vitis HLS builds the first two, and their names are those in BIND_STORAGE. The third is
rtl_templates/common/fifo.sv."""

SHIFT_LATENCY, MEMORY_LATENCY = 1, 2
"""Cycles from a write to the first cycle in which the word can be read. A shift register shows the word in the next
cycle. A memory has an output register («RAW latency» in the FIFOs that Vitis HLS 2022.2 and 2023.2 generate)."""

LATENCIES = {SHIFT_REGISTER: SHIFT_LATENCY, MEMORY: MEMORY_LATENCY, LUT_MEMORY: 1}
"""The latency of each kind of FIFO, in cycles. common/fifo.sv shows a word in the cycle after it was written."""


IN_STEP = "both ends run in step"
"""The reason, in reports, of a FIFO that has the least depth at which both ends can work in every cycle."""


@dataclass(frozen=True)
class FifoRow:
    """Identical FIFOs of a design, as reports and JSON list them.

    Attributes:
        name: The stream's name in the generated sources.
        count: The number of these FIFOs.
        bits: Bits per word.
        depth: Capacity in words.
        kind: How the FIFO is built: "srl", "bram" or "lutram".
        reason: The reason for the depth.
    """

    name: str
    count: int
    bits: int
    depth: int
    kind: str
    reason: str

    @property
    def latency(self) -> int:
        """Cycles from a write to the first cycle in which the word can be read."""
        return LATENCIES[self.kind]

    def values(self) -> dict[str, str | int]:
        """Return the FIFOs' entry for JSON: the attributes and the latency in cycles."""
        return {**asdict(self), "latency": self.latency}


def fifo_kind(bits: int, depth: int, bound: str = "") -> str:
    """Return how Vitis HLS builds a FIFO: "srl" (shift register) or "bram" (memory), or the kind that its directive
    ``bound`` names.

    Args:
        bits: Bits per word.
        depth: Capacity in words.
        bound: The impl of the FIFO's BIND_STORAGE directive, "" without a directive.
    """
    if bound:
        return bound
    return SHIFT_REGISTER if depth <= MIN_FIFO_DEPTH or bits * depth <= SHIFT_BITS else MEMORY
