// Concatenates maps along the channels. For every pixel, the block writes all words of the first map, then all words of
// the second map, and so on. Each cycle reads a word of one map and writes it, II 1.
//
//   iterations = F · POSITIONS · Σ CHANNELS / LANES     for F frames
#ifndef SYSTOLIC_CONCAT_H
#define SYSTOLIC_CONCAT_H

#include <hls_stream.h>

#include "instrument.h"
#include "parts.h"
#include "progress.h"
#include "word.h"

constexpr int CONCAT_DEPTH = 2;  // declared pipeline stages

// Reads the next word of stream ``number``. The compiler expands the recursion into a chain of if and else.
template <class W>
inline W read_from(int, hls::stream<W> &last) {
#pragma HLS INLINE
    return last.read();
}
template <class W, class... STREAMS>
inline W read_from(int number, hls::stream<W> &first, hls::stream<W> &second, STREAMS &...others) {
#pragma HLS INLINE
    if (number == 0) return first.read();
    return read_from(number - 1, second, others...);
}

// CHANNELS are the channels of each map, in the order of the streams.
template <int LANES, int POSITIONS, int... CHANNELS, class T, class... STREAMS>
void concat(int frames, hls::stream<word<T, LANES>> &out, STREAMS &...ins) {
#pragma HLS INLINE
    static_assert(sizeof...(CHANNELS) == sizeof...(STREAMS), "each part must have one stream");
    parts_t<LANES, CHANNELS...> at;
    progress_t<POSITIONS> done;
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, CONCAT_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        out.write(read_from(at.part.value, ins...));
        if (at.advance()) done.next();
    }
}

#endif  // SYSTOLIC_CONCAT_H
