// One map becomes several, along the channels: of every pixel the first words go to the first stream, and so on.
// A word a cycle, II 1: iterations = F · POSITIONS · Σ CHANNELS / LANES
#ifndef SYSTOLIC_SPLIT_H
#define SYSTOLIC_SPLIT_H

#include <hls_stream.h>

#include "instrument.h"
#include "parts.h"
#include "progress.h"
#include "word.h"

constexpr int SPLIT_DEPTH = 2;

// ``value`` into stream ``number``; the compiler unfolds this into a chain of if and else.
template <class W>
inline void write_to(int, const W &value, hls::stream<W> &last) {
#pragma HLS INLINE
    last.write(value);
}
template <class W, class... STREAMS>
inline void write_to(int number, const W &value, hls::stream<W> &first, hls::stream<W> &second, STREAMS &...others) {
#pragma HLS INLINE
    if (number == 0) {
        first.write(value);
    } else {
        write_to(number - 1, value, second, others...);
    }
}

template <int LANES, int POSITIONS, int... CHANNELS, class T, class... STREAMS>
void split(int frames, hls::stream<word<T, LANES>> &in, STREAMS &...outs) {
#pragma HLS INLINE
    static_assert(sizeof...(CHANNELS) == sizeof...(STREAMS), "a stream for each part");
    parts_t<LANES, CHANNELS...> at;
    progress_t<POSITIONS> done;
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, SPLIT_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        write_to(at.part.value, in.read(), outs...);
        if (at.advance()) done.next();
    }
}

#endif  // SYSTOLIC_SPLIT_H
