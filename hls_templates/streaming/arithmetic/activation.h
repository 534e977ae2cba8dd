// Activations are functors that turn the exact sum of a channel into an output value. A block calls its functor with
// the fold nf, the PE pe and the sum, once per output lane, in the cycle in which the sum is complete.
//
// The constants of channel nf · PE + pe are stored at [pe][nf] of the functor's arrays, so that every PE reads a memory
// of its own. A sum plus its bias fits 32 signed bits.
//
// Every functor has:
//   output_t   the integer type of an output value
//   LATE       pipeline stages that the functor needs in addition to the stages of a requantiser. The declared depth of
//              a block covers a requantiser, and the block adds LATE to it.
//
// Functors are aggregates: `static const requantise_t<4, false, PE, NF> activation = {{{…}}, {{…}}, {{…}}, {{…}}};`
#ifndef SYSTOLIC_ACTIVATION_H
#define SYSTOLIC_ACTIVATION_H

#include "word.h"

// Returns value, saturated to the range of an integer of BITS bits. NARROW excludes the least signed value, so that two
// bits hold −1 … 1 (TERNARY).
template <int BITS, bool SIGNED, bool NARROW>
inline integer<BITS, SIGNED> saturate(integer<64, true> value) {
#pragma HLS INLINE
    const integer<64, true> low = SIGNED ? (NARROW ? 1 : 0) - (int64_t(1) << (BITS - 1)) : int64_t(0);
    const integer<64, true> high = (int64_t(1) << (BITS - (SIGNED ? 1 : 0))) - 1;
    return integer<BITS, SIGNED>(value < low ? low : value > high ? high : value);
}

// Returns sum · by. In synthesis the product has the bits of both factors together, because 64-bit operands would make
// the tool build a 64-bit multiplier.
template <class SUM>
inline integer<64, true> product_of_sum(SUM sum, integer<17, true> by) {
#pragma HLS INLINE
#if SYSTOLIC_PACKED
    return sum * by;
#else
    return int64_t(sum) * by;
#endif
}

// The number of low bits of a product that do not count if halves are rounded to even or to odd. cnn/requantise.py has
// the same constant and its reason.
static const int NEAR_HALF = 12;

// Returns value / 2^places, rounded to the nearest integer. HALVES selects how a half is rounded: 0 up, 1 to the even
// integer, 2 to the odd integer. With 1 and 2 the NEAR_HALF lowest bits of value are cleared first.
template <int HALVES>
inline integer<64, true> round_to_parity(integer<64, true> value, uint8_t places) {
#pragma HLS INLINE
    const integer<64, true> half = integer<64, true>(1) << (places - 1);
    if (HALVES == 0) return (value + half) >> places;
    const integer<64, true> masked = (value >> NEAR_HALF << NEAR_HALF) + half;
    const integer<64, true> up = masked >> places;
    // With half of 2^places added, ``masked`` is a multiple of 2^places exactly if the value is halfway between two
    // integers. ``up`` is the upper one then.
    const bool is_half = (masked & ((integer<64, true>(1) << places) - 1)) == 0;
    return is_half && (int(up) & 1) != HALVES - 1 ? integer<64, true>(up - 1) : up;
}

// y = sum. The output type holds every sum.
template <int BITS, bool SIGNED = true>
struct identity_t {
    typedef integer<BITS, SIGNED> output_t;
    static constexpr int LATE = 0;

    template <class SUM>
    output_t operator()(int, int, SUM sum) const {
#pragma HLS INLINE
        return output_t(sum);
    }
};

// Requantiser: y = saturate(((sum + bias) · m + 2^(s − 1)) >> s). The factor m is ``negative_multiplier`` if sum + bias
// < 0, and ``multiplier`` otherwise, so that a leaky ReLU costs no second multiplication. The product has 32 × 17
// signed bits.
template <int BITS, bool SIGNED, int PE, int NF, bool NARROW = false, int HALVES = 0>
struct requantise_t {
    typedef integer<BITS, SIGNED> output_t;
    static constexpr int LATE = 0;
    int32_t bias[PE][NF];                  // at the scale of the sum
    uint16_t multiplier[PE][NF];           // the factor of a sum plus bias of 0 or more
    uint16_t negative_multiplier[PE][NF];  // the factor of a negative sum plus bias
    uint8_t shift[PE][NF];                 // s, the bits by which the product is shifted right; at least 1

    template <class SUM>
    output_t operator()(int fold, int pe, SUM sum) const {
#pragma HLS INLINE
#pragma HLS ARRAY_PARTITION variable = bias complete dim = 1
#pragma HLS ARRAY_PARTITION variable = multiplier complete dim = 1
#pragma HLS ARRAY_PARTITION variable = negative_multiplier complete dim = 1
#pragma HLS ARRAY_PARTITION variable = shift complete dim = 1
        const integer<32, true> biased = integer<32, true>(sum) + integer<32, true>(bias[pe][fold]);
        // Both factors are read and one is selected afterwards. A conditional read would put the sign of the sum before
        // the memory access.
        const uint16_t below = negative_multiplier[pe][fold], above = multiplier[pe][fold];
        const integer<17, true> by = biased < 0 ? below : above;
        const integer<64, true> product = product_of_sum(biased, by);
        const uint8_t places = shift[pe][fold];
        return saturate<BITS, SIGNED, NARROW>(round_to_parity<HALVES>(product, places));
    }
};

