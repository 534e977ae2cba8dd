// The engine's number and word types. Synthesis and SYSTOLIC_AP_INT use the vendor's ap_int, the fast
// simulation the native integer of the same width; both give the same bits.
#ifndef SYSTOLIC_TYPES_H
#define SYSTOLIC_TYPES_H

#include <cstdint>

#include "parameters.h"

#if defined(__SYNTHESIS__) || defined(SYSTOLIC_AP_INT)
#include <ap_int.h>
#define SYSTOLIC_PACKED 1  // several products in one DSP, as the hardware has them
typedef ap_int<VALUE_BITS> value_t;
typedef ap_int<32> sum_t;
typedef ap_int<64> product_t;
typedef ap_int<16> result_t;
typedef ap_int<18> slope_t;
typedef ap_int<9> along_t;  // a place within a piece of a line
typedef ap_int<27> rise_t;  // a slope times such a place
typedef ap_int<11> bank_t;
#else
#define SYSTOLIC_PACKED 0
// INT4 lives in an int8_t, sign extended; only words of DDR hold it at its width.
template <int BITS>
struct native_value {
    typedef int8_t type;
};
template <>
struct native_value<16> {
    typedef int16_t type;
};
typedef native_value<VALUE_BITS>::type value_t;
typedef int32_t sum_t;
typedef int64_t product_t;
typedef int16_t result_t;
typedef int32_t slope_t, along_t, rise_t;
typedef int bank_t;
#endif
// bank_t numbers the banks, of which there are fewer than 512: narrow, so that it is added to and compared in a cycle.

// The values of one position, one a lane: as they are computed with.
struct lanes_t {
    value_t lane[LANES];
};

// The same as they are stored, in DDR, in memories and in the FIFOs between: VALUE_BITS a value, the first in the lowest
// bits. To the hardware this is one wide number. A struct with an array of lanes it would take apart, into a memory for
// each lane, or into one memory whose addresses the lanes are. A weight port gives WEIGHT_WORDS words a cycle.
static const int WORD_BYTES = LANES * VALUE_BITS / 8;

// Of such a word the lower and the upper half, where they are written apart: of channel tiles that end in the middle of
// a word's channels.
struct halves_t {
    bool lower, upper;
};
#if SYSTOLIC_PACKED
typedef ap_uint<8 * WORD_BYTES> word_t;
typedef ap_uint<8 * WORD_BYTES * WEIGHT_WORDS> weight_word_t;

inline lanes_t lanes_of(const word_t &word) {
#pragma HLS INLINE
    lanes_t out;
    for (int l = 0; l < LANES; ++l) {
#pragma HLS UNROLL
        out.lane[l] = value_t(word.range((l + 1) * VALUE_BITS - 1, l * VALUE_BITS));
    }
    return out;
}

inline word_t word_of(const lanes_t &lanes) {
#pragma HLS INLINE
    word_t out = 0;
    for (int l = 0; l < LANES; ++l) {
#pragma HLS UNROLL
        out.range((l + 1) * VALUE_BITS - 1, l * VALUE_BITS) = ap_uint<VALUE_BITS>(lanes.lane[l]);
    }
    return out;
}

// The word that begins at byte ``first`` (0 … WORD_BYTES) of two words that lie side by side.
inline word_t word_between(const word_t &low, const word_t &high, int first) {
#pragma HLS INLINE
    const ap_uint<16 * WORD_BYTES> both = (high, low);
    return word_t(both >> (8 * first));
}

// Word ``index`` of a weight port's words.
inline word_t word_at(const weight_word_t &words, int index) {
#pragma HLS INLINE
    return word_t(words.range((index + 1) * 8 * WORD_BYTES - 1, index * 8 * WORD_BYTES));
}

// The word ``old``, of which those halves are ``fresh``.
inline word_t with_halves(const word_t &old, const word_t &fresh, const halves_t &halves) {
#pragma HLS INLINE
    word_t out = old;
    if (halves.lower) out.range(4 * WORD_BYTES - 1, 0) = fresh.range(4 * WORD_BYTES - 1, 0);
    if (halves.upper) {
        out.range(8 * WORD_BYTES - 1, 4 * WORD_BYTES) = fresh.range(8 * WORD_BYTES - 1, 4 * WORD_BYTES);
    }
    return out;
}
#else
struct word_t {
    uint8_t byte[WORD_BYTES];
};
struct weight_word_t {
    word_t word[WEIGHT_WORDS];
};

