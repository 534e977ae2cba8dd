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
#endif

// The values of one position, one a lane.
struct lanes_t {
    value_t lane[LANES];
};

// The same in DDR, as a map's or a weight image's word: VALUE_BITS a value, the first in the lowest bits.
static const int WORD_BYTES = LANES * VALUE_BITS / 8;
struct word_t {
    uint8_t byte[WORD_BYTES];
};

inline lanes_t lanes_of(const word_t &word) {
#pragma HLS INLINE
    lanes_t out;
    for (int l = 0; l < LANES; ++l) {
#pragma HLS UNROLL
        const int at = l * VALUE_BITS / 8, shift = l * VALUE_BITS % 8;
        // The second byte is the same one where a value has at most 8 bits.
        const int both = word.byte[at] | (word.byte[at + VALUE_BITS / 16] << 8);
        const int value = (both >> shift) & ((1 << VALUE_BITS) - 1);
        out.lane[l] = value_t(value >= 1 << (VALUE_BITS - 1) ? value - (1 << VALUE_BITS) : value);
    }
    return out;
}

inline word_t word_of(const lanes_t &lanes) {
#pragma HLS INLINE
    static const int BYTE_VALUES = VALUE_BITS < 8 ? 8 / VALUE_BITS : 1;  // values in a byte
    word_t out;
    for (int b = 0; b < WORD_BYTES; ++b) {
#pragma HLS UNROLL
        int bits = 0;
        for (int v = 0; v < BYTE_VALUES; ++v) {
#pragma HLS UNROLL
            const int first = b * 8 + v * VALUE_BITS;  // bit of the word
            const int value = lanes.lane[first / VALUE_BITS];
            bits |= ((value >> (first % VALUE_BITS)) & ((1 << VALUE_BITS) - 1)) << (v * VALUE_BITS);
        }
        out.byte[b] = uint8_t(bits & 255);
    }
    return out;
}

// What a weight port gives a cycle: WEIGHT_WORDS words of weights, where a word is narrower than the port.
struct weight_word_t {
    word_t word[WEIGHT_WORDS];
};
struct weight_beat_t {
    lanes_t word[WEIGHT_WORDS];
};

inline weight_beat_t beat_of(const weight_word_t &from) {
#pragma HLS INLINE
    weight_beat_t out;
    for (int w = 0; w < WEIGHT_WORDS; ++w) {
#pragma HLS UNROLL
        out.word[w] = lanes_of(from.word[w]);
    }
    return out;
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
    uint32_t reserved;
};

#endif  // SYSTOLIC_TYPES_H
