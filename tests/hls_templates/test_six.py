"""Six 4-bit products per DSP in C++: all operands, and the form that a tool can map to one DSP."""

from __future__ import annotations

import ctypes
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from hls_schedule.check import read_sources
from hls_templates.headers import fixed_files, include_folders
from hls_templates.lint import lint
from hls_templates.systolic.sources import TOP, systolic_sources
from scheduler.hardware.primitives import product_dsps
from scheduler.systolic.array import SIX, Array
from tests.support.engine_values import SMALL, values
from tests.support.vendor_types import vendor_types

KERNEL = Path(__file__).parent / "kernels" / "six.cpp"
ARRAY = replace(SMALL, columns=24, bits=4, save_rows=2, dsp_products=SIX.products)
HALVES = replace(ARRAY, lanes=16, map_depth=64)
HEADER = "six_products.h"


def products_of(folder: Path, header: str) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8]]:
    """Return the products of the C++ with ``header`` as its six_products.h, and the expected ones.

    Both are for all 15^3 · 16^2 operands.
    """
    (folder / "parameters.h").write_text(systolic_sources(values(ARRAY))["parameters.h"])
    (folder / HEADER).write_text(header)
    folders = [folder, *include_folders("systolic"), vendor_types()]
    command = ["g++", "-std=c++17", "-O2", "-shared", "-fPIC", "-Wno-unknown-pragmas", "-DSYSTOLIC_AP_INT"]
    command += [*(f"-I{path}" for path in folders), str(KERNEL), "-o", str(folder / "six.so")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    operands = np.meshgrid(*3 * [np.arange(-7, 8)], *2 * [np.arange(-8, 8)], indexing="ij")
    weights, activations = np.split(np.stack(operands, -1).reshape(-1, 5).astype(np.int8), [3], axis=1)
    given = np.zeros((len(weights), 6), np.int8)
    pointers = [np.ascontiguousarray(array) for array in (weights, activations)]
    addresses = [ctypes.c_void_p(array.ctypes.data) for array in (*pointers, given)]
    ctypes.CDLL(str(folder / "six.so")).six(ctypes.c_long(len(weights)), *addresses)
    return given, (activations[:, :, None] * weights[:, None, :]).reshape(-1, 6)


@pytest.fixture(scope="module")
def header() -> str:
    return fixed_files(*include_folders("systolic"))[HEADER]


@pytest.mark.engine
def test_hls_six_products_of_all_operands_are_exact(header: str, tmp_path: Path) -> None:
    given, expected = products_of(tmp_path, header)
    assert len(given) == 15**3 * 16**2
    assert np.array_equal(given, expected)


PLANTED = {
    "64 in no field": ("+ six_sum_t(SIX_OFFSETS)", "+ six_sum_t(0)"),
    "a field that is not turned round": ("^ ap_uint<SIX_SHIFT>(SIX_OFFSET)", "^ ap_uint<SIX_SHIFT>(0)"),
    "weights without borrows": ("value_t(weights.value[i] - 1)", "weights.value[i]"),
    "borrows of weights as they came": ("out.value[i - 1] < 0", "weights.value[i - 1] < 0"),
    "an activation without its borrow": ("a[0] < 0 ? 1 : 0", "a[0] < 0 ? 0 : 0"),
    "a port of a bit less": ("* SIX_SHIFT + 5>", "* SIX_SHIFT + 4>"),
}


@pytest.mark.engine
@pytest.mark.parametrize("name", PLANTED)
def test_hls_six_products_with_a_planted_defect_differ(name: str, header: str, tmp_path: Path) -> None:
    right, wrong = PLANTED[name]
    assert header.count(right) == 1
    given, expected = products_of(tmp_path, header.replace(right, wrong))
    assert not np.array_equal(given, expected)


@pytest.mark.parametrize("array", [ARRAY, HALVES], ids=["whole blocks", "halves"])
def test_hls_six_products_sources_have_no_lint_finding(array: Array) -> None:
    assert [str(finding) for finding in lint(systolic_sources(values(array)), TOP)] == []


@pytest.mark.engine
@pytest.mark.parametrize("array", [ARRAY, HALVES], ids=["whole blocks", "halves"])
def test_hls_six_products_sources_compile_with_the_vendor_types(array: Array, tmp_path: Path) -> None:
    """Compile as C++14 with the vendor's ap_int and hls_stream, and with hls::burst_maxi and its byte mask."""
    for name, text in systolic_sources(values(array)).items():
        (tmp_path / name).write_text(text)
    folders = [tmp_path, KERNEL.parent / "documented", vendor_types()]
    command = ["g++", "-std=c++14", "-fsyntax-only", "-w", "-DSYSTOLIC_AP_INT", *(f"-I{folder}" for folder in folders)]
    done = subprocess.run([*command, str(tmp_path / "top.cpp")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_hls_six_products_header_lets_a_tool_join_product_and_sum(header: str) -> None:
    """UG1399: BIND_OP "can prevent the HLS compiler from matching multi-operation expressions", and so does a second
    reader of the product."""
    assert header.count(" * values") == 1
    assert "const six_sum_t fields = weights * values + six_sum_t(SIX_OFFSETS);" in header
    assert "#pragma HLS BIND_OP" not in header


@pytest.mark.engine
def test_hls_six_products_have_one_multiplier_of_the_port_widths(tmp_path: Path) -> None:
    """Check that each estimated DSP has one multiplier of 26 × 18 signed bits after constant folding."""
    for name, text in systolic_sources(values(ARRAY)).items():
        (tmp_path / name).write_text(text)
    built = [m for m in read_sources(tmp_path / "top.cpp").multipliers() if "six_products.h" in m.source]
    assert {(m.wide_bits, m.narrow_bits, m.primitive) for m in built} == {(26, 18, "auto")}
    assert sum(m.count for m in built) == ARRAY.mac_dsps == ARRAY.rows * ARRAY.columns * ARRAY.lanes // 3
    assert product_dsps(26, 18, "DSP48E2") == 1
