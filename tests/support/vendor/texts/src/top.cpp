#include "blocks.h"
#include "feed.h"

typedef word_t map_buffer_t[32][6];

#ifndef __SYNTHESIS__
static void watch() {
    for (;;) {
        SYSTOLIC_PIPELINE(1, 1);
    }
}
#endif

static inline void load(pass_t pass, const map_buffer_t from, hls::stream<word_t> &rows_out) {
    SYSTOLIC_PROCESS("load");
    static word_t rows[4096];
    SYSTOLIC_PRAGMA(HLS BIND_STORAGE variable = rows type = ram_s2p impl = ROW_MEMORY)
    for (int i = 0; i < pass.words; ++i) {
        SYSTOLIC_PIPELINE(1, 8);
        rows_out.write(rows[i]);
    }
}

template <int PORT>
static void read_rows(pass_t pass, hls::burst_maxi<word_t> maps, hls::stream<word_t> &rows) {
    SYSTOLIC_PROCESS("read_rows");
    for (int i = 0; i < pass.words; ++i) {
        SYSTOLIC_PIPELINE(1, 3);
        rows.write(maps.read());
    }
}

// A process that is named otherwise in traces.
static void first_process(int frames, hls::stream<word_t> &in, hls::stream<word_t> &out) {
    SYSTOLIC_PROCESS("first");
    for (int frame = 0; frame < frames; ++frame) {
        multiply_unit<word_t, 16>(in, out);
    }
}

static void width_process(hls::stream<word_t> &in, hls::stream<word_t> &out) {
    SYSTOLIC_PROCESS("width");
    convert_each<1, 4>(1024, in, out);
    walk(in);
}

static void run_pass(pass_t pass, hls::burst_maxi<word_t> maps_0, const map_buffer_t from, map_buffer_t to) {
    SYSTOLIC_DATAFLOW(0);
    hls::stream<word_t> rows, ports[PORTS], weights, a, b, c;
    read_rows<0>(pass, maps_0, rows);
    load(pass, from, rows);
    feed_weights(pass, ports, weights);
    pool(pass, a, b);
    first_process(1, a, b);
    width_process(b, c);
}

void systolic_top(hls::burst_maxi<word_t> maps_0) {
    static map_buffer_t map_buffer_1;
#pragma HLS ARRAY_PARTITION variable = map_buffer_1 complete dim = 2
    SYSTOLIC_PRAGMA(HLS BIND_STORAGE variable = map_buffer_1 type = ram_s2p impl = MAP_MEMORY)
    static map_buffer_t map_buffer_2;
#pragma HLS ARRAY_PARTITION variable = map_buffer_2 complete dim = 2
    SYSTOLIC_PRAGMA(HLS BIND_STORAGE variable = map_buffer_2 type = ram_s2p impl = MAP_MEMORY)
    run_pass(pass_t(), maps_0, map_buffer_1, map_buffer_2);
}
