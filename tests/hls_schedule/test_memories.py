"""Tests of the memories that the schedule check finds in short kernels: partitions, words, width and copies."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("ziglang", reason="the checks of schedules compile with the clang of the package ziglang")

from hls_schedule.check import read_sources
from hls_schedule.reading import frontend
from tests.support.kernels import HEAD

BLOCK = """
static void keep(short (&memory)[WORDS]) {
#pragma HLS INLINE
#pragma HLS BIND_STORAGE variable = memory type = ram_s2p impl = bram
}
void NAME(hls::stream<short> &in, hls::stream<short> &out, int n) {
    short waiting[WORDS];
    keep(waiting);
    for (int i = 0; i < n; ++i) {
        SYSTOLIC_PIPELINE(1, 3);
        out.write(waiting[i & (WORDS - 1)]);
        waiting[(i + 7) & (WORDS - 1)] = in.read();
    }
}
"""

TABLE = """
struct table_t {
    short value[2][64];
    short operator()(int turn, int key) const {
#pragma HLS INLINE
#pragma HLS ARRAY_PARTITION variable = value complete dim = 1
#pragma HLS BIND_STORAGE variable = value type = KIND impl = lutram
        return value[turn % 2][key & 63];
    }
};
static const table_t LEVELS = {{{1, 2, 3}, {4, 5, 6}}};
void look_up(hls::stream<int> &in, hls::stream<short> &out, int n) {
    for (int i = 0; i < n; ++i) {
        SYSTOLIC_PIPELINE(1, 3);
        const int key = in.read();
        short sum = 0;
        for (int lane = 0; lane < 6; ++lane) {
#pragma HLS UNROLL
            sum += LEVELS(lane, key >> lane);
        }
        out.write(sum);
    }
}
"""


def test_memories_of_equal_functions_differ_by_process(tmp_path: Path) -> None:
    (tmp_path / "instrument.h").write_text("")
    blocks = (BLOCK.replace("WORDS", words).replace("NAME", name) for name, words in (("one", "512"), ("two", "64")))
    (tmp_path / "top.cpp").write_text(HEAD + "".join(blocks))
    memories = read_sources(tmp_path / "top.cpp").memories()
    built = {(memory.processes, memory.name, memory.words, memory.bits) for memory in memories}
    assert built == {(("one",), "waiting", 512, 16), (("two",), "waiting", 64, 16)}


@pytest.mark.parametrize(("storage", "copies"), [("rom_np", 3), ("rom_1p", 1)])
def test_table_copies_per_reader_depend_on_the_storage_type(tmp_path: Path, storage: str, copies: int) -> None:
    (tmp_path / "instrument.h").write_text("")
    (tmp_path / "top.cpp").write_text(HEAD + TABLE.replace("KIND", storage))
    (memory,) = read_sources(tmp_path / "top.cpp").memories()
    assert (memory.partitions, memory.words, memory.bits, memory.copies) == (2, 64, 16, copies)


def test_struct_functions_and_static_numbers_are_not_memories(tmp_path: Path) -> None:
    """They are declared before the array, so they have the array's offset in the struct."""
    declared = "static const int WORDS = 64;\n    int words() const { return WORDS; }\n    short value[2][64];"
    text = TABLE.replace("short value[2][64];", declared).replace("lane < 6", "lane < LEVELS.words() / 11 + 1")
    (tmp_path / "instrument.h").write_text("")
    (tmp_path / "top.cpp").write_text(HEAD + text.replace("KIND", "rom_np"))
    (memory,) = read_sources(tmp_path / "top.cpp").memories()
    assert (memory.name, memory.partitions, memory.words, memory.bits) == ("LEVELS.value", 2, 64, 16)


def test_member_words_have_the_width_of_their_type(tmp_path: Path) -> None:
    """Members of 12 and 5 bits keep these widths, although the compiler stores them in 16 and 8 bits."""
    both = "ap_int<12> value[2][64];\n    ap_uint<5> more[2][64];"
    text = TABLE.replace("short value[2][64];", both).replace("{{{1, 2, 3}, {4, 5, 6}}}", "{{{1}, {2}}, {{3}, {4}}}")
    pragmas = [line for line in TABLE.splitlines() if "variable = value" in line]
    for line in pragmas:
        text = text.replace(line, f"{line}\n{line.replace('value', 'more')}")
    text = text.replace(
        "return value[turn % 2][key & 63]", "return value[turn % 2][key & 63] + more[turn % 2][key & 63]"
    )
    (tmp_path / "instrument.h").write_text("")
    (tmp_path / "top.cpp").write_text(HEAD + text.replace("KIND", "rom_np"))
    memories = read_sources(tmp_path / "top.cpp").memories()
    built = {(memory.name, memory.partitions, memory.words, memory.bits) for memory in memories}
    assert built == {("LEVELS.value", 2, 64, 12), ("LEVELS.more", 2, 64, 5)}


WEIGHTS = """
static const ap_int<8> WEIGHTS[2][10000][1] = {
VALUES
};
void multiply(hls::stream<int> &in, hls::stream<int> &out, int n) {
#pragma HLS ARRAY_PARTITION variable = WEIGHTS complete dim = 1
#pragma HLS BIND_STORAGE variable = WEIGHTS type = rom_1p impl = bram
    int sum = 0;
    for (int i = 0; i < n; ++i) {
        SYSTOLIC_PIPELINE(1, 8);
        const int key = in.read();
        for (int lane = 0; lane < 2; ++lane) {
#pragma HLS UNROLL
            sum += WEIGHTS[lane][key % 8192][0] * key;
        }
        out.write(sum);
    }
}
"""


def test_large_table_compiled_without_its_values_gives_equal_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "instrument.h").write_text("")
    values = ",\n".join(f"{number % 255 - 127}" for number in range(20_000))
    (tmp_path / "top.cpp").write_text(HEAD + WEIGHTS.replace("VALUES", values))
    compiled = {}
    for most in (20_000, 19_999):
        monkeypatch.setattr(frontend, "_MAX_LITERALS", most)
        sources = read_sources(tmp_path / "top.cpp")
        compiled[most] = (sources.memories(), sources.check(300), sources.multipliers())
    assert compiled[20_000] == compiled[19_999]
    (memory,) = compiled[19_999][0]
    assert (memory.name, memory.partitions, memory.words, memory.bits) == ("WEIGHTS", 2, 10_000, 8)
    assert len(frontend.compile_sources(tmp_path / "top.cpp").text) < 100_000
