// Counters of a block's progress through the frames of a run. They replace a loop bound of frames · STEPS, a product
// that would take DSPs in every block and exceed 2^31 after seconds.
//
// The number of frames is a run-time value. LOOP_TRIPCOUNT in a block's loop only gives the tool's latency report a
// number of iterations; the hardware does not depend on it.
#ifndef SYSTOLIC_PROGRESS_H
#define SYSTOLIC_PROGRESS_H

#include "counter.h"

// The number of frames that remain. Like the counters of counter.h, it computes its flags one cycle ahead.
struct frames_t {
    int remaining;    // frames that remain
    bool open, last;  // whether at least one frame remains; whether exactly one remains

    explicit frames_t(int frames) : remaining(frames), open(frames > 0), last(frames == 1) {}

    void next() {
#pragma HLS INLINE
        if (last) open = false;
        last = remaining == 2;
        --remaining;
    }
};

// The progress of a block that takes STEPS iterations per frame.
template <int STEPS>
struct progress_t {
    static_assert(STEPS > 0, "STEPS must be at least 1: PE must not exceed the channels, nor PIXELS the positions");
    counter_t<STEPS> step;  // the iteration of the present frame
    int frame;              // completed frames

    progress_t() : frame(0) {}

    // Return whether fewer than ``frames`` frames are complete.
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