// Batch normalisation: y = saturate((sum · multiplier + bias + 2^(s − 1)) >> s). UltraNet calls these constants `inc`,
// `bias` and `l_shift`.
template <int BITS, bool SIGNED, int PE, int NF, bool NARROW = false, int HALVES = 0>
struct multiply_shift_t {
    typedef integer<BITS, SIGNED> output_t;
    static constexpr int LATE = 0;
    int32_t multiplier[PE][NF];  // 17 signed bits; may be negative
    int64_t bias[PE][NF];        // 48 signed bits, at the scale of the product
    uint8_t shift[PE][NF];       // s, the bits by which the scaled sum is shifted right; at least 1

    template <class SUM>
    output_t operator()(int fold, int pe, SUM sum) const {
#pragma HLS INLINE
#pragma HLS ARRAY_PARTITION variable = multiplier complete dim = 1
#pragma HLS ARRAY_PARTITION variable = bias complete dim = 1
#pragma HLS ARRAY_PARTITION variable = shift complete dim = 1
        const integer<17, true> by = multiplier[pe][fold];
        const integer<64, true> scaled = product_of_sum(sum, by) + integer<48, true>(bias[pe][fold]);
        const uint8_t places = shift[pe][fold];
        return saturate<BITS, SIGNED, NARROW>(round_to_parity<HALVES>(scaled, places));
    }
};

// Multi-threshold: y = LOW + the number of thresholds that are not greater than the sum. All LEVELS comparisons of a
// value are made in parallel, and the tool adds up their results. A bipolar output has one threshold and LOW = 0,
// because y is the carrier of the value (datatype.h).
template <int BITS, bool SIGNED, int LOW, int LEVELS, int THRESHOLD_BITS, int PE, int NF>
struct thresholds_t {
    typedef integer<BITS, SIGNED> output_t;
    static constexpr int LATE = LEVELS > 32 ? LEVELS / 5 : 0;  // a tool may add the results one by one
    integer<THRESHOLD_BITS, true> threshold[PE][NF][LEVELS];   // at the scale of the sum
    bool flip[PE][NF];                                         // whether −sum is compared instead of the sum

    template <class SUM>
    output_t operator()(int fold, int pe, SUM sum) const {
#pragma HLS INLINE
#pragma HLS ARRAY_PARTITION variable = threshold complete dim = 1
#pragma HLS ARRAY_PARTITION variable = threshold complete dim = 3
#pragma HLS ARRAY_PARTITION variable = flip complete dim = 1
        // A sum has 32 bits; the negated least sum needs one more.
        const integer<33, true> value = integer<33, true>(sum);
        const integer<33, true> compared = flip[pe][fold] ? integer<33, true>(-value) : value;
        int count = 0;
        for (int i = 0; i < LEVELS; ++i) {
#pragma HLS UNROLL
            count += compared >= threshold[pe][fold][i] ? 1 : 0;
        }
        return output_t(LOW + count);
    }
};

// Look-up table for any function of one input value: y = value[…][sum − LOW]. The input has LEVELS values, from LOW on.
//
// Every lane reads the table independently from read-only distributed memory, which takes LEVELS / 64 LUTs per output
// bit and lane. The source has COPIES copies of the table, and PE pe reads copy pe % COPIES. One copy for all lanes
// would have more readers than the tool is willing to replicate a memory for.
template <int BITS, bool SIGNED, int LOW, int LEVELS, int COPIES>
struct table_t {
    typedef integer<BITS, SIGNED> output_t;
    static constexpr int LATE = 0;
    integer<BITS, SIGNED> value[COPIES][LEVELS];

    template <class SUM>
    output_t operator()(int, int pe, SUM sum) const {
#pragma HLS INLINE
#pragma HLS ARRAY_PARTITION variable = value complete dim = 1
#pragma HLS BIND_STORAGE variable = value type = rom_np impl = lutram
        return value[pe % COPIES][int(sum) - LOW];
    }
};

// Piecewise-linear table with 256 pieces, for any function of one input value of 8 + FRACTION bits. The least input
// value is LOW. With i the upper 8 bits and f the lower FRACTION bits of sum − LOW:
//
//   y = value[…][i] + ((slope[…][i] · f + 2^(FRACTION − 1)) >> FRACTION)
//
// Values and slopes are stored and read in the same way as the values of table_t. Every lane has a multiplier of
// SLOPE_BITS × (FRACTION + 1) bits in a DSP.
template <int BITS, bool SIGNED, int LOW, int FRACTION, int SLOPE_BITS, int COPIES>
struct pieces_t {
    typedef integer<BITS, SIGNED> output_t;
    static constexpr int LATE = 0;
    integer<BITS, SIGNED> value[COPIES][256];      // y at the start of each piece
    integer<SLOPE_BITS, true> slope[COPIES][256];  // the change of y over a whole piece

    template <class SUM>
    output_t operator()(int, int pe, SUM sum) const {
#pragma HLS INLINE
#pragma HLS ARRAY_PARTITION variable = value complete dim = 1
#pragma HLS BIND_STORAGE variable = value type = rom_np impl = lutram
#pragma HLS ARRAY_PARTITION variable = slope complete dim = 1
#pragma HLS BIND_STORAGE variable = slope type = rom_np impl = lutram
        const integer<8 + FRACTION, false> distance = int(sum) - LOW;
        const integer<8, false> piece = distance >> FRACTION;
        const integer<FRACTION + 1, true> inside = int(distance) & ((1 << FRACTION) - 1);
        const integer<SLOPE_BITS + FRACTION + 1, true> product = slope[pe % COPIES][piece] * inside;
#pragma HLS BIND_OP variable = product op = mul impl = dsp
        // The value and the rounding half are one constant, so that a single addition follows the product.
        const integer<BITS + 1 + FRACTION, true> addend =
            int(value[pe % COPIES][piece]) * (1 << FRACTION) + (1 << (FRACTION - 1));
        return output_t((addend + product) >> FRACTION);
    }
};

#endif  // SYSTOLIC_ACTIVATION_H
