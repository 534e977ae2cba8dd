// A loop's counter that knows a cycle ahead whether it is at its end. Counted up, a counter is added to, compared, and
// what depends on it selected, all in one cycle, and nested loops wait for each other's comparisons. Counted down, the
// comparison is with a constant and its result a register: at the ends of many loops only registers meet.
#ifndef SYSTOLIC_COUNTDOWN_H
#define SYSTOLIC_COUNTDOWN_H

struct countdown_t {
    int left;            // turns after this one
    bool last;           // whether there are none
    int turns_less_one;  // what ``left`` begins with again
    bool single;         // and ``last``
};

inline void restart(countdown_t &count) {
#pragma HLS INLINE
    count.left = count.turns_less_one;
    count.last = count.single;
}

// ``turns``: at least 1.
inline void begin(countdown_t &count, int turns) {
#pragma HLS INLINE
    count.turns_less_one = turns - 1;
    count.single = turns == 1;
    restart(count);
}

// Goes to the next turn where ``step``; after the last one begins again.
inline void count_down(countdown_t &count, bool step) {
#pragma HLS INLINE
    const bool before_last = count.left == 1;
    if (step) {
        count.left = count.last ? count.turns_less_one : count.left - 1;
        count.last = count.last ? count.single : before_last;
    }
}

#endif  // SYSTOLIC_COUNTDOWN_H
