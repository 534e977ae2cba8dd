// A loop counter that knows one cycle ahead whether it is at its end. If a counter counts up, one cycle must add,
// compare and select, and nested loops wait for each other's comparisons. This counter counts down: it compares with a
// constant and stores the result in a register, so that the ends of nested loops combine registers only.
#ifndef SYSTOLIC_COUNTDOWN_H
#define SYSTOLIC_COUNTDOWN_H

// Counts of one loop. A *turn* is one iteration.
struct countdown_t {
    int left;            // turns after this one
    bool last;           // whether this is the last turn
    int turns_less_one;  // turns of the loop, minus 1: the start value of ``left``
    bool single;         // start value of ``last``: the loop has one turn
};

// Begin the first turn again.
inline void restart(countdown_t &count) {
#pragma HLS INLINE
    count.left = count.turns_less_one;
    count.last = count.single;
}

// Begin a loop of ``turns`` turns, at least 1.
inline void begin(countdown_t &count, int turns) {
#pragma HLS INLINE
    count.turns_less_one = turns - 1;
    count.single = turns == 1;
    restart(count);
}

// If ``step`` is set, advance to the next turn; after the last turn, begin the first turn again.
inline void count_down(countdown_t &count, bool step) {
#pragma HLS INLINE
    const bool before_last = count.left == 1;
    if (step) {
        count.left = count.last ? count.turns_less_one : count.left - 1;
        count.last = count.last ? count.single : before_last;
    }
}

#endif  // SYSTOLIC_COUNTDOWN_H
