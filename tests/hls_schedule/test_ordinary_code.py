"""Tests of the schedule check on HLS C++ of any origin: nested loops, refusals, and types of the vendor's headers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ziglang", reason="the checks of schedules compile with the clang of the package ziglang")

from boards.errors import RefusedLoopError, SeveralFaultsError
from hls_schedule import inferred
from hls_schedule.check import Sources, ToolOptions, read_sources
from hls_schedule.reading.frontend import INCLUDE
from tests.support.errors import raises

KERNELS = """#include <ap_axi_sdata.h>
#include <ap_fixed.h>
#include <hls_math.h>
#include <hls_stream.h>
#include <hls_vector.h>
typedef ap_fixed<16, 5> data_t;
static void row(hls::stream<int> &in, int (&words)[8]) {
    each: for (int x = 0; x < 8; ++x) {
#pragma HLS PIPELINE
        words[x] = in.read();
    }
}
void counted(hls::stream<int> &in, int (&words)[4][8]) {
    for (int y = 0; y < 4; ++y)
        if (y != 2) row(in, words[y]);
}
void holding(hls::stream<int> &in, int (&words)[8], int n) {
    outer: for (int y = 0; y < 4; ++y) {
#pragma HLS PIPELINE
        words[y] = 0;
        for (int x = 0; x < n; ++x) words[y] += in.read();
    }
}
void pipelined_twice(hls::stream<int> &in, int (&words)[8]) {
    for (int y = 0; y < 4; ++y) {
#pragma HLS PIPELINE
        for (int x = 0; x < 2; ++x) {
#pragma HLS PIPELINE
            words[y * 2 + x] = in.read();
        }
    }
}
void floats(hls::stream<float> &in, hls::stream<float> &out, float scale) {
    for (int y = 0; y < 64; ++y) {
#pragma HLS PIPELINE
        out.write(in.read() * scale);
    }
}
void exponential(hls::stream<data_t> &in, hls::stream<data_t> &out) {
    for (int y = 0; y < 64; ++y) {
#pragma HLS PIPELINE
        out.write(hls::exp(in.read()));
    }
}
void beats(hls::stream<ap_axis<32, 0, 0, 0> > &in, hls::stream<hls::vector<short, 2> > &out) {
    for (int y = 0; y < 64; ++y) {
#pragma HLS PIPELINE
        const ap_axis<32, 0, 0, 0> beat = in.read();
        hls::vector<short, 2> both = beat.data.range(15, 0).to_int();
        out.write(both + hls::vector<short, 2>(beat.last));
    }
}
void whole(int (&words)[8]) {
#pragma HLS PIPELINE
    for (int x = 0; x < 8; ++x) words[x] = x;
}
template <int N>
void never(hls::stream<int> &in, int *words) {
    for (int y = 0; y < N; ++y) {
#pragma HLS PIPELINE
        words[y] = in.read();
    }
}
"""


def line_of(text: str) -> int:
    """Return the line of the first mark after a text in the kernels."""
    lines = KERNELS.splitlines()
    first = next(number for number, line in enumerate(lines) if text in line)
    return next(number for number, line in enumerate(lines) if number > first and "PIPELINE" in line) + 1


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    """Return the compiled kernels."""
    path = tmp_path_factory.mktemp("ordinary") / "top.cpp"
    path.write_text(KERNELS)
    return read_sources(path)


def test_check_partly_derives_loops_of_counted_loops_and_refuses_the_others(sources: Sources) -> None:
    derived = {loop.source: (loop.derived_ii, loop.declared_ii) for loop in sources.check(100, partly=True)}
    inner = line_of("for (int x = 0; x < 2")
    assert derived == {
        f"top.cpp:{line_of('each:')}": (1, 1),
        f"top.cpp:{inner - 2}": (2, 1),
        f"top.cpp:{line_of('void beats')}": (1, 1),
    }
    reasons = {error.loop: error.reason for error in sources.refused}
    assert reasons == {
        f"outer (top.cpp:{line_of('outer:')})": f"the loop at top.cpp:{line_of('outer:') + 2} in it is not unrolled, "
        "because its number of iterations is not known",
        f"top.cpp:{line_of('void floats')}": f"it has a float multiplication at top.cpp:{line_of('void floats') + 1}, "
        "whose latency depends on the clock",
        f"top.cpp:{line_of('void exponential')}": f"it calls exp at top.cpp:{line_of('void exponential') + 1}, "
        "whose latency is not known",
        f"top.cpp:{line_of('void whole')}": "it marks a function, and only loops are derived",
    }


def test_check_without_partly_raises_the_errors_of_refused_loops(sources: Sources, tmp_path: Path) -> None:
    with raises(SeveralFaultsError) as several:
        sources.check(100)
    assert len(several.value.errors) == 4
    head, tail = KERNELS.index("static void row"), KERNELS.index("template <int N>")
    (tmp_path / "top.cpp").write_text(KERNELS[:head] + "int other(int x) { return x; }\n" + KERNELS[tail:])
    with raises(RefusedLoopError, reason="nothing calls its function, or it has no iterations"):
        read_sources(tmp_path / "top.cpp").check(100)


NUMBERS = """#include <ap_fixed.h>
#include <cmath>
#include <cstdio>
static int wrong = 0;
static void expect(double got, double expected, const char *what) {
    if (got != expected) wrong += 1, printf("%s: %g, expected %g\\n", what, got, expected);
}
static double bound(double value, double low, double high) { return value < low ? low : value > high ? high : value; }
int main() {
    for (int n = -300; n < 300; ++n) {
        const double value = n / 16.0 + 0.03125 * (n & 1);
        const ap_fixed<20, 10> x = value;
        const double exact = x.to_double(), scaled = exact * 16;
        expect(exact, std::floor(value * 1024) / 1024, "from double");
        expect((ap_fixed<10, 6>(x)).to_double(), std::floor(scaled) / 16, "AP_TRN");
        expect((ap_fixed<10, 6, AP_TRN_ZERO>(x)).to_double(), std::trunc(scaled) / 16, "AP_TRN_ZERO");
        expect((ap_fixed<10, 6, AP_RND>(x)).to_double(), std::floor(scaled + 0.5) / 16, "AP_RND");
        expect((ap_fixed<10, 6, AP_RND_INF>(x)).to_double(), std::round(scaled) / 16, "AP_RND_INF");
        expect((ap_fixed<10, 6, AP_RND_CONV>(x)).to_double(), std::nearbyint(scaled) / 16, "AP_RND_CONV");
        expect((ap_fixed<6, 4, AP_TRN, AP_SAT>(x)).to_double(), bound(std::floor(exact * 4) / 4, -8, 7.75), "AP_SAT");
        expect((ap_fixed<4, 4, AP_TRN, AP_SAT_SYM>(x)).to_double(), bound(std::floor(exact), -7, 7), "AP_SAT_SYM");
        expect(static_cast<int>(x), std::trunc(exact), "to int");
        const ap_fixed<16, 5> a = n / 100.0, b = 3.25;
        const double c = a.to_double();
        expect((a * b).to_double(), c * 3.25, "*");
        expect((a - b).to_double(), c - 3.25, "-");
        expect((a + 7).to_double(), c + 7, "+ int");
        expect(a < b, c < 3.25, "<");
        expect(std::fabs((a / b).to_double() - c / 3.25) < std::pow(2, -11), 1, "/");
        ap_fixed<20, 8> sum = 1;
        sum += a * b;
        expect(sum.to_double(), std::floor((1 + c * 3.25) * 4096) / 4096, "+=");
        int whole = 2;
        whole += a;
        expect(whole, std::trunc(2 + c), "int +=");
    }
    return wrong > 0;
}
"""


def test_fixed_point_numbers_round_and_saturate_as_their_type_declares(tmp_path: Path) -> None:
    """Execute the header of the check, and compare its results with doubles, which hold every value exactly."""
    (tmp_path / "numbers.cpp").write_text(NUMBERS)
    clang = [sys.executable, "-m", "ziglang", "c++", "-std=c++17", "-O1", f"-I{INCLUDE}"]
    subprocess.run([*clang, "numbers.cpp", "-o", "numbers"], cwd=tmp_path, check=True)
    result = subprocess.run(["./numbers"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "")


PORTS = """#include <ap_fixed.h>
#include <ap_int.h>
#include <hls_stream.h>
typedef ap_fixed<16, 5> data_t;
static void wide(int *in, int (&buffer)[64]) {
    for (int i = 0; i < 64; i += 16) {
#pragma HLS PIPELINE
        ap_uint<512> beat = *reinterpret_cast<ap_uint<512> *>(&in[i]);
        for (int j = 0; j < 16; ++j) buffer[i + j] = beat.range(32 * j + 31, 32 * j).to_int();
    }
}
static void narrow(short *in, int (&buffer)[64]) {
    for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        buffer[i] = in[i];
    }
}
static void single(int *in, hls::stream<int> &out, const int (&buffer)[64]) {
    for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        out.write(in[i] + in[i + 100] + buffer[i]);
    }
}
static void multiply(const data_t (&a)[32][32], const data_t (&b)[32][32], hls::stream<data_t> &out) {
    for (int i = 0; i < 32; ++i) {
#pragma HLS PIPELINE
        ap_fixed<20, 8> sum = 0;
        for (int k = 0; k < 32; ++k) sum += a[i][k] * b[i][k];
        out.write(sum);
    }
}
void top(int *in, int *other, short *few, hls::stream<data_t> &values, hls::stream<int> &out,
         hls::stream<data_t> &products) {
#pragma HLS INTERFACE m_axi port = in bundle = one max_widen_bitwidth = 512
#pragma HLS INTERFACE m_axi port = other bundle = two
#pragma HLS INTERFACE m_axi port = few bundle = two
    int buffer[64];
#pragma HLS ARRAY_PARTITION variable = buffer cyclic factor = 32
    data_t a[32][32], b[32][32];
    wide(in, buffer);
    narrow(few, buffer);
    single(other, out, buffer);
    for (int i = 0; i < 32; ++i)
        for (int k = 0; k < 32; ++k) {
#pragma HLS PIPELINE II = 2
            a[i][k] = values.read();
            b[i][k] = values.read();
        }
    multiply(a, b, products);
}
"""


def derived(folder: Path, text: str) -> dict[str, tuple[int, int, str]]:
    """Return interval, depth and reason of each loop of the function ``top`` at 100 MHz, by the loop's function."""
    (folder / "top.cpp").write_text(text)
    sources = read_sources(folder / "top.cpp", options=ToolOptions("top"))
    found = {loop.source: (loop.derived_ii, loop.derived_depth, loop.reason) for loop in sources.check(100)}
    assert {loop.location.scopes[-1] for loop in sources.loops if loop.location} == {"top"}
    named = {loop.location.scopes[0]: f"top.cpp:{loop.location.line}" for loop in sources.loops if loop.location}
    return {name: found[source] for name, source in named.items()}


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, int, str]]:
    """Return the derived figures of the kernels with ports and arrays."""
    return derived(tmp_path_factory.mktemp("ports"), PORTS)


