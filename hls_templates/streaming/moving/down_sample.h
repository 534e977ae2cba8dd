// Down-sampling: keeps every STRIDE-th pixel of every STRIDE-th row, from pixel 0 of row 0 on. Each cycle reads a word,
// and writes it if its pixel is kept, II 1.
//
//   iterations = F · HEIGHT · WIDTH · CHANNELS / LANES     for F frames
#ifndef SYSTOLIC_DOWN_SAMPLE_H
#define SYSTOLIC_DOWN_SAMPLE_H

#include <hls_stream.h>

#include "instrument.h"
#include "progress.h"
#include "raster.h"
#include "word.h"

constexpr int DOWN_SAMPLE_DEPTH = 2;  // declared pipeline stages

template <int LANES, int CHANNELS, int HEIGHT, int WIDTH, int STRIDE, class T>
void down_sample(int frames, hls::stream<word<T, LANES>> &in, hls::stream<word<T, LANES>> &out) {
#pragma HLS INLINE
    static_assert(CHANNELS % LANES == 0, "LANES must divide CHANNELS");
    constexpr int G = CHANNELS / LANES;
    raster_t<G, HEIGHT, WIDTH, STRIDE> at;
    progress_t<HEIGHT * WIDTH * G> done;
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, DOWN_SAMPLE_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        const word<T, LANES> value = in.read();
        if (at.on_grid()) out.write(value);
        at.advance();
        done.next();
    }
}

#endif  // SYSTOLIC_DOWN_SAMPLE_H
