// LINES delay lines of LENGTH words each, which step together: ``peek`` gives the words of LENGTH steps ago, ``push``
// puts the newest in their place. Each is called once a step, peek first.
//
// The memory is an array of the block, because the block's loop has to say what the tool cannot know (DEPENDENCE …
// inter false): a word is read LENGTH steps after it was written, when its write is long complete. Lines that are too
// short for that, up to DELAY_REGISTERS words, are registers.
#ifndef SYSTOLIC_DELAY_H
#define SYSTOLIC_DELAY_H

#include <type_traits>

#include "counter.h"
#include "ram.h"
#include "word.h"

constexpr int DELAY_REGISTERS = 4;

template <int LENGTH>
using in_registers = std::integral_constant<bool, (LENGTH <= DELAY_REGISTERS)>;

// The words of all lines at an address, which is the same for all: one wide word of the memory. The block that declares
// the memory says AGGREGATE.
template <class W, int LINES>
struct lines_t {
    W line[LINES];
};

template <int RAM, class W, int LENGTH, int LINES>
inline void keep_delay(lines_t<W, LINES> (&memory)[LENGTH], std::true_type) {
#pragma HLS INLINE
#pragma HLS ARRAY_PARTITION variable = memory complete
    static_cast<void>(memory);
}

template <int RAM, class W, int LENGTH, int LINES>
inline void keep_delay(lines_t<W, LINES> (&memory)[LENGTH], std::false_type) {
#pragma HLS INLINE
    keep_in(memory, ram_of<RAM>());
}

// Binds ``memory`` to registers or to the memory RAM. What it holds before it was written must never be used: in
// simulation it is all ones, which would show as wrong values.
template <int RAM, class W, int LENGTH, int LINES>
inline void keep_delay(lines_t<W, LINES> (&memory)[LENGTH]) {
#pragma HLS INLINE
    keep_delay<RAM>(memory, in_registers<LENGTH>());
#ifndef __SYNTHESIS__
    for (int k = 0; k < LENGTH; ++k) {
        for (int n = 0; n < LINES; ++n) {
            memory[k].line[n] = zeros<W>();
            for (auto &value : memory[k].line[n].lane) value = ~value;
        }
    }
#endif
}

template <int LENGTH>
struct delay_t {
    counter_t<LENGTH> address;

    template <class W, int LINES>
    void peek(const lines_t<W, LINES> (&memory)[LENGTH], W (&oldest)[LINES]) const {
#pragma HLS INLINE
        const lines_t<W, LINES> all = in_registers<LENGTH>::value ? memory[LENGTH - 1] : memory[address.value];
        for (int n = 0; n < LINES; ++n) {
#pragma HLS UNROLL
            oldest[n] = all.line[n];
        }
    }

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