def test_reads_of_axi_ports_take_the_cycles_that_public_logs_state(ports: dict[str, tuple[int, int, str]]) -> None:
    """Derive loops of the form of public ones (docs/reference/hls_schedule_loops.md).

    A 512-bit read that is stored into 16 of 32 cyclic partitions has interval 1 and depth 3. A read that is narrower
    than its AXI port requests each element, so that its depth is 11 instead of 3. Two reads of a port take two cycles.
    """
    assert ports["wide"] == (1, 3, "")
    assert ports["narrow"][0] == 1
    assert 9 <= ports["narrow"][1] <= 13
    assert (ports["single"][0], ports["single"][2]) == (2, "ports of two (read)")


def test_truncating_sum_adds_one_product_per_cycle(ports: dict[str, tuple[int, int, str]], tmp_path: Path) -> None:
    """A public log has a depth of 104 for 100 products. The additions of a sum that keeps all bits share cycles."""
    assert ports["multiply"][::2] == (1, "")
    assert 34 <= ports["multiply"][1] <= 38
    exact = derived(tmp_path, PORTS.replace("ap_fixed<20, 8> sum", "ap_fixed<40, 18> sum"))
    assert exact["multiply"][1] < 20


def test_array_partition_is_inferred_only_up_to_the_element_limit(
    ports: dict[str, tuple[int, int, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inferred, "MAX_ELEMENTS", 31)
    assert derived(tmp_path, PORTS)["multiply"][0] == 2
    assert ports["multiply"][0] == 1


def test_partitions_and_pragmas_decide_the_ports(tmp_path: Path) -> None:
    """Blocks put neighbours into one memory. A pragma with an unknown option is ignored (HLS 207-5569)."""
    blocks = PORTS.replace("cyclic factor = 32", "block factor = 32").replace("bundle = two", "bundle = two cache = 8")
    found = derived(tmp_path, blocks)
    assert (found["wide"][0], found["narrow"][1], found["single"][0]) == (8, 2, 1)
