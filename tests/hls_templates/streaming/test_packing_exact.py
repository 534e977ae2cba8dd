"""Packed products in the arithmetic of the synthesised code: exact at every extreme, up to the port widths."""

from __future__ import annotations

import ctypes
import itertools
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from hls_templates.headers import fixed_files, include_folders
from scheduler.streaming.area.packing import (
    Operands,
    PackedFields,
    Range,
    Unrolling,
    dsps,
    four_products,
    two_pixels,
    two_weights,
    value_range,
)
from tests.support.blocks.compute import BIPOLAR, HERE, Ints, Values, narrow, signed, unsigned
from tests.support.vendor_types import vendor_types

FIXED = fixed_files(*include_folders("streaming"))
KERNEL = HERE / "kernels" / "packing.cpp"
DSPS = ("DSP48E1", "DSP48E2")
FOUR, WEIGHTS, PIXELS = (2, 2), (2, 1), (1, 2)  # PE, PIXELS


@dataclass(frozen=True)
class Square:
    """PE × PIXELS sums of one chain of ``simd`` terms: the longest allowed chain, plus ``extra`` terms."""

    weight: Values
    value: Values
    dsp: str
    shape: tuple[int, int]
    extra: int = 0

    @property
    def packing(self) -> PackedFields:
        of = {FOUR: four_products, WEIGHTS: two_weights, PIXELS: two_pixels}[self.shape]
        return of(range_of(self.weight), range_of(self.value), self.dsp)

    @property
    def simd(self) -> int:
        return min(self.packing.terms, 40) + self.extra


def range_of(values: Values) -> Range:
    return Range(values.low, values.high)


SQUARES = (
    *(Square(signed(4), unsigned(4), dsp, FOUR) for dsp in DSPS),
    *(Square(signed(4), signed(4), dsp, FOUR) for dsp in DSPS),
    *(Square(narrow(4), unsigned(4), dsp, FOUR) for dsp in DSPS),
    *(Square(signed(3), unsigned(2), dsp, FOUR) for dsp in DSPS),
    Square(signed(4), unsigned(4), "DSP48E2", FOUR, extra=5),
    Square(signed(6), unsigned(4), "DSP48E2", FOUR),
    *(Square(signed(4), unsigned(4), dsp, shape) for dsp in DSPS for shape in (WEIGHTS, PIXELS)),
    *(Square(signed(8), value, dsp, WEIGHTS) for dsp in DSPS for value in (signed(8), unsigned(8))),
    *(Square(signed(8), value, dsp, PIXELS) for dsp in DSPS for value in (signed(8), unsigned(8))),
    *(Square(narrow(8), value, dsp, WEIGHTS) for dsp in DSPS for value in (signed(8), unsigned(8))),
    Square(narrow(8), signed(8), "DSP48E2", WEIGHTS, extra=3),
)
LOGIC = (
    Square(BIPOLAR, BIPOLAR, "LUT", FOUR, 7),
    Square(BIPOLAR, unsigned(3), "LUT", FOUR, 3),
    Square(signed(3), BIPOLAR, "LUT", FOUR, 3),
    Square(narrow(2), narrow(2), "LUT", FOUR, 5),
    Square(signed(3), signed(3), "LUT", FOUR, 4),
)
ALL = [*SQUARES, *LOGIC]
RANGES = [(bits, *kind) for bits in (2, 3, 4, 5, 6, 8, 16) for kind in ((0, 0), (1, 0), (1, 1))]  # bits, signed, narrow


def cpp(bits: int, is_signed: int, is_narrow: int) -> str:
    return f"{'narrow_t' if is_narrow else 'int_t' if is_signed else 'uint_t'}<{bits}>"


def simd_of(square: Square) -> int:
    return square.extra if square.dsp == "LUT" else square.simd


def squares(indices: list[int], simd: int | None = None) -> str:
    text = '#include "packing.cpp"\n'
    for index in indices:
        square, (pe, pixels) = ALL[index], ALL[index].shape
        text += f'extern "C" void square_{index}(long count, const int32_t *w, const int32_t *a, int32_t *sums) {{\n'
        text += f"    squares<{square.weight.cpp}, {square.value.cpp}, {square.dsp}, "
        text += f"{pe}, {simd or simd_of(square)}, {pixels}>(count, w, a, sums);\n}}\n"
    return text


