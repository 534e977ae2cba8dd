// How far a block is: frames, and steps of this frame, of STEPS. It counts instead of comparing with frames · STEPS,
// whose product would take DSPs in every block and exceed 2^31 after seconds.
#ifndef SYSTOLIC_PROGRESS_H
#define SYSTOLIC_PROGRESS_H

#include "counter.h"

// Frames that are still to come: ``open`` while there are any. It knows a cycle ahead, as the counters of counter.h do.
struct frames_t {
    int left;
    bool open, last;

    explicit frames_t(int frames) : left(frames), open(frames > 0), last(frames == 1) {}

    void next() {
#pragma HLS INLINE
        if (last) open = false;
        last = left == 2;
        --left;
    }
};

template <int STEPS>
struct progress_t {
    static_assert(STEPS > 0, "a frame is whole words: PE divides the channels, PIXELS the positions");
    counter_t<STEPS> step;
    int frame;

    progress_t() : frame(0) {}

    bool before(int frames) const {
#pragma HLS INLINE
        return frame < frames;
    }
    void next() {
#pragma HLS INLINE
        if (step.next()) ++frame;
    }
};

#endif  // SYSTOLIC_PROGRESS_H
