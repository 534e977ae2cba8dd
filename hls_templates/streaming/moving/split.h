// Splits a map along the channels. For every pixel, the block writes the first words to the first stream, the next
// words to the second stream, and so on. Each cycle reads a word and writes it to one stream, II 1.
//
//   iterations = F · POSITIONS · Σ CHANNELS / LANES     for F frames
#ifndef SYSTOLIC_SPLIT_H
#define SYSTOLIC_SPLIT_H

#include <hls_stream.h>

#include "instrument.h"
#include "parts.h"
#include "progress.h"
#include "word.h"

constexpr int SPLIT_DEPTH = 2;  // declared pipeline stages

// Writes ``value`` to stream ``number``. The compiler expands the recursion into a chain of if and else.
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

// CHANNELS are the channels of each output map, in the order of the streams.
template <int LANES, int POSITIONS, int... CHANNELS, class T, class... STREAMS>
void split(int frames, hls::stream<word<T, LANES>> &in, STREAMS &...outs) {
#pragma HLS INLINE
    static_assert(sizeof...(CHANNELS) == sizeof...(STREAMS), "each part must have one stream");
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
