"""The kind of each FIFO: one rule for the trace, the area and the generated code."""

from __future__ import annotations

from scheduler.hardware.fifos import MEMORY, MEMORY_LATENCY, SHIFT_LATENCY, SHIFT_REGISTER, fifo_kind
from scheduler.systolic.array import Array
from scheduler.systolic.engines.hls.fifos import FIFOS, ROW_LAG
from tests.support.cases import cases

ARRAY = Array(13, 16, 16)


@cases(
    "bits, depth, kind",
    [
        (4096, 2, SHIFT_REGISTER),  # two words of any width
        (512, 3, MEMORY),
        (32, 32, SHIFT_REGISTER),  # 1,024 bits
        (32, 33, MEMORY),
        (1, 1024, SHIFT_REGISTER),
        (1, 1025, MEMORY),
    ],
)
def test_fifo_kind_without_directive_is_memory_above_1024_bits(bits: int, depth: int, kind: str) -> None:
    assert fifo_kind(bits, depth) == kind
    assert fifo_kind(bits, depth, SHIFT_REGISTER) == SHIFT_REGISTER
    assert fifo_kind(bits, depth, "uram") == "uram"


def test_fifos_of_the_engine_are_shift_registers() -> None:
    assert {fifo.impls for fifo in FIFOS} == {(SHIFT_REGISTER,)}
    wide = {fifo.name for fifo in FIFOS if fifo_kind(int(fifo.bits(ARRAY)), int(fifo.depth(ARRAY))) == MEMORY}
    assert {"rows", "activations", "weights", "sums", "groups"} <= wide  # the tool would build memories for these


@cases("rows", [1, 5, 10, 11, 13, 40])
def test_fifos_of_rows_cover_the_lag_of_either_kind(rows: int) -> None:
    # A row lags the row above it by a cycle and the FIFO's latency, two or three in all. Four words keep the pace.
    assert (SHIFT_LATENCY, MEMORY_LATENCY, ROW_LAG) == (1, 2, 2)
    depths = {fifo.name: fifo.depth(Array(rows, 8, 8)) for fifo in FIFOS}
    assert depths["activations"] == depths["sums"] == 3 * (rows - 1) + 4


@cases("rows, depth", [(1, 4), (10, 31), (11, 32), (13, 32), (15, 32), (16, 49), (40, 96)])
def test_fifos_of_rows_at_4_bits_fill_one_lut_per_bit(rows: int, depth: int) -> None:
    # At 4 bits, a FIFO has at least 2 · (rows − 1) + 4 words. It has up to 3 · (rows − 1) + 4 words if they need no
    # further LUTs.
    depths = {fifo.name: fifo.depth(Array(rows, 8, 8, bits=4)) for fifo in FIFOS}
    assert depths["activations"] == depths["sums"] == depth
