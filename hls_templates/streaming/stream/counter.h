// Counters that know a cycle ahead when they are at their end. ``last`` is a register: it is set while the value before
// the last one is left, so that nothing in a cycle waits for an addition and then for a comparison with its result.
// Counters of counters then cost an AND each: `if (column.next()) row.next();`.
#ifndef SYSTOLIC_COUNTER_H
#define SYSTOLIC_COUNTER_H

#include "constant.h"
#include "word.h"

// Bits of the numbers 0 … MAXIMUM.
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

// A number 0 … MAXIMUM, as wide as it has to be.
template <long MAXIMUM>
using number = integer<bits_of<MAXIMUM>::value, false>;

// Counts 0 … COUNT − 1, over and over.
template <int COUNT>
struct counter_t {
    static_assert(COUNT > 0, "there is something to count");
    number<COUNT - 1> value;
    bool last;

    counter_t() : value(0), last(COUNT == 1) {}
    explicit counter_t(int start) : value(start), last(start == COUNT - 1) {}

    void clear() {
#pragma HLS INLINE
        value = 0;
        last = COUNT == 1;
    }

    // True where the count begins anew.
    bool next() {
#pragma HLS INLINE
        const bool ends = last;
        last = COUNT == 1 || (!ends && value == COUNT - 2);
        value = ends ? number<COUNT - 1>(0) : number<COUNT - 1>(value + 1);
        return ends;
    }
};

// COUNT words, each taken once: ``open`` until all are. Then it waits for ``reopen``.
template <int COUNT>
struct quota_t {
    counter_t<COUNT> count;
    bool open;

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

// PART of WHOLE more each time; ``carries``, a register, where that makes a whole one with the next time.
template <int PART, int WHOLE>
struct fraction_t {
    number<2 * WHOLE> rest;
    bool carries;

    fraction_t() { clear(); }

    void clear() {
#pragma HLS INLINE
        rest = 0;
        carries = PART >= WHOLE;
    }

    void begin_at(int value) {
#pragma HLS INLINE
        rest = value;
        carries = value + PART >= WHOLE;
    }

    void next() {
#pragma HLS INLINE
        const bool twice[2] = {rest + 2 * PART >= WHOLE, rest + 2 * PART >= 2 * WHOLE};
        rest = carries ? number<2 * WHOLE>(rest + (PART - WHOLE)) : number<2 * WHOLE>(rest + PART);
        carries = carries ? twice[1] : twice[0];
    }
};

#endif  // SYSTOLIC_COUNTER_H
