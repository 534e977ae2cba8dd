"""Tests of the multipliers found in short kernels (widths, count, DSP or fabric), and of the widths of values."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cases import cases

pytest.importorskip("ziglang", reason="the checks of schedules compile with the clang of the package ziglang")

from hls_schedule.check import read_sources
from hls_schedule.multipliers import BuiltMultiplier
from hls_schedule.reading.ir import read_module
from hls_schedule.reading.widths import Ranges
from scheduler.hardware.primitives import product_dsps
from tests.support.kernels import HEAD, kernel

TWICE = """
static void region(hls::stream<int> &in, hls::stream<int> &out) {
#pragma HLS DATAFLOW
    for (int i = 0; i < 8; ++i) {
        SYSTOLIC_PIPELINE(1, 3);
        const int value = in.read();
        out.write(value * (value >> 3));
    }
}
void top(hls::stream<int> &in, hls::stream<int> &out, bool which, hls::stream<int> &third) {
ALLOCATION
    if (which) region(in, out);
    else region(third, in);
}
"""
ALLOCATION = "#pragma HLS ALLOCATION function instances=region limit=1"


def multipliers(folder: Path, body: str) -> tuple[BuiltMultiplier, ...]:
    """Return the multipliers that a kernel needs."""
    (folder / "instrument.h").write_text("")
    (folder / "top.cpp").write_text(HEAD + body)
    return read_sources(folder / "top.cpp").multipliers()


@cases(
    "factors, bits",
    [
        ("ap_int<8>(in.read()) * ap_int<5>(n)", (8, 5)),
        ("ap_uint<8>(in.read()) * ap_int<5>(n)", (9, 5)),  # an unsigned factor needs an additional sign bit
        ("(long long)in.read() * n", (32, 32)),  # the width before the cast
        ("(in.read() & 511) * n", (32, 10)),
    ],
)
def test_multiplier_has_the_widths_of_its_factors(tmp_path: Path, factors: str, bits: tuple[int, int]) -> None:
    (product,) = multipliers(tmp_path, kernel(f"out.write({factors});"))
    assert (product.wide_bits, product.narrow_bits) == bits
    assert (product.count, product.primitive, product.source) == (1, "auto", "top.cpp:9")


def test_products_with_constants_of_few_digits_are_additions(tmp_path: Path) -> None:
    assert multipliers(tmp_path, kernel("out.write(in.read() * 10);")) == ()
    (product,) = multipliers(tmp_path, kernel("out.write(in.read() * 21930);"))
    assert product.count == 1


@cases("impl", ["fabric", "dsp"])
@cases(
    "lines",
    [
        "int y;\n#pragma HLS BIND_OP variable = y op = mul impl = {}\ny = in.read() * n;\nout.write(y);",
        "const int y = in.read() * n;\n#pragma HLS BIND_OP variable = y op = mul impl = {}\nout.write(y);",
    ],
)
def test_bind_op_directive_selects_the_multiplier(tmp_path: Path, lines: str, impl: str) -> None:
    products = multipliers(tmp_path, kernel(lines.format(impl) + "\nout.write(n * (n >> 3));"))
    assert sorted(product.primitive for product in products) == sorted(["auto", impl])


@pytest.mark.parametrize(("allocation", "count"), [("", 2), (ALLOCATION, 1)])
def test_multipliers_of_a_region_called_twice_double_without_an_allocation_limit(
    tmp_path: Path, allocation: str, count: int
) -> None:
    products = multipliers(tmp_path, TWICE.replace("ALLOCATION", allocation))
    assert sum(product.count for product in products) == count


def test_multipliers_count_every_unrolled_product(tmp_path: Path) -> None:
    lines = "int sum = 0;\nfor (int l = 0; l < 5; ++l) sum += ins[l].read() * (n + l);\nout.write(sum);"
    body = kernel(lines, "hls::stream<int> ins[5], hls::stream<int> &out, int n")
    assert sum(product.count for product in multipliers(tmp_path, body)) == 5


@cases(
    "a_bits, b_bits, dsp, count",
    [
        (27, 18, "DSP48E2", 1), (18, 27, "DSP48E2", 1), (27, 18, "DSP48E1", 2), (25, 18, "DSP48E1", 1),
        (32, 17, "DSP48E2", 2), (32, 32, "DSP48E2", 4), (28, 19, "DSP48E2", 2), (28, 28, "DSP48E2", 4),
    ],
)  # fmt: skip
def test_product_dsps_increase_if_a_factor_is_wider_than_its_port(
    a_bits: int, b_bits: int, dsp: str, count: int
) -> None:
    assert product_dsps(a_bits, b_bits, dsp) == count


VALUES = """define void @top(i8 %byte, i32 %word, i1 %which) {
entry:
  %wide = sext i8 %byte to i64
  %paired = mul nsw i64 %wide, 262144
  %low = and i32 %word, 255
  %moved = shl nsw i64 %wide, 11
  %both = add nsw i64 %moved, %wide
  %field = zext i32 %word to i64
  %up = shl i64 %field, 37
  %lower = ashr exact i64 %up, 21
  %other = shl i64 %wide, 56
  %two = add i64 %up, %other
  %fields = ashr exact i64 %two, 21
  %chosen = select i1 %which, i64 %wide, i64 1000
  %over = add i8 %byte, 1
  %half = ashr i32 %word, 20
  ret void
}
"""


@cases(
    "name, kind, bits, factor",
    [
        ("wide", "i64", 8, 8),
        ("low", "i32", 9, 9),
        ("moved", "i64", 19, 8),  # as a factor it has no trailing zeros
        ("both", "i64", 20, 20),
        ("lower", "i64", 43, 27),  # the lower 27 bits, shifted up by 16
        ("fields", "i64", 43, 27),  # two adjacent fields
        ("chosen", "i64", 11, 11),
        ("over", "i8", 8, 8),  # it wraps
        ("half", "i32", 12, 12),
    ],
)
def test_width_of_a_value_follows_its_operands(name: str, kind: str, bits: int, factor: int) -> None:
    (function,) = read_module(VALUES).functions.values()
    ranges = Ranges(function.definitions)
    assert ranges.signed_bits(f"%{name}", kind) == bits
    assert ranges.factor_bits(f"%{name}", kind) == factor
