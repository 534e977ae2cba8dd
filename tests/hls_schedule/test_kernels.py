"""Tests of the schedule check on kernels of a few lines whose attainable initiation interval is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.kernels import HEAD, kernel

pytest.importorskip("ziglang", reason="the checks of schedules compile with the clang of the package ziglang")

from boards.errors import ChoiceError, DamagedFileError, FileAccessError, InvalidValueError, ToolError
from hls_schedule.check import CheckedLoop, read_sources
from hls_schedule.operators import load_table
from hls_schedule.reading.ir import read_module
from tests.support.errors import raises

MHZ = 300.0


def checked(folder: Path, body: str, mhz: float = MHZ) -> CheckedLoop:
    """Compile a kernel and return its only pipelined loop, checked at this clock."""
    (folder / "instrument.h").write_text(
        "#ifndef SYSTOLIC_INSTRUMENT_H\n#error a check has an instrument.h of its own\n#endif\n"
    )
    path = folder / "top.cpp"
    path.write_text(HEAD + body)
    (loop,) = read_sources(path).check(mhz)
    return loop


def test_accumulation_of_32_bits_reaches_an_interval_of_1(tmp_path: Path) -> None:
    loop = checked(tmp_path, kernel("sum += in.read(); out.write(sum);", before="int sum = 0;"))
    assert (loop.declared_ii, loop.derived_ii, loop.declared_depth) == (1, 1, 3)
    assert loop.holds
    assert 0.88 < loop.path_ns < loop.budget_ns == pytest.approx(1000 / MHZ * 0.73, abs=1e-3)


def test_carried_path_beyond_the_budget_is_reported_with_its_source_lines(tmp_path: Path) -> None:
    first = "const int a = in.read();\nx = x + a > n ? x + a - n : x * 5 + 3;\n"
    long = first + "x = x > 77 ? x ^ (x + a) : x + 9;\nout.write(x);"
    loop = checked(tmp_path, kernel(long, before="int x = 0;"))
    assert loop.derived_ii > 1
    assert not loop.holds
    assert loop.reason == "carried path"
    assert {step.source for step in loop.path} >= {"top.cpp:10", "top.cpp:11"}
    assert sum(step.ns for step in loop.path) == pytest.approx(loop.path_ns, abs=0.01)


def test_narrower_counters_are_faster(tmp_path: Path) -> None:
    lines = "x = x + in.read(); out.write(x);"
    streams = "hls::stream<ap_uint<64> > &in, hls::stream<ap_uint<64> > &out, ap_uint<8> n"
    paths = [checked(tmp_path, kernel(lines, streams, f"ap_uint<{bits}> x = 0;")).path_ns for bits in (8, 64)]
    assert paths[0] < paths[1]


STATIC = "static int words[512];\n#pragma HLS BIND_STORAGE variable = words type = ram_s2p impl = bram\n"


def test_simple_dual_port_memory_accepts_one_store_per_cycle(tmp_path: Path) -> None:
    stores = "const int a = in.read() & 511;\nwords[a] = i;\nwords[a ^ 1] = n;\nout.write(words[i & 511]);"
    free = "#pragma HLS DEPENDENCE variable = words type = inter false\n"
    loop = checked(tmp_path, kernel(free + stores, before=STATIC))
    assert (loop.derived_ii, loop.reason) == (2, "ports of words (write)")


def test_memory_of_two_partitions_accepts_two_stores_per_cycle(tmp_path: Path) -> None:
    partition = "#pragma HLS ARRAY_PARTITION variable = words cyclic factor = 2\n"
    free = "#pragma HLS DEPENDENCE variable = words type = inter false\n"
    stores = (
        "const int a = in.read() & 255;\nwords[2 * a] = i;\nwords[2 * a + 1] = n;\nout.write(words[(2 * i) & 511]);"
    )
    loop = checked(tmp_path, kernel(free + stores, before=STATIC + partition))
    assert (loop.derived_ii, loop.reason) == (1, "")


@pytest.mark.parametrize(
    ("pragma", "interval"), [("", 4), ("#pragma HLS AGGREGATE variable = kept compact = bit\n", 1)]
)
def test_struct_of_arrays_is_one_word_only_if_aggregated(tmp_path: Path, pragma: str, interval: int) -> None:
    before = (
        "struct lanes_t { int lane[4]; };\nstatic lanes_t kept[64];\n"
        "#pragma HLS BIND_STORAGE variable = kept type = ram_s2p impl = bram\n" + pragma
    )
    lines = "lanes_t word;\nfor (int l = 0; l < 4; ++l) word.lane[l] = in.read();\nkept[i & 63] = word;"
    streams = "hls::stream<int> in[4], hls::stream<int> &out, int n"
    lines = lines.replace("in.read()", "in[l].read()") + "\nout.write(kept[n & 63].lane[0]);"
    free = "#pragma HLS DEPENDENCE variable = kept type = inter false\n"
    loop = checked(tmp_path, kernel(free + lines, streams, before))
    assert loop.derived_ii == interval


def test_stream_read_twice_needs_two_cycles_unless_the_reads_are_exclusive(tmp_path: Path) -> None:
    twice = checked(tmp_path, kernel("out.write(in.read() + in.read());"))
    assert (twice.derived_ii, twice.reason) == (2, "ports of in (fifo, read)")
    either = checked(tmp_path, kernel("if (i & 1) out.write(in.read()); else out.write(in.read() * n);"))
    assert either.derived_ii == 1


def test_pipeline_pragma_declares_the_interval_of_its_loop(tmp_path: Path) -> None:
    loop = checked(
        tmp_path, kernel("out.write(in.read());").replace("SYSTOLIC_PIPELINE(1, 3);", "#pragma HLS PIPELINE II=2")
    )
    assert (loop.declared_ii, loop.declared_depth, loop.holds) == (2, 0, True)


def test_path_budget_covers_all_cycles_of_the_interval(tmp_path: Path) -> None:
    text = kernel("out.write(in.read());")
    for interval in (1, 3):
        loop = checked(tmp_path, text.replace("SYSTOLIC_PIPELINE(1, 3);", f"SYSTOLIC_PIPELINE({interval}, 3);"))
        assert loop.declared_ii == interval
        assert loop.budget_ns == pytest.approx(interval * 1000 / MHZ * 0.73, abs=1e-3)


def test_carried_sum_with_five_operands_reaches_an_interval_of_1(tmp_path: Path) -> None:
    lines = "sum += a.read() + b.read() + c.read() + d.read() + e.read(); out.write(sum);"
    streams = ", ".join(f"hls::stream<int> &{name}" for name in ("a", "b", "c", "d", "e", "out")) + ", int n"
    loop = checked(tmp_path, kernel(lines, streams, "int sum = 0;"))
    assert (loop.derived_ii, loop.reason) == (1, "")


def test_path_budget_grows_at_a_lower_clock(tmp_path: Path) -> None:
    text = kernel("sum += in.read(); out.write(sum);", before="int sum = 0;")
    slow, fast = checked(tmp_path, text, 100), checked(tmp_path, text, 800)
    assert slow.budget_ns == pytest.approx(8 * fast.budget_ns, rel=0.01)
    assert (slow.derived_ii, fast.derived_ii > 1) == (1, True)
    assert slow.derived_depth <= fast.derived_depth


def test_code_that_does_not_compile_is_refused_with_the_compiler_output(tmp_path: Path) -> None:
    with raises(ToolError, tool="clang", where=str(tmp_path)) as caught:
        checked(tmp_path, kernel("missing = 1;"))
    assert "'missing'" in caught.value.output


def test_code_that_is_not_llvm_is_refused() -> None:
    with raises(InvalidValueError, got="int x;"):
        read_module("int x;")
    with raises(ToolError, tool="llvmlite"):
        read_module(b"int x;")


def test_delay_table_without_the_operator_is_refused() -> None:
    table = load_table()
    with raises(ChoiceError, got="cosine", choices=sorted(table.widths)):
        table.timing("cosine", 8)


def test_delay_table_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with raises(FileAccessError, path=str(tmp_path / "none.toml")):
        load_table(tmp_path / "none.toml")
    for text in ("part = ", 'part = "x"', "\n".join(("part = 1", "source = 1", "operators = 1"))):
        path = tmp_path / "delays.toml"
        path.write_text(text)
        with raises(DamagedFileError, path=str(path)):
            load_table(path)


@pytest.mark.parametrize(("call", "depth"), [("read_request", 9), ("write_request", 3)])
def test_burst_request_takes_7_cycles_to_read_and_1_to_write(call: str, depth: int, tmp_path: Path) -> None:
    """Allow two more cycles of depth: one to read the address from the FIFO, and one to end the loop."""
    port = "hls::burst_maxi<int> port, hls::stream<int> &in, int n"
    body = kernel(f"port.{call}(in.read(), 16);", port)
    loop = checked(tmp_path, "#include <hls_burst_maxi.h>\n" + body)
    assert loop.derived_ii == 1
    assert depth - 2 <= loop.derived_depth <= depth


LEVELS = """struct levels_t {{
    int threshold[2][4][20];
    bool flip[2][4];
    int count(int pe, int fold, int x) const {{
#pragma HLS INLINE
{pragmas}
        int count = 0;
        for (int l = 0; l < 20; ++l) count += (flip[pe][fold] ? -x : x) >= threshold[pe][fold][l] ? 1 : 0;
        return count;
    }}
}};
static const levels_t LEVELS = {{{{{levels}}}, {{{{true}}}}}};
"""
MEMBER = "#pragma HLS ARRAY_PARTITION variable = {} complete dim = {}"


@pytest.mark.parametrize(
    ("pragmas", "interval", "reason"),
    [
        ((("threshold", 1), ("threshold", 3), ("flip", 1)), 1, ""),
        ((("threshold", 1), ("flip", 1)), 2, "ports of LEVELS.threshold"),
        ((), 3, "ports of LEVELS.threshold"),
    ],
    ids=["taken apart", "one dimension only", "whole"],
)
def test_members_of_a_constant_struct_have_pragmas_of_their_own(
    tmp_path: Path, pragmas: tuple[tuple[str, int], ...], interval: int, reason: str
) -> None:
    """Read 40 levels per iteration, 20 for each of two PEs. A read-only memory has 16 copies."""
    levels = ", ".join(str(number * number % 97) for number in range(160))
    struct = LEVELS.format(pragmas="\n".join(MEMBER.format(*each) for each in pragmas), levels=levels)
    lines = "const int x = in.read();\nout.write(LEVELS.count(0, i & 3, x) + LEVELS.count(1, i & 3, x));"
    loop = checked(tmp_path, struct + kernel(lines))
    assert loop.derived_ii == interval
    assert loop.reason.startswith(reason)


def test_aggregated_struct_of_three_bytes_is_one_word(tmp_path: Path) -> None:
    struct = "struct rgb_t { ap_int<8> lane[3]; };\n"
    before = """static rgb_t words[64];
#pragma HLS AGGREGATE variable = words compact = bit
#pragma HLS BIND_STORAGE variable = words type = ram_s2p impl = bram"""
    lines = """#pragma HLS DEPENDENCE variable = words type = inter false
rgb_t value = in.read();
words[i & 63] = value;
out.write(words[(i + 32) & 63]);"""
    streams = "hls::stream<rgb_t> &in, hls::stream<rgb_t> &out, int n"
    loop = checked(tmp_path, struct + kernel(lines, streams, before))
    assert (loop.derived_ii, loop.reason) == (1, "")
