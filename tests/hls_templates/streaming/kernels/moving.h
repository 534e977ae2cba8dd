// A writer that is only just fast enough.
#ifndef MOVING_H
#define MOVING_H

#include "compute.h"

template <class T, int LANES>
void feed_slowly(long words, int interval, values_t values, hls::stream<word<T, LANES>> &out) {
    SYSTOLIC_PROCESS("feed");
    SYSTOLIC_ENTER;
    for (long i = 0; i < words; ++i) {
        SYSTOLIC_PIPELINE(interval, 1);
        word<T, LANES> next;
        for (int l = 0; l < LANES; ++l) next.lane[l] = T(values[i * LANES + l]);
        out.write(next);
    }
}

#endif  // MOVING_H
