"""A design without lint findings, and the texts that tests of the linter replace in it."""

from __future__ import annotations

from hls_templates.lint import Finding, lint

TYPES = """#ifndef TYPES_H
#define TYPES_H
#include <ap_int.h>
#include <hls_stream.h>
typedef ap_int<8> value_t;
struct word_t {
    value_t lane[4];
};
struct links_t {
    hls::stream<word_t> left, right;
};
constexpr int LANES = 4;
static const int DEPTH = 2 * LANES;
#endif
"""


DESIGN = """#include "instrument.h"
#include "types.h"

template <int N>
static void scale(const word_t &in, word_t &out) {
#pragma HLS INLINE
    for (int l = 0; l < N; ++l) {
#pragma HLS UNROLL
        out.lane[l] = in.lane[l] * 3;
    }
}

static void load(const word_t *maps, int words, hls::stream<word_t> &to) {
    SYSTOLIC_PROCESS("load");
    SYSTOLIC_ENTER;
    for (int i = 0; i < words; ++i) {
        SYSTOLIC_PIPELINE(1, 3);
#pragma HLS LOOP_TRIPCOUNT min=1 max=4096
        to.write(SYSTOLIC_LOAD(0, maps, i));
    }
}

static void compute(hls::stream<word_t> &from, int words, links_t &links) {
    word_t kept[DEPTH];
#pragma HLS ARRAY_PARTITION variable=kept cyclic factor=2 dim=1
#pragma HLS AGGREGATE variable=kept compact=bit
#pragma HLS BIND_STORAGE variable=kept type=ram_s2p impl=lutram
    for (int i = 0; i < words; ++i) {
        SYSTOLIC_PIPELINE(1, 5);
#pragma HLS LOOP_TRIPCOUNT min=1 max=4096
#pragma HLS DEPENDENCE variable=kept inter false
        word_t in = from.read(), out;
        scale<LANES>(in, out);
        kept[i % DEPTH] = out;
        links.left << out;
        links.right << in;
    }
}

static void save(links_t &links, int words, word_t *maps) {
    for (int i = 0; i < words; ++i) {
        SYSTOLIC_PIPELINE(1, 2);
#pragma HLS LOOP_TRIPCOUNT min=1 max=4096
        word_t left, right;
        links.left >> left;
        links.right.read(right);
        SYSTOLIC_STORE(0, maps, i, i % 2 ? left : right);
    }
}

static void run(const word_t *source, word_t *sink, int words) {
    SYSTOLIC_DATAFLOW(0);
    hls::stream<word_t> rows("rows");
    links_t links;
    SYSTOLIC_STREAM(rows, 16);
    load(source, words, rows);
    compute(rows, words, links);
    save(links, words, sink);
}

extern "C" void accelerate(const word_t *source, word_t *sink, int words) {
#pragma HLS INTERFACE mode=m_axi port=source bundle=maps_0 offset=slave depth=4096 max_read_burst_length=64
#pragma HLS INTERFACE m_axi port=sink bundle=maps_1 offset=slave depth=4096 num_write_outstanding=16
#pragma HLS INTERFACE mode=s_axilite port=words
#pragma HLS INTERFACE mode=s_axilite port=return
    run(source, sink, words);
}
"""


KEPT = "    word_t kept[DEPTH];\n"


LAST = "    run(source, sink, words);\n"


def faults(old: str = "", new: str = "", top: str = "accelerate") -> tuple[Finding, ...]:
    assert DESIGN.count(old) or not old, "the text to replace is not in the design"
    return lint({"top.cpp": DESIGN.replace(old, new, 1), "types.h": TYPES}, top)
