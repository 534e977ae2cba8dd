// STRIDE − 1 zeros between neighbouring pixels, along rows and columns: a convolution of stride 1 behind it is a
// transposed convolution. A word leaves each cycle, II 1:
//   iterations = F · ((HEIGHT − 1) · STRIDE + 1) · ((WIDTH − 1) · STRIDE + 1) · CHANNELS / LANES
#ifndef SYSTOLIC_PIXEL_PAD_H
#define SYSTOLIC_PIXEL_PAD_H

#include <hls_stream.h>

#include "instrument.h"
#include "progress.h"
#include "raster.h"
#include "word.h"

constexpr int PIXEL_PAD_DEPTH = 2;

template <int LANES, int CHANNELS, int HEIGHT, int WIDTH, int STRIDE, class T>
void pixel_pad(int frames, hls::stream<word<T, LANES>> &in, hls::stream<word<T, LANES>> &out) {
#pragma HLS INLINE
    static_assert(CHANNELS % LANES == 0, "LANES divides the channels");
    constexpr int G = CHANNELS / LANES, HIGH = (HEIGHT - 1) * STRIDE + 1, WIDE = (WIDTH - 1) * STRIDE + 1;
    raster_t<G, HIGH, WIDE, STRIDE> at;
    progress_t<HIGH * WIDE * G> done;
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, PIXEL_PAD_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        word<T, LANES> value;
        for (int l = 0; l < LANES; ++l) {
#pragma HLS UNROLL
            value.lane[l] = 0;
        }
        if (at.on_grid()) value = in.read();
        out.write(value);
        at.advance();
        done.next();
    }
}

#endif  // SYSTOLIC_PIXEL_PAD_H
