// How far a block is: so many of the STEPS of a frame, so many frames. Counted and not multiplied: frames · STEPS would
// take DSPs in every block, and 2^31 cycles are over in seconds.
#ifndef SYSTOLIC_PROGRESS_H
#define SYSTOLIC_PROGRESS_H

template <int STEPS>
struct progress_t {
    static_assert(STEPS > 0, "a frame is whole words: PE divides the channels, PIXELS the positions");
    int step, frame;

    bool before(int frames) const {
#pragma HLS INLINE
        return frame < frames;
    }
    void next() {
#pragma HLS INLINE
        if (++step < STEPS) return;
        step = 0;
        ++frame;
    }
};

#endif  // SYSTOLIC_PROGRESS_H
