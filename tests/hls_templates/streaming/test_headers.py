"""Every header of the blocks is free of linter findings, and is C++ that Vitis HLS accepts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hls_templates.headers import fixed_files, include_folders
from hls_templates.lint import lint
from tests.support.blocks.compute import HERE
from tests.support.vendor_types import vendor_types

SIMULATED = ("tap.h",)  # what sees every layer's integers in the simulation alone
DOCUMENTED = HERE.parent / "kernels" / "documented"  # hls_stream.h with what UG1399 documents, and nothing more

TOPS = """
typedef word<ap_int<4>, 2> pair_t;
void move(hls::stream<pair_t> &in, hls::stream<pair_t> &out, hls::stream<word<ap_int<4>, 18>> &all) {
    window_default<2, 4, 5, 6, 3, 3, 1, 1, 1, 1, 1, 1, false>(1, in, out);
    window_parallel<1, 2, 4, 5, 6, 3, 3, 1, 1, 1, 1, 1, 1, RAM_BRAM>(1, in, all);
    max_pool<1, 2, 4, 6, 6, 2, 2, 2, 0, 0, 0, 0>(1, in, out);
    convert_channels<2, 2, 4, 6, 30>(1, in, out);
    concat<2, 30, 4, 4>(1, out, in, in);
    split<2, 30, 4, 4>(1, in, out, out);
    duplicate<2, 30>(1, in, out, out);
    reorg_darknet<2, 4, 4, 6, 2>(1, in, out);
    upsample<2, 4, 5, 6, 2>(1, in, out);
}
void compute(hls::stream<word<uint_t<4>::carrier, 72>> &in, hls::stream<word<integer<14, true>, 16>> &out,
             const int_t<4>::carrier (&weights)[8][1][36]) {
    matrix_vector<6, 36, 8, 36, 8, 2, int_t<4>, uint_t<4>, 14, DSP48E2>(1, in, out, weights, identity_t<14>());
}
void stream_and_add(hls::stream<word<uint_t<4>::carrier, 72>> &in, hls::stream<word<int_t<4>::carrier, 288>> &weights,
                    hls::stream<word<integer<14, true>, 16>> &sums, hls::stream<word<uint_t<4>::carrier, 16>> &other,
                    hls::stream<word<integer<16, true>, 16>> &out) {
    matrix_vector_streamed<6, 36, 8, 36, 8, 2, int_t<4>, uint_t<4>, 14, DSP48E2>(1, in, weights, sums,
                                                                                identity_t<14>());
    add<6, 8, 8, 2, 16, term_t<int_t<14>, 1>, term_t<uint_t<4>, 3>>(1, sums, other, out, identity_t<16>());
    add<6, 8, 8, 2, 16, term_t<uint_t<4>, 1>, term_t<uint_t<4>, 3>, term_t<uint_t<4>, 2>>(1, other, other, other, out,
                                                                                         identity_t<16>());
}
"""


def headers() -> dict[str, str]:
    every = fixed_files(*include_folders("streaming"))
    assert len(every) > 30
    return {name: text for name, text in every.items() if name not in SIMULATED}


def test_streaming_headers_have_no_lint_finding() -> None:
    """Lint the headers together with the files that they include, as the vendor's tool reads them."""
    assert [str(finding) for finding in lint(headers(), "")] == []


@pytest.mark.engine
def test_streaming_headers_compile_as_cpp_14(tmp_path: Path) -> None:
    """Compile as C++14, the default of Vitis HLS."""
    source = tmp_path / "c14.cpp"
    source.write_text("".join(f'#include "{name}"\n' for name in sorted(headers())) + TOPS)
    includes = [f"-I{folder}" for folder in (*include_folders("streaming"), DOCUMENTED)]
    command = ["g++", "-std=c++14", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"]
    command += ["-DSYSTOLIC_AP_INT", *includes, "-isystem", str(vendor_types()), "-fsyntax-only"]
    done = subprocess.run([*command, str(source)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
