"""The primitives of memories by their aspect ratio, and of FIFOs."""

from __future__ import annotations

from scheduler.hardware.primitives import bram18, constant_luts, distributed_luts
from scheduler.streaming.area.memory import fifo, memory, style
from scheduler.streaming.area.usage import StreamingUsage
from tests.support.cases import cases

PLUS, SEVEN = "zynq-ultrascale+", "zynq-7000"


@cases(
    "bits, depth, halves",
    [(36, 512, 1), (36, 513, 2), (37, 512, 2), (18, 1024, 1), (9, 2048, 1), (4, 4096, 1), (1, 16384, 1), (288, 512, 8)],
)
def test_bram18_uses_the_best_aspect_ratio(bits: int, depth: int, halves: int) -> None:
    assert bram18(bits, depth) == halves


def test_constant_luts_join_tables_by_family() -> None:
    assert constant_luts(8, 64, PLUS) == 8
    assert constant_luts(8, 512, PLUS) == 64  # multiplexer F9 joins eight tables
    assert constant_luts(8, 512, SEVEN) == 64 + 8  # without F9, each bit needs one more LUT as a multiplexer
    assert constant_luts(1, 1024, PLUS) == 16 + 1


def test_distributed_luts_by_family() -> None:
    assert distributed_luts(14, 32, PLUS) == 8
    assert distributed_luts(7, 64, PLUS) == 8
    assert distributed_luts(6, 32, SEVEN) == 4
    assert distributed_luts(3, 64, SEVEN) == 4
    assert distributed_luts(7, 256, PLUS) == 4 * 8 + 7


def test_style_auto_is_lutram_for_small_memories() -> None:
    assert [style(8, depth, "auto") for depth in (64, 128, 129)] == ["lutram", "lutram", "bram"]
    assert style(8, 4096, "lutram") == "lutram"


def test_memory_in_each_style_counts_its_primitive() -> None:
    assert memory(72, 4096, "uram", PLUS) == StreamingUsage(uram=1)
    assert memory(72, 512, "bram", PLUS) == StreamingUsage(bram18=2)
    assert memory(7, 64, "lutram", PLUS) == StreamingUsage(lut=8, lutram=8)
    assert memory(7, 64, "lutram", PLUS, constant=True) == StreamingUsage(lut=7)


def test_fifo_is_a_shift_register_if_small() -> None:
    assert fifo(32, 32) == StreamingUsage(lut=32 + 28, lutram=32)
    assert fifo(576, 2) == StreamingUsage(lut=576 + 8, lutram=576)
    assert fifo(32, 33) == StreamingUsage(lut=57, bram18=1)


def test_usages_add_and_multiply() -> None:
    assert StreamingUsage(1, 1, 2, 3, 4, 5) + StreamingUsage(10, 0, 1).times(2) == StreamingUsage(21, 1, 4, 3, 4, 5)
    assert StreamingUsage(bram18=3).bram36 == 2
