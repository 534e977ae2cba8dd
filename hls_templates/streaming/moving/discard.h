// Reads a stream that no other block reads, so that its writer does not stall. Each cycle reads a word, II 1:
// iterations = F · WORDS for F frames of WORDS words.
#ifndef SYSTOLIC_DISCARD_H
#define SYSTOLIC_DISCARD_H

#include <hls_stream.h>

#include "instrument.h"
#include "progress.h"
#include "word.h"

template <int LANES, int WORDS, class T>
void discard(int frames, hls::stream<word<T, LANES>> &in) {
#pragma HLS INLINE
    progress_t<WORDS> done;
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, 1);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        in.read();
        done.next();
    }
}

#endif  // SYSTOLIC_DISCARD_H
