// LINES delays of LENGTH words each, all of which step together: peek at what comes out, then push what goes in.
#ifndef SYSTOLIC_DELAY_H
#define SYSTOLIC_DELAY_H

#include "ram.h"
#include "word.h"

// What a memory holds before anything was written to it is never used; in simulation it is a value that would show.
template <class W, int LENGTH, int LINES>
inline void spoil(W (&memory)[LENGTH][LINES]) {
#ifndef __SYNTHESIS__
    for (int k = 0; k < LENGTH; ++k) {
        for (int n = 0; n < LINES; ++n) {
            memory[k][n] = zeros<W>();
            for (auto &value : memory[k][n].lane) value = ~value;
        }
    }
#else
    static_cast<void>(memory);
#endif
}

// Below this length a memory's write would not be over before the same word is read again.
constexpr int DELAY_REGISTERS = 4;

template <class W, int LINES, int LENGTH, int RAM, bool SHORT = (LENGTH <= DELAY_REGISTERS)>
struct delay_lines {
    W memory[LENGTH][LINES];
    int at;

    delay_lines() : at(0) {
// One address serves all lines: one wide memory.
#pragma HLS ARRAY_RESHAPE variable=memory complete dim=2
#pragma HLS AGGREGATE variable=memory compact=bit
        keep_in(memory, ram_of<RAM>());
        spoil(memory);
    }

    void peek(W (&oldest)[LINES]) const {
#pragma HLS INLINE
        for (int n = 0; n < LINES; ++n) {
#pragma HLS UNROLL
            oldest[n] = memory[at][n];
        }
    }

    void push(const W (&newest)[LINES]) {
#pragma HLS INLINE
#pragma HLS DEPENDENCE variable=memory type=inter false
        for (int n = 0; n < LINES; ++n) {
#pragma HLS UNROLL
            memory[at][n] = newest[n];
        }
        at = at + 1 == LENGTH ? 0 : at + 1;
    }
};

template <class W, int LINES, int LENGTH, int RAM>
struct delay_lines<W, LINES, LENGTH, RAM, true> {
    W memory[LENGTH][LINES];

    delay_lines() {
#pragma HLS ARRAY_PARTITION variable=memory complete dim=0
        spoil(memory);
    }

    void peek(W (&oldest)[LINES]) const {
#pragma HLS INLINE
        for (int n = 0; n < LINES; ++n) {
#pragma HLS UNROLL
            oldest[n] = memory[LENGTH - 1][n];
        }
    }

    void push(const W (&newest)[LINES]) {
#pragma HLS INLINE
        for (int n = 0; n < LINES; ++n) {
#pragma HLS UNROLL
            for (int k = LENGTH - 1; k > 0; --k) {
#pragma HLS UNROLL
                memory[k][n] = memory[k - 1][n];
            }
            memory[0][n] = newest[n];
        }
    }
};

#endif  // SYSTOLIC_DELAY_H
