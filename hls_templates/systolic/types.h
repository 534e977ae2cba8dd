// Number and word types of the engine. Synthesis and builds with SYSTOLIC_AP_INT use the vendor's ap_int. The fast
// simulation uses native integers of at least the same width. Both give the same bits.
#ifndef SYSTOLIC_TYPES_H
#define SYSTOLIC_TYPES_H

#include <cstdint>

#include "parameters.h"

#if defined(__SYNTHESIS__) || defined(SYSTOLIC_AP_INT)
#include <ap_int.h>
#define SYSTOLIC_PACKED 1  // several products share a DSP, as in the hardware
// value_t: activations and weights. sum_t: accumulators. product_t: products of the requantiser. result_t: requantised
// results. slope_t: the slope of a segment of a piecewise-linear table.
typedef ap_int<VALUE_BITS> value_t;
typedef ap_int<32> sum_t;
typedef ap_int<64> product_t;
typedef ap_int<16> result_t;
typedef ap_int<18> slope_t;
typedef ap_int<9> segment_offset_t;  // a place within a segment of a piecewise-linear table
typedef ap_int<27> rise_t;           // the rise of the line within a segment: slope · place
typedef ap_int<11> bank_t;
#else
#define SYSTOLIC_PACKED 0
// An INT4 value is stored in an int8_t, sign extended. Only words (word_t) have it at its own width.
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
typedef int32_t slope_t, segment_offset_t, rise_t;
typedef int bank_t;
#endif
// bank_t numbers banks, of which there are fewer than 512. It is narrow, so that a bank number is added to and compared
// within one cycle.

// The values of one position, one per lane, in the form in which the engine computes with them.
struct lanes_t {
    value_t lane[LANES];
};

// The same values in the form in which DDR, memories and FIFOs store them: VALUE_BITS bits per value, the first value
// in the lowest bits. In hardware, a word is one wide number. A struct with an array of lanes would be split by the HLS
// tool into one memory per lane, or into one memory addressed by lane. A weight port reads WEIGHT_WORDS words per
// cycle.
static const int WORD_BYTES = LANES * VALUE_BITS / 8;

// The halves of a word that are written. Two channel tiles share a word if one tile ends within the channels of that
// word; each tile then writes its own half.
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

// Return the word that begins at byte ``first`` (0 … WORD_BYTES) of two consecutive words.
inline word_t extract_word(const word_t &low, const word_t &high, int first) {
#pragma HLS INLINE
    const ap_uint<16 * WORD_BYTES> both = (high, low);
    return word_t(both >> (8 * first));
}

// Return word ``index`` of the words that a weight port reads in a cycle.
inline word_t word_at(const weight_word_t &words, int index) {
#pragma HLS INLINE
    return word_t(words.range((index + 1) * 8 * WORD_BYTES - 1, index * 8 * WORD_BYTES));
}

// Return ``old`` with these halves replaced by the halves of ``new_word``.
inline word_t merge_halves(const word_t &old, const word_t &new_word, const halves_t &halves) {
#pragma HLS INLINE
    word_t out = old;
    if (halves.lower) out.range(4 * WORD_BYTES - 1, 0) = new_word.range(4 * WORD_BYTES - 1, 0);
    if (halves.upper) {
        out.range(8 * WORD_BYTES - 1, 4 * WORD_BYTES) = new_word.range(8 * WORD_BYTES - 1, 4 * WORD_BYTES);
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
        // If a value has at most 8 bits, both bytes are the same one.
        const int both = word.byte[at] | (word.byte[at + VALUE_BITS / 16] << 8);
        const int value = (both >> shift) & ((1 << VALUE_BITS) - 1);
        out.lane[l] = value_t(value >= 1 << (VALUE_BITS - 1) ? value - (1 << VALUE_BITS) : value);
    }
    return out;
}

inline word_t word_of(const lanes_t &lanes) {
    static const int BYTE_VALUES = VALUE_BITS < 8 ? 8 / VALUE_BITS : 1;  // values per byte
    word_t out;
    for (int b = 0; b < WORD_BYTES; ++b) {
        int bits = 0;
        for (int v = 0; v < BYTE_VALUES; ++v) {
            const int first = b * 8 + v * VALUE_BITS;  // the value's first bit in the word
            const int value = lanes.lane[first / VALUE_BITS];
            bits |= ((value >> (first % VALUE_BITS)) & ((1 << VALUE_BITS) - 1)) << (v * VALUE_BITS);
        }
        out.byte[b] = uint8_t(bits & 255);
    }
    return out;
}

inline word_t extract_word(const word_t &low, const word_t &high, int first) {
    word_t out;
    for (int b = 0; b < WORD_BYTES; ++b) {
        const int from = first + b;
        out.byte[b] = from < WORD_BYTES ? low.byte[from] : high.byte[from - WORD_BYTES];
    }
    return out;
}

inline word_t word_at(const weight_word_t &words, int index) { return words.word[index]; }

inline word_t merge_halves(const word_t &old, const word_t &new_word, const halves_t &halves) {
    word_t out;
    for (int b = 0; b < WORD_BYTES; ++b) {
        out.byte[b] = (b < WORD_BYTES / 2 ? halves.lower : halves.upper) ? new_word.byte[b] : old.byte[b];
    }
    return out;
}
#endif

// The byte enables of these halves, one bit per byte, the lowest byte first. hls::burst_maxi takes them with a word.
#if SYSTOLIC_PACKED
typedef ap_int<WORD_BYTES> byte_enables_t;
#else
typedef uint64_t byte_enables_t;
#endif
inline byte_enables_t byte_enables_of(const halves_t &halves) {
#pragma HLS INLINE
    const uint64_t lower = (uint64_t(1) << (WORD_BYTES / 2)) - 1;
    return byte_enables_t((halves.lower ? lower : 0) | (halves.upper ? lower << (WORD_BYTES / 2) : 0));
}

// The activations of one step for a row of the array: one word per position. Two neighbouring positions (POSITIONS 2)
// share DSPs.
struct row_activations_t {
    lanes_t position[POSITIONS];
};
// The activations of one step for all rows of the array.
struct activations_t {
    row_activations_t row[ROWS];
};

// The weights of one step: one per lane and column, [lane][column].
struct weights_t {
    value_t value[LANES * COLUMNS];
};

// The exact sums of one position, one per column of the array.
struct sums_t {
    sum_t column[COLUMNS];
};
// The sums that a row of the array outputs together: those positions that were computed together.
struct positions_t {
    sums_t position[POSITIONS];
};

// The sums that the Saver processes per cycle: SAVE_ROWS rows of one position and channel tile.
struct group_t {
    sums_t row[SAVE_ROWS];
    int16_t channel;  // number of the channel tile
    bool last;        // the last group of the pass
};
// The same rows after requantisation.
struct results_t {
    result_t value[SAVE_ROWS][COLUMNS];
};

// The requantiser of one output channel: one 128-bit word in DDR. requantise.h explains the arithmetic.
// The table of a pass follows its last requantiser in DDR, one word per entry: ``bias`` is the entry's value.
struct requantiser_t {
    int32_t bias;
    uint16_t multiplier;
    uint16_t negative_multiplier;
    uint32_t shift;
    uint32_t table;  // in a pass's first requantiser: the length of its table, and its rounding (parity_t)

    // The slope of a segment of a piecewise-linear table, in two's complement.
    int32_t slope() const {
#pragma HLS INLINE
        return int32_t(uint32_t(negative_multiplier) << 16 | multiplier);
    }
};

#endif  // SYSTOLIC_TYPES_H