def compile_text(text: str, folder: Path, ap_int: bool = True) -> ctypes.CDLL:
    """Compile and load a program; headers in ``folder`` come before the project's."""
    (folder / "packed.cpp").write_text(text)
    command = ["g++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", f"-I{folder}", f"-I{KERNEL.parent}"]
    command += [f"-I{path}" for path in include_folders("streaming")]
    if ap_int:
        command += ["-DSYSTOLIC_AP_INT", f"-isystem{vendor_types()}"]
    command += ["-o", str(folder / "packed.so"), str(folder / "packed.cpp")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]
    return ctypes.CDLL(str(folder / "packed.so"))


@dataclass(frozen=True)
class Compiled:
    """A library with some of the squares, and with the bounds of every two of some ranges."""

    library: ctypes.CDLL
    squares: tuple[Square, ...]
    ranges: tuple[tuple[int, int, int], ...]


FEW = (
    Square(signed(4), unsigned(4), "DSP48E2", FOUR),
    Square(signed(4), signed(4), "DSP48E1", FOUR),
    Square(signed(8), signed(8), "DSP48E1", WEIGHTS),
    Square(signed(8), unsigned(8), "DSP48E2", PIXELS),
    Square(BIPOLAR, unsigned(3), "LUT", FOUR, 3),
)
FEW_RANGES = ((2, 1, 1), (3, 1, 0), (4, 0, 0), (4, 1, 1), (8, 0, 0), (8, 1, 1))


@pytest.fixture(scope="module", params=["native", pytest.param("ap_int", marks=pytest.mark.engine)])
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """Compile a few squares with the simulation's native products, or all with products that share DSPs."""
    ap_int = request.param == "ap_int"
    chosen, ranges = (tuple(ALL), tuple(RANGES)) if ap_int else (FEW, FEW_RANGES)
    text = squares([ALL.index(square) for square in chosen]) + 'extern "C" void all_bounds(int32_t *to) {\n'
    for weight, value, dsp in itertools.product(ranges, ranges, DSPS):
        text += f"    bounds<{cpp(*weight)}, {cpp(*value)}, {dsp}>(to); to += 6;\n"
    return Compiled(compile_text(text + "}\n", tmp_path_factory.mktemp("packing"), ap_int), chosen, ranges)


def multiply(library: ctypes.CDLL, square: Square, weights: Ints, values: Ints) -> Ints:
    """Return the sums (count, PIXELS, PE) of weights (count, PE, SIMD) and values (count, PIXELS, SIMD)."""
    pe, pixels = square.shape
    w = np.ascontiguousarray(square.weight.carrier(weights), np.int32)
    a = np.ascontiguousarray(square.value.carrier(values), np.int32)
    sums = np.zeros((len(w), pixels, pe), np.int32)
    function = getattr(library, f"square_{ALL.index(square)}")
    function(ctypes.c_long(len(w)), *(ctypes.c_void_p(array.ctypes.data) for array in (w, a, sums)))
    return sums.astype(np.int64)


def assert_exact(library: ctypes.CDLL, square: Square, weights: Ints, values: Ints) -> None:
    expected = np.einsum("cps,cxs->cxp", weights, values)
    np.testing.assert_array_equal(multiply(library, square, weights, values), expected, err_msg=str(square))


def everything(values: Values, most: int) -> list[int]:
    """Return all values, or the extremes and the values around zero if there are more than ``most``."""
    every = list(range(values.low, values.high + 1, values.step))
    few = {values.low, values.low + 1, -1 if values.low else 1, 0, 1, values.high}
    return every if len(every) <= most else sorted(few)


def test_packing_of_extremes_repeated_to_the_bound_is_exact(compiled: Compiled) -> None:
    """Use the same operands in every term, so that every field's sum reaches its extreme."""
    for square in compiled.squares:
        pe, pixels = square.shape
        most = 16 if pe + pixels == 4 else 256
        choices = [everything(square.weight, most if i == 0 else 16) for i in range(pe)]
        choices += [everything(square.value, most if i == 0 else 16) for i in range(pixels)]
        table = np.array(list(itertools.product(*choices)), np.int64)
        weights = np.repeat(table[:, :pe, None], simd_of(square), axis=2)
        values = np.repeat(table[:, pe:, None], simd_of(square), axis=2)
        assert_exact(compiled.library, square, weights, values)


def test_packing_of_random_terms_is_exact(compiled: Compiled) -> None:
    for square in compiled.squares:
        rng = np.random.default_rng(5)
        (pe, pixels), simd = square.shape, simd_of(square)
        weights, values = square.weight.draw(rng, 4000, pe, simd), square.value.draw(rng, 4000, pixels, simd)
        assert_exact(compiled.library, square, weights, values)


