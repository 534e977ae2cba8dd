// Up-sampling: repeats each pixel STRIDE times in STRIDE rows. Each cycle reads at most one word and writes at most one
// word, II 1 (walk.h).
//
//   iterations = WIDTH · G + WALK_LANDING − 1 + F · HEIGHT · WIDTH · STRIDE² · G     for F frames, G = CHANNELS / LANES
//   buffer     = 2 rows
#ifndef SYSTOLIC_UPSAMPLE_H
#define SYSTOLIC_UPSAMPLE_H

#include "resize.h"

template <int LANES, int CHANNELS, int HEIGHT, int WIDTH, int STRIDE, int RAM = RAM_AUTO, class T>
void upsample(int frames, hls::stream<word<T, LANES>> &in, hls::stream<word<T, LANES>> &out) {
#pragma HLS INLINE
    resize_nearest<LANES, CHANNELS, HEIGHT, WIDTH, HEIGHT * STRIDE, WIDTH * STRIDE, RAM>(frames, in, out);
}

#endif  // SYSTOLIC_UPSAMPLE_H
