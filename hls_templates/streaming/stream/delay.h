// LINES delay lines of LENGTH words each, which step together. ``peek`` returns the words that were pushed LENGTH steps
// ago, and ``push`` stores the newest words in their place. A block calls each of them once per step, peek first.
//
// The block declares the memory, because the pragma `DEPENDENCE … inter false` belongs in the block's loop. The tool
// cannot know that a word is read LENGTH steps after it was written, when the write has completed. Lines of up to
// DELAY_REGISTERS words are too short for this, and are built of registers.
#ifndef SYSTOLIC_DELAY_H
#define SYSTOLIC_DELAY_H

#include <type_traits>

#include "counter.h"
#include "ram.h"
#include "word.h"

constexpr int DELAY_REGISTERS = 4;  // words of the longest line that is built of registers

template <int LENGTH>
using in_registers = std::integral_constant<bool, (LENGTH <= DELAY_REGISTERS)>;

// The words of all lines at one address: one wide word of the memory. All lines share the address. The block that
// declares the memory has to add the pragma AGGREGATE.
template <class W, int LINES>
struct lines_t {
    W line[LINES];
};

// Overloads for a line in registers (true_type) and in a memory (false_type). A pragma cannot depend on a template
// parameter in any other way.
template <int RAM, class W, int LENGTH, int LINES>
inline void bind_delay_memory(lines_t<W, LINES> (&memory)[LENGTH], std::true_type) {
#pragma HLS INLINE
#pragma HLS ARRAY_PARTITION variable = memory complete
    static_cast<void>(memory);
}

template <int RAM, class W, int LENGTH, int LINES>
inline void bind_delay_memory(lines_t<W, LINES> (&memory)[LENGTH], std::false_type) {
#pragma HLS INLINE
    bind_memory(memory, ram_of<RAM>());
}

// Binds ``memory`` to registers, or to a memory of kind RAM (ram.h). Its initial content must never be used. A
// simulation sets it to all ones, so that a use would show as wrong values.
template <int RAM, class W, int LENGTH, int LINES>
inline void bind_delay_memory(lines_t<W, LINES> (&memory)[LENGTH]) {
#pragma HLS INLINE
    bind_delay_memory<RAM>(memory, in_registers<LENGTH>());
#ifndef __SYNTHESIS__
    for (int k = 0; k < LENGTH; ++k) {
        for (int n = 0; n < LINES; ++n) {
            memory[k].line[n] = zeros<W>();
            for (auto &value : memory[k].line[n].lane) value = ~value;
        }
    }
#endif
}

// The state of the delay lines of one memory.
template <int LENGTH>
struct delay_t {
    counter_t<LENGTH> address;  // of the oldest words, and then of the newest; registers shift and do not use it

    // Reads the oldest word of every line.
    template <class W, int LINES>
    void peek(const lines_t<W, LINES> (&memory)[LENGTH], W (&oldest)[LINES]) const {
#pragma HLS INLINE
        const lines_t<W, LINES> all = in_registers<LENGTH>::value ? memory[LENGTH - 1] : memory[address.value];
        for (int n = 0; n < LINES; ++n) {
#pragma HLS UNROLL
            oldest[n] = all.line[n];
        }
    }

    // Replaces the oldest word of every line by a new one, and steps.
    template <class W, int LINES>
    void push(lines_t<W, LINES> (&memory)[LENGTH], const W (&newest)[LINES]) {
#pragma HLS INLINE
        lines_t<W, LINES> all;
        for (int n = 0; n < LINES; ++n) {
#pragma HLS UNROLL
            all.line[n] = newest[n];
        }
        step(memory, all, in_registers<LENGTH>());
    }

    // Registers shift by one word; a memory is a circular buffer, of which one word is written.
    template <class W, int LINES>
    void step(lines_t<W, LINES> (&memory)[LENGTH], const lines_t<W, LINES> &newest, std::true_type) {
#pragma HLS INLINE
        for (int k = LENGTH - 1; k > 0; --k) {
#pragma HLS UNROLL
            memory[k] = memory[k - 1];
        }
        memory[0] = newest;
    }

    template <class W, int LINES>
    void step(lines_t<W, LINES> (&memory)[LENGTH], const lines_t<W, LINES> &newest, std::false_type) {
#pragma HLS INLINE
        memory[address.value] = newest;
        address.next();
    }
};

#endif  // SYSTOLIC_DELAY_H