def test_packing_bounds_of_header_and_scheduler_are_equal(compiled: Compiled) -> None:
    every = list(itertools.product(compiled.ranges, compiled.ranges, DSPS))
    found = np.zeros((len(every), 6), np.int32)
    compiled.library.all_bounds(ctypes.c_void_p(found.ctypes.data))
    for (weight, value, dsp), row in zip(every, found, strict=True):
        w, v = (value_range(bits, bool(is_signed), bool(is_narrow)) for bits, is_signed, is_narrow in (weight, value))
        packings = [of(w, v, dsp) for of in (two_weights, two_pixels, four_products)]
        assert [n for p in packings for n in (p.field, p.terms)] == row.tolist(), (weight, value, dsp)


@pytest.mark.engine
def test_packing_chain_longer_than_the_bound_is_inexact(tmp_path: Path) -> None:
    """Check that the bound is the largest: with one more term, the extreme overflows into the next field."""
    square = Square(signed(4), unsigned(4), "DSP48E2", FOUR)
    header = FIXED["packing.h"]
    planted = header.replace("terms_of<WEIGHT, VALUE>(products_field);", "terms_of<WEIGHT, VALUE>(products_field) + 1;")
    assert planted != header
    (tmp_path / "packing.h").write_text(planted)
    (tmp_path / "dot.h").write_text(FIXED["dot.h"])
    one_more = square.simd + 1
    library = compile_text(squares([ALL.index(square)], one_more), tmp_path)
    weights = np.full((1, 2, one_more), square.weight.low)
    values = np.full((1, 2, one_more), square.value.high)
    sums = multiply(library, square, weights, values)
    assert sums[0, 0, 0] != one_more * square.weight.low * square.value.high


# PE, SIMD, PIXELS, weight, activation, DSP
UNITS: list[tuple[int, int, int, Values, Values, str]] = [
    *((pe, 5, pixels, signed(4), unsigned(4), "DSP48E2") for pe in (1, 2, 3, 4) for pixels in (1, 2, 3)),
    *((pe, 5, pixels, signed(8), unsigned(8), "DSP48E2") for pe in (1, 2, 3) for pixels in (1, 2)),
    *((pe, 3, 2, signed(6), unsigned(4), dsp) for pe in (1, 2) for dsp in DSPS),
    (3, 3, 2, signed(8), signed(16), "DSP48E1"),
    (4, 3, 2, signed(3), signed(3), "LUT"),
]


def counted(header: str, text: str) -> str:
    """Return the header with a counter of the products that become DSPs."""
    if header == "packing.h":
        return text.replace("#if SYSTOLIC_PACKED\n", "#if SYSTOLIC_PACKED\nextern long products;\n", 1).replace(
            "    product *= narrow;", "    product *= narrow; ++products;"
        )
    return text.replace("op = mul impl = dsp\n", "op = mul impl = dsp\n        ++products;\n")


@pytest.mark.engine
def test_packing_dsps_of_the_scheduler_equal_the_executed_multiplications(tmp_path: Path) -> None:
    for name in ("packing.h", "dot.h"):
        assert counted(name, FIXED[name]) != FIXED[name]
        (tmp_path / name).write_text(counted(name, FIXED[name]))
    source = '#include "packing.cpp"\nlong products = 0;\nextern "C" long multiplications(int unit) {\n'
    source += "    static int32_t zeros[64], sums[64];\n    products = 0;\n"
    for index, (pe, simd, pixels, weight, value, dsp) in enumerate(UNITS):
        types = f"{weight.cpp}, {value.cpp}, {dsp}, {pe}, {simd}, {pixels}"
        source += f"    if (unit == {index}) squares<{types}>(1, zeros, zeros, sums);\n"
    library = compile_text(source + "    return products;\n}\n", tmp_path)
    for index, (pe, simd, pixels, weight, value, dsp) in enumerate(UNITS):
        bits = [range_of(of).high.bit_length() + (of.low < 0) for of in (weight, value)]
        multiplier, kind = ("lut", "DSP48E2") if dsp == "LUT" else ("dsp", dsp)
        expected = dsps(Unrolling(pe, simd, pixels), Operands(bits[0], bits[1], value.low < 0), kind, multiplier)
        assert library.multiplications(index) == expected, UNITS[index]
