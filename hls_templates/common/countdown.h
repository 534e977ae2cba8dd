// A loop counter that knows one cycle ahead whether it is at its end. If a counter counts up, one cycle must add,
// compare and select, and nested loops wait for each other's comparisons. This counter counts down: it compares with a
// constant and stores the result in a register, so that the ends of nested loops combine registers only.
#ifndef SYSTOLIC_COUNTDOWN_H
#define SYSTOLIC_COUNTDOWN_H

// Counts of one loop.
struct countdown_t {
    int remaining;          // iterations after this one
    bool last;              // whether this is the last iteration
    int initial_remaining;  // iterations of the loop, minus 1: the start value of ``remaining``
    bool initial_last;      // start value of ``last``: the loop has one iteration
};

// Begin the first iteration again.
inline void restart_countdown(countdown_t &count) {
#pragma HLS INLINE
    count.remaining = count.initial_remaining;
    count.last = count.initial_last;
}

// Begin a loop of ``iterations`` iterations, at least 1.
inline void start_countdown(countdown_t &count, int iterations) {
#pragma HLS INLINE
    count.initial_remaining = iterations - 1;
    count.initial_last = iterations == 1;
    restart_countdown(count);
}

// If ``step`` is set, advance to the next iteration; after the last one, begin the first one again.
inline void count_down(countdown_t &count, bool step) {
#pragma HLS INLINE
    const bool before_last = count.remaining == 1;
    if (step) {
        count.remaining = count.last ? count.initial_remaining : count.remaining - 1;
        count.last = count.last ? count.initial_last : before_last;
    }
}

#endif  // SYSTOLIC_COUNTDOWN_H
