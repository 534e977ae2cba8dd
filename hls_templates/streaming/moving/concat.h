// Maps one after the other along the channels: of every pixel the words of the first, then of the next. LANES divides the
// channels of each.   iterations = F · POSITIONS · Σ channels / LANES
#ifndef SYSTOLIC_CONCAT_H
#define SYSTOLIC_CONCAT_H

#include <hls_stream.h>

#include "instrument.h"
#include "progress.h"
#include "word.h"

constexpr int CONCAT_DEPTH = 2;

template <class W>
inline W read_one(int, hls::stream<W> &last) {
#pragma HLS INLINE
    return last.read();
}

template <class W, class... STREAMS>
inline W read_one(int which, hls::stream<W> &first, hls::stream<W> &second, STREAMS &...others) {
#pragma HLS INLINE
    if (which == 0) return first.read();
    return read_one(which - 1, second, others...);
}

template <int LANES, int POSITIONS, int... CHANNELS, class T, class... STREAMS>
void concat_into(hls::stream<word<T, LANES>> &out, int frames, STREAMS &...ins) {
#pragma HLS INLINE
    const int words[] = {CHANNELS / LANES...};
    constexpr int INPUTS = sizeof...(CHANNELS);
    int which = 0, at = 0;
    progress_t<POSITIONS> done = {0, 0};
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, CONCAT_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        out.write(read_one(which, ins...));
        if (++at == words[which]) {
            at = 0;
            if (++which == INPUTS) {
                which = 0;
                done.next();
            }
        }
    }
}

template <int LANES, int POSITIONS, int C0, int C1, class T>
void concat(int frames, hls::stream<word<T, LANES>> &in0, hls::stream<word<T, LANES>> &in1,
            hls::stream<word<T, LANES>> &out) {
#pragma HLS INLINE
    static_assert(C0 % LANES == 0 && C1 % LANES == 0, "LANES divides the channels of every map");
    concat_into<LANES, POSITIONS, C0, C1>(out, frames, in0, in1);
}

template <int LANES, int POSITIONS, int C0, int C1, int C2, class T>
void concat(int frames, hls::stream<word<T, LANES>> &in0, hls::stream<word<T, LANES>> &in1,
            hls::stream<word<T, LANES>> &in2, hls::stream<word<T, LANES>> &out) {
#pragma HLS INLINE
    static_assert(C0 % LANES == 0 && C1 % LANES == 0 && C2 % LANES == 0, "LANES divides the channels of every map");
    concat_into<LANES, POSITIONS, C0, C1, C2>(out, frames, in0, in1, in2);
}

template <int LANES, int POSITIONS, int C0, int C1, int C2, int C3, class T>
void concat(int frames, hls::stream<word<T, LANES>> &in0, hls::stream<word<T, LANES>> &in1,
            hls::stream<word<T, LANES>> &in2, hls::stream<word<T, LANES>> &in3, hls::stream<word<T, LANES>> &out) {
#pragma HLS INLINE
    static_assert(C0 % LANES == 0 && C1 % LANES == 0 && C2 % LANES == 0 && C3 % LANES == 0,
                  "LANES divides the channels of every map");
    concat_into<LANES, POSITIONS, C0, C1, C2, C3>(out, frames, in0, in1, in2, in3);
}

#endif  // SYSTOLIC_CONCAT_H
