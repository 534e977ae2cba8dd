// LINES delay lines of LENGTH words each, which step together: ``peek`` gives the words of LENGTH steps ago, ``push``
// puts the newest in their place. Each is called once a step, peek first.
//
// The memory is an array of the block, because the block's loop has to say what the tool cannot know (DEPENDENCE …
// inter false): a word is read LENGTH steps after it was written, when its write is long complete. Lines that are too
// short for that, up to DELAY_REGISTERS words, are registers.
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

// All lines have the same address: one wide memory.
template <int RAM, class W, int LENGTH, int LINES>
inline void keep_delay(W (&memory)[LENGTH][LINES], std::false_type) {
#pragma HLS INLINE
#pragma HLS ARRAY_RESHAPE variable = memory complete dim = 2
#pragma HLS AGGREGATE variable = memory compact = bit
    keep_in(memory, ram_of<RAM>());
}

// Binds ``memory`` to registers or to the memory RAM. What it holds before it was written must never be used: in
// simulation it is all ones, which would show as wrong values.
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
    int address;

    delay_t() : address(0) {}

    template <class W, int LINES>
    void peek(const W (&memory)[LENGTH][LINES], W (&oldest)[LINES]) const {
#pragma HLS INLINE
        for (int n = 0; n < LINES; ++n) {
#pragma HLS UNROLL
            oldest[n] = in_registers<LENGTH>::value ? memory[LENGTH - 1][n] : memory[address][n];
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
            memory[address][n] = newest[n];
        }
        address = address + 1 == LENGTH ? 0 : address + 1;
    }
};

#endif  // SYSTOLIC_DELAY_H
