#ifndef FEED_H
#define FEED_H

#include "parameters.h"

inline void store_weights(word_t buffer[WEIGHT_DEPTH][8], hls::stream<word_t> ports[PORTS]) {
#pragma HLS INLINE
    for (int port = 0; port < PORTS; ++port) {
#pragma HLS UNROLL
        buffer[0][port] = ports[port].read();
    }
}

inline void feed_phase(int feeds, word_t buffer[WEIGHT_DEPTH][8], hls::stream<word_t> ports[PORTS]) {
#pragma HLS INLINE off
#pragma HLS BIND_STORAGE variable = buffer type = ram_s2p impl = bram
    for (int i = 0; i < feeds; ++i) {
        SYSTOLIC_PIPELINE(1, 4);
        store_weights(buffer, ports);
    }
}

static inline void feed_weights(pass_t pass, hls::stream<word_t> ports[PORTS], hls::stream<word_t> &weights) {
    SYSTOLIC_PROCESS("feed_weights");
    static word_t buffer[WEIGHT_DEPTH][8];
#pragma HLS ARRAY_PARTITION variable = buffer complete dim = 2
    SYSTOLIC_PRAGMA(HLS BIND_STORAGE variable = buffer type = ram_s2p impl = WEIGHT_MEMORY)
    feed_phase(pass.feeds, buffer, ports);
}

#endif
