#ifndef BLOCKS_H
#define BLOCKS_H

#include "parameters.h"

template <int IN, int OUT>
void convert_each(int words, hls::stream<word_t> &in, hls::stream<word_t> &out) {
    for (int i = 0; i < words; ++i) {
        SYSTOLIC_PIPELINE(1, 3);
        out.write(in.read());
    }
}

template <class Word, int WORDS>
void multiply_unit(hls::stream<Word> &in, hls::stream<Word> &out) {
    for (int row = 0; row < WORDS; ++row) {
        SYSTOLIC_PIPELINE(1, 12);
        if (row > 0) {
            out.write(in.read());
        }
    }
}

inline void walk(hls::stream<word_t> &in) {
    while (true) {
        SYSTOLIC_PIPELINE(1, 6);
        in.read();
    }
}

static inline void pool(pass_t pass, hls::stream<word_t> &in, hls::stream<word_t> &out) {
    SYSTOLIC_PROCESS("pool");
    int load = 0, feed_phase = 0;  // names of functions too: no calls of them
    while (load < pass.rows) {
        SYSTOLIC_PIPELINE(1, POOL_DEPTH);
        out.write(in.read());
        load += feed_phase;
    }
}

#endif