inline lanes_t lanes_of(const word_t &word) {
    lanes_t out;
    for (int l = 0; l < LANES; ++l) {
        const int at = l * VALUE_BITS / 8, shift = l * VALUE_BITS % 8;
        // The second byte is the same one where a value has at most 8 bits.
        const int both = word.byte[at] | (word.byte[at + VALUE_BITS / 16] << 8);
        const int value = (both >> shift) & ((1 << VALUE_BITS) - 1);
        out.lane[l] = value_t(value >= 1 << (VALUE_BITS - 1) ? value - (1 << VALUE_BITS) : value);
    }
    return out;
}

inline word_t word_of(const lanes_t &lanes) {
    static const int BYTE_VALUES = VALUE_BITS < 8 ? 8 / VALUE_BITS : 1;  // values in a byte
    word_t out;
    for (int b = 0; b < WORD_BYTES; ++b) {
        int bits = 0;
        for (int v = 0; v < BYTE_VALUES; ++v) {
            const int first = b * 8 + v * VALUE_BITS;  // bit of the word
            const int value = lanes.lane[first / VALUE_BITS];
            bits |= ((value >> (first % VALUE_BITS)) & ((1 << VALUE_BITS) - 1)) << (v * VALUE_BITS);
        }
        out.byte[b] = uint8_t(bits & 255);
    }
    return out;
}

inline word_t word_between(const word_t &low, const word_t &high, int first) {
    word_t out;
    for (int b = 0; b < WORD_BYTES; ++b) {
        const int from = first + b;
        out.byte[b] = from < WORD_BYTES ? low.byte[from] : high.byte[from - WORD_BYTES];
    }
    return out;
}

inline word_t word_at(const weight_word_t &words, int index) { return words.word[index]; }

inline word_t with_halves(const word_t &old, const word_t &fresh, const halves_t &halves) {
    word_t out;
    for (int b = 0; b < WORD_BYTES; ++b) {
        out.byte[b] = (b < WORD_BYTES / 2 ? halves.lower : halves.upper) ? fresh.byte[b] : old.byte[b];
    }
    return out;
}
#endif

// The bytes of those halves, a bit each, the lowest first: what hls::burst_maxi takes beside a word.
#if SYSTOLIC_PACKED
typedef ap_int<WORD_BYTES> bytes_t;
#else
typedef uint64_t bytes_t;
#endif
inline bytes_t bytes_of(const halves_t &halves) {
#pragma HLS INLINE
    const uint64_t lower = (uint64_t(1) << (WORD_BYTES / 2)) - 1;
    return bytes_t((halves.lower ? lower : 0) | (halves.upper ? lower << (WORD_BYTES / 2) : 0));
}

// What the array takes a cycle from the left: one word a row, or two, of neighbouring columns, where they share DSPs.
struct words_t {
    lanes_t position[POSITIONS];
};
struct activations_t {
    words_t row[ROWS];
};

// What the array takes a cycle from above: a weight for every lane of every column, [lane][column].
struct weights_t {
    value_t value[LANES * COLUMNS];
};

// The exact sums of one position, one a column; what a row of PEs gives when its positions are done.
struct sums_t {
    sum_t column[COLUMNS];
};
struct positions_t {
    sums_t position[POSITIONS];
};

// What the Saver works on a cycle: SAVE_ROWS rows of one position, of one channel tile.
struct group_t {
    sums_t row[SAVE_ROWS];
    int16_t channel;  // number of the channel tile
    bool last;        // of the pass
};
struct results_t {
    result_t value[SAVE_ROWS][COLUMNS];
};

// The requantiser of one output channel, one 128-bit word in DDR (the arithmetic is in requantise.h).
struct requantiser_t {
    int32_t bias;
    uint16_t multiplier;
    uint16_t negative;
    uint32_t shift;
    uint32_t table;  // of a pass's first: values that follow behind its last, each the ``bias`` of a word; 0: none

    // Of a value of a table that is pieces of lines: its slope, in two's complement.
    int32_t slope() const {
#pragma HLS INLINE
        return int32_t(uint32_t(negative) << 16 | multiplier);
    }
};

#endif  // SYSTOLIC_TYPES_H
