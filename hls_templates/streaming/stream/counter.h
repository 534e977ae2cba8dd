// Counters that compute one cycle ahead whether they are at their last value, so that no cycle waits for an addition
// and then for a comparison with its result.
//
// ``last`` is a register. It is set in the cycle in which the counter steps to its last value. Nested counters then
// cost one AND gate each: `if (column.next()) row.next();`.
#ifndef SYSTOLIC_COUNTER_H
#define SYSTOLIC_COUNTER_H

#include "constant.h"
#include "word.h"

// The number of bits that hold 0 … MAXIMUM; 1 if MAXIMUM is 0.
template <long MAXIMUM>
struct bits_of {
    static constexpr int value = 1 + bits_of<MAXIMUM / 2>::value;
};
template <>
struct bits_of<0> {
    static constexpr int value = 1;
};
template <>
struct bits_of<1> {
    static constexpr int value = 1;
};

// The type of a number 0 … MAXIMUM, with no more bits than this range needs.
template <long MAXIMUM>
using number = integer<bits_of<MAXIMUM>::value, false>;

// Counts 0 … COUNT − 1, and starts again from 0.
template <int COUNT>
struct counter_t {
    static_assert(COUNT > 0, "COUNT must be at least 1");
    number<COUNT - 1> value;  // the present count
    bool last;                // whether value is COUNT − 1

    counter_t() : value(0), last(COUNT == 1) {}
    explicit counter_t(int start) : value(start), last(start == COUNT - 1) {}

    void clear() {
#pragma HLS INLINE
        value = 0;
        last = COUNT == 1;
    }

    // Counts one step. Returns whether the count started again from 0.
    bool next() {
#pragma HLS INLINE
        const bool ends = last;
        last = COUNT == 1 || (!ends && value == COUNT - 2);
        value = ends ? number<COUNT - 1>(0) : number<COUNT - 1>(value + 1);
        return ends;
    }
};

// A quota of COUNT words. ``take`` is called once for each word, and ``open`` is true until all COUNT words are taken.
// The quota then stays closed until ``reopen``.
template <int COUNT>
struct quota_t {
    counter_t<COUNT> count;  // the number of the next word
    bool open;               // whether a word may still be taken

    quota_t() : open(true) {}

    void reopen() {
#pragma HLS INLINE
        open = true;
    }

    void take() {
#pragma HLS INLINE
        if (count.next()) open = false;
    }
};

// The fractional part of n · PART / WHOLE, where ``next`` increases n by 1. It replaces a division per step.
template <int PART, int WHOLE>
struct fraction_t {
    number<2 * WHOLE> remainder;  // n · PART modulo WHOLE
    bool carry;                   // a register: whether the next step exceeds a whole number, remainder + PART ≥ WHOLE

    fraction_t() { clear(); }

    void clear() {
#pragma HLS INLINE
        remainder = 0;
        carry = PART >= WHOLE;
    }

    // Continues from remainder = value, of 0 … WHOLE − 1.
    void set_remainder(int value) {
#pragma HLS INLINE
        remainder = value;
        carry = value + PART >= WHOLE;
    }

    void next() {
#pragma HLS INLINE
        // ``carry`` after this step is found for both values of ``carry`` in parallel, and then one is selected.
        const bool next_carry[2] = {remainder + 2 * PART >= WHOLE, remainder + 2 * PART >= 2 * WHOLE};
        remainder = carry ? number<2 * WHOLE>(remainder + (PART - WHOLE)) : number<2 * WHOLE>(remainder + PART);
        carry = carry ? next_carry[1] : next_carry[0];
    }
};

#endif  // SYSTOLIC_COUNTER_H
