// Zeros around a map, as a block of its own; windows and pools put in their padding themselves, at no cost. A word
// leaves each cycle, II 1:
//   iterations = F · (TOP + HEIGHT + BOTTOM) · (LEFT + WIDTH + RIGHT) · CHANNELS / LANES
#ifndef SYSTOLIC_PAD_H
#define SYSTOLIC_PAD_H

#include <hls_stream.h>

#include "instrument.h"
#include "progress.h"
#include "raster.h"
#include "word.h"

constexpr int PAD_DEPTH = 2;

template <int LANES, int CHANNELS, int HEIGHT, int WIDTH, int TOP, int LEFT, int BOTTOM, int RIGHT, class T>
void pad(int frames, hls::stream<word<T, LANES>> &in, hls::stream<word<T, LANES>> &out) {
#pragma HLS INLINE
    static_assert(CHANNELS % LANES == 0, "LANES divides the channels");
    constexpr int G = CHANNELS / LANES, HIGH = TOP + HEIGHT + BOTTOM, WIDE = LEFT + WIDTH + RIGHT;
    raster_t<G, HIGH, WIDE> at;
    progress_t<HIGH * WIDE * G> done;
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, PAD_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        word<T, LANES> value;
        for (int l = 0; l < LANES; ++l) {
#pragma HLS UNROLL
            value.lane[l] = 0;
        }
        if (inside(at.y.value, TOP, HEIGHT) && inside(at.x.value, LEFT, WIDTH)) value = in.read();
        out.write(value);
        at.advance();
        done.next();
    }
}

#endif  // SYSTOLIC_PAD_H
