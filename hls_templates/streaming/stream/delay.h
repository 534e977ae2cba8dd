// LINES delays of LENGTH words each, all of which step together: peek at what comes out, then push what goes in.
//
// The memory is an array of the block's own, so that the block's loop can say what the tool does not see: a word is read
// LENGTH steps after it was written, when its write is long over. Where LENGTH is too short for that, it is registers.
#ifndef SYSTOLIC_DELAY_H
#define SYSTOLIC_DELAY_H

#include <type_traits>

#include "ram.h"
#include "word.h"

constexpr int DELAY_REGISTERS = 4;

template <int LENGTH>
using in_registers = std::integral_constant<bool, (LENGTH <= DELAY_REGISTERS)>;

template <int RAM, class W, int LENGTH, int LINES>
inline void keep_delay(W (&memory)[LENGTH][LINES], std::true_type) {
#pragma HLS INLINE
#pragma HLS ARRAY_PARTITION variable = memory complete dim = 0
    static_cast<void>(memory);
}

// One address serves all lines: one wide memory.
template <int RAM, class W, int LENGTH, int LINES>
inline void keep_delay(W (&memory)[LENGTH][LINES], std::false_type) {
#pragma HLS INLINE
#pragma HLS ARRAY_RESHAPE variable = memory complete dim = 2
#pragma HLS AGGREGATE variable = memory compact = bit
    keep_in(memory, ram_of<RAM>());
}

// Keeps ``memory`` where it belongs. What it holds before anything was written is never used; in simulation it is a value
// that would show.
template <int RAM, class W, int LENGTH, int LINES>
inline void keep_delay(W (&memory)[LENGTH][LINES]) {
#pragma HLS INLINE
    keep_delay<RAM>(memory, in_registers<LENGTH>());
#ifndef __SYNTHESIS__
    for (int k = 0; k < LENGTH; ++k) {
        for (int n = 0; n < LINES; ++n) {
            memory[k][n] = zeros<W>();
            for (auto &value : memory[k][n].lane) value = ~value;
        }
    }
#endif
}

template <int LENGTH>
struct delay_t {
    int at;

    delay_t() : at(0) {}

    template <class W, int LINES>
    void peek(const W (&memory)[LENGTH][LINES], W (&oldest)[LINES]) const {
#pragma HLS INLINE
        for (int n = 0; n < LINES; ++n) {
#pragma HLS UNROLL
            oldest[n] = in_registers<LENGTH>::value ? memory[LENGTH - 1][n] : memory[at][n];
        }
    }

    template <class W, int LINES>
    void push(W (&memory)[LENGTH][LINES], const W (&newest)[LINES]) {
#pragma HLS INLINE
        step(memory, newest, in_registers<LENGTH>());
    }

    template <class W, int LINES>
    void step(W (&memory)[LENGTH][LINES], const W (&newest)[LINES], std::true_type) {
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

    template <class W, int LINES>
    void step(W (&memory)[LENGTH][LINES], const W (&newest)[LINES], std::false_type) {
#pragma HLS INLINE
        for (int n = 0; n < LINES; ++n) {
#pragma HLS UNROLL
            memory[at][n] = newest[n];
        }
        at = at + 1 == LENGTH ? 0 : at + 1;
    }
};

#endif  // SYSTOLIC_DELAY_H
