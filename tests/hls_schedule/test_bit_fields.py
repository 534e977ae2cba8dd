"""Tests that distinguish LLVM additions and ``or`` operations that only join bit fields from real computations.

Joining fields is wiring: no two operands have a bit in common, so the hardware needs no adder."""

from __future__ import annotations

from hls_schedule.reading.bit_fields import BitFields
from hls_schedule.reading.ir import read_module
from tests.support.cases import cases

BODY = """define void @top(i64 %word, i16 %field, i1 %which) {
entry:
  %low = and i64 %word, 15
  %wide = zext i16 %field to i64
  %moved = shl nuw nsw i64 %wide, 4
  %next = and i64 %moved, 240
  %third = shl i64 %wide, 12
  %chosen = select i1 %which, i64 %next, i64 0
  %joined = add nuw nsw i64 %low, %next
  %chosen_joined = add nuw nsw i64 %low, %chosen
  %more = add nuw nsw i64 %joined, 256
  %longer = add i64 %more, %third
  %back = lshr i64 %third, 12
  %sum = add i64 %low, %wide
  %same_place = add i64 %back, %low
  %counted = add nsw i64 %joined, 1
  %after = add i64 %sum, 65536
  %either = or i64 %low, %next
  %mixed = or i64 %low, %wide
  ret void
}
"""


@cases(
    "name, disjoint",
    [
        ("joined", True),
        ("chosen_joined", True),
        ("more", True),
        ("longer", True),
        ("sum", False),
        ("same_place", False),
        ("counted", False),
        ("after", False),  # any bit of a sum may be set
        ("either", True),
        ("mixed", False),
    ],
)
def test_operands_without_a_common_bit_are_disjoint(name: str, disjoint: bool) -> None:
    (function,) = read_module(BODY).functions.values()
    assert BitFields(function.definitions).disjoint(function.definitions[f"%{name}"]) is disjoint
