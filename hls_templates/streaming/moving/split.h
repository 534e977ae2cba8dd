// The channels cut into consecutive parts, an output each. LANES divides every part.
//   iterations = F · POSITIONS · Σ channels / LANES
#ifndef SYSTOLIC_SPLIT_H
#define SYSTOLIC_SPLIT_H

#include <hls_stream.h>

#include "instrument.h"
#include "progress.h"
#include "word.h"

constexpr int SPLIT_DEPTH = 2;

template <class W>
inline void write_one(const W &value, int, hls::stream<W> &last) {
#pragma HLS INLINE
    last.write(value);
}

template <class W, class... STREAMS>
inline void write_one(const W &value, int which, hls::stream<W> &first, hls::stream<W> &second, STREAMS &...others) {
#pragma HLS INLINE
    if (which == 0) {
        first.write(value);
    } else {
        write_one(value, which - 1, second, others...);
    }
}

template <int LANES, int POSITIONS, int... CHANNELS, class T, class... STREAMS>
void split_into(hls::stream<word<T, LANES>> &in, int frames, STREAMS &...outs) {
#pragma HLS INLINE
    const int words[] = {CHANNELS / LANES...};
    constexpr int OUTPUTS = sizeof...(CHANNELS);
    int which = 0, at = 0;
    progress_t<POSITIONS> done = {0, 0};
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, SPLIT_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        write_one(in.read(), which, outs...);
        if (++at == words[which]) {
            at = 0;
            if (++which == OUTPUTS) {
                which = 0;
                done.next();
            }
        }
    }
}

template <int LANES, int POSITIONS, int C0, int C1, class T>
void split(int frames, hls::stream<word<T, LANES>> &in, hls::stream<word<T, LANES>> &out0,
           hls::stream<word<T, LANES>> &out1) {
#pragma HLS INLINE
    static_assert(C0 % LANES == 0 && C1 % LANES == 0, "LANES divides every part");
    split_into<LANES, POSITIONS, C0, C1>(in, frames, out0, out1);
}

template <int LANES, int POSITIONS, int C0, int C1, int C2, class T>
void split(int frames, hls::stream<word<T, LANES>> &in, hls::stream<word<T, LANES>> &out0,
           hls::stream<word<T, LANES>> &out1, hls::stream<word<T, LANES>> &out2) {
#pragma HLS INLINE
    static_assert(C0 % LANES == 0 && C1 % LANES == 0 && C2 % LANES == 0, "LANES divides every part");
    split_into<LANES, POSITIONS, C0, C1, C2>(in, frames, out0, out1, out2);
}

template <int LANES, int POSITIONS, int C0, int C1, int C2, int C3, class T>
void split(int frames, hls::stream<word<T, LANES>> &in, hls::stream<word<T, LANES>> &out0,
           hls::stream<word<T, LANES>> &out1, hls::stream<word<T, LANES>> &out2, hls::stream<word<T, LANES>> &out3) {
#pragma HLS INLINE
    static_assert(C0 % LANES == 0 && C1 % LANES == 0 && C2 % LANES == 0 && C3 % LANES == 0, "LANES divides every part");
    split_into<LANES, POSITIONS, C0, C1, C2, C3>(in, frames, out0, out1, out2, out3);
}

#endif  // SYSTOLIC_SPLIT_H
