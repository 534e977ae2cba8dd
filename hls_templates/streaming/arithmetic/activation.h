// Activations: functors that turn the exact sum of a channel into an output value. The constants of channel nf · PE +
// pe are [pe][nf] of the functor's arrays, so that every PE reads a memory of its own. The sum and its bias together
// fit 32 bits.
//
// LATE: stages of a functor beyond those of a requantiser, which the depth of every block has for it.
//
// Functors are aggregates: `static const requantise_t<4, false, PE, NF> activation = {{{…}}, {{…}}, {{…}}, {{…}}};`
#ifndef SYSTOLIC_ACTIVATION_H
#define SYSTOLIC_ACTIVATION_H

#include "word.h"

// The value that leaves, no further than BITS bits reach; NARROW without their least value: −1 … 1 of two bits
// (TERNARY).
template <int BITS, bool SIGNED, bool NARROW>
inline integer<BITS, SIGNED> saturate(integer<64, true> value) {
#pragma HLS INLINE
    const integer<64, true> low = SIGNED ? (NARROW ? 1 : 0) - (int64_t(1) << (BITS - 1)) : int64_t(0);
    const integer<64, true> high = (int64_t(1) << (BITS - (SIGNED ? 1 : 0))) - 1;
    return integer<BITS, SIGNED>(value < low ? low : value > high ? high : value);
}

// sum · by. For synthesis as wide as both factors together, so that the multiplier is no wider than they are.
template <class SUM>
inline integer<64, true> product_of_sum(SUM sum, integer<17, true> by) {
#pragma HLS INLINE
#if SYSTOLIC_PACKED
    return sum * by;
#else
    return int64_t(sum) * by;
#endif
}

// value / 2^places with a half rounded up; or, where HALVES is 1, to the even integer, where it is 2, to the odd one: then
// the value counts without its NEAR_HALF lowest bits (cnn/quantized.py).
static const int NEAR_HALF = 12;

template <int HALVES>
inline integer<64, true> halved(integer<64, true> value, uint8_t places) {
#pragma HLS INLINE
    const integer<64, true> half = integer<64, true>(1) << (places - 1);
    if (HALVES == 0) return (value + half) >> places;
    const integer<64, true> counted = (value >> NEAR_HALF << NEAR_HALF) + half;
    const integer<64, true> up = counted >> places;
    const bool is_half = (counted & ((integer<64, true>(1) << places) - 1)) == 0;
    return is_half && (int(up) & 1) != HALVES - 1 ? integer<64, true>(up - 1) : up;
}

// y = sum.
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

// y = saturate(((sum + bias) · m + 2^(s − 1)) >> s), with m = negative where sum + bias < 0, else multiplier: a product
// of 32 × 16 bits.
template <int BITS, bool SIGNED, int PE, int NF, bool NARROW = false, int HALVES = 0>
struct requantise_t {
    typedef integer<BITS, SIGNED> output_t;
    static constexpr int LATE = 0;
    int32_t bias[PE][NF];
    uint16_t multiplier[PE][NF];
    uint16_t negative[PE][NF];
    uint8_t shift[PE][NF];

    template <class SUM>
    output_t operator()(int fold, int pe, SUM sum) const {
#pragma HLS INLINE
#pragma HLS ARRAY_PARTITION variable = bias complete dim = 1
#pragma HLS ARRAY_PARTITION variable = multiplier complete dim = 1
#pragma HLS ARRAY_PARTITION variable = negative complete dim = 1
#pragma HLS ARRAY_PARTITION variable = shift complete dim = 1
        const integer<32, true> biased = integer<32, true>(sum) + integer<32, true>(bias[pe][fold]);
        // Both are read and one is chosen: a choice between two memories would be one of addresses.
        const uint16_t below = negative[pe][fold], above = multiplier[pe][fold];
        const integer<17, true> by = biased < 0 ? below : above;
        const integer<64, true> product = product_of_sum(biased, by);
        const uint8_t places = shift[pe][fold];
        return saturate<BITS, SIGNED, NARROW>(halved<HALVES>(product, places));
    }
};

// y = saturate((sum · multiplier + bias + 2^(s − 1)) >> s): batch normalisation, as UltraNet's `inc`, `bias` and
// `l_shift`. The multiplier has 17 bits with its sign; the bias, at the scale of the product, 48.
template <int BITS, bool SIGNED, int PE, int NF, bool NARROW = false, int HALVES = 0>
struct multiply_shift_t {
    typedef integer<BITS, SIGNED> output_t;
    static constexpr int LATE = 0;
    int32_t multiplier[PE][NF];
    int64_t bias[PE][NF];
    uint8_t shift[PE][NF];

    template <class SUM>
    output_t operator()(int fold, int pe, SUM sum) const {
#pragma HLS INLINE
#pragma HLS ARRAY_PARTITION variable = multiplier complete dim = 1
#pragma HLS ARRAY_PARTITION variable = bias complete dim = 1
#pragma HLS ARRAY_PARTITION variable = shift complete dim = 1
        const integer<17, true> by = multiplier[pe][fold];
        const integer<64, true> scaled = product_of_sum(sum, by) + integer<48, true>(bias[pe][fold]);
        const uint8_t places = shift[pe][fold];
        return saturate<BITS, SIGNED, NARROW>(halved<HALVES>(scaled, places));
    }
};

// y = LOW + the number of thresholds that the sum (with flip: −sum) reaches. All LEVELS comparisons happen at once; the
// tool adds their results as a tree. THRESHOLD_BITS hold every threshold. A BIPOLAR output is its carrier: LOW 0, one
// threshold.
template <int BITS, bool SIGNED, int LOW, int LEVELS, int THRESHOLD_BITS, int PE, int NF>
struct thresholds_t {
    typedef integer<BITS, SIGNED> output_t;
    static constexpr int LATE = LEVELS > 32 ? LEVELS / 5 : 0;  // they are counted one behind the other
    integer<THRESHOLD_BITS, true> threshold[PE][NF][LEVELS];
    bool flip[PE][NF];

    template <class SUM>
    output_t operator()(int fold, int pe, SUM sum) const {
#pragma HLS INLINE
#pragma HLS ARRAY_PARTITION variable = threshold complete dim = 1
#pragma HLS ARRAY_PARTITION variable = threshold complete dim = 3
#pragma HLS ARRAY_PARTITION variable = flip complete dim = 1
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

// y = value[…][sum − LOW]: any function of one input value, whose LEVELS values begin with LOW. Every lane looks up by
// itself in read-only distributed memory: LEVELS / 64 LUTs a bit and lane. The text has COPIES of the table, PEs taking
// turns, so that the tool need not copy one for more lanes than it will.
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

// y = value[…][i] + ((slope[…][i] · f + 2^(FRACTION − 1)) >> FRACTION): any function of one input value of 8 + FRACTION
// bits, whose range begins with LOW, as 256 pieces of lines; i and f are the upper 8 and the lower FRACTION bits of
// sum − LOW. Values and slopes lie as the values of table_t do. Every lane has a product of its own, of SLOPE_BITS ×
// (FRACTION + 1) bits. What is added to it holds the value above the point and the half below, so that one addition
// does.
template <int BITS, bool SIGNED, int LOW, int FRACTION, int SLOPE_BITS, int COPIES>
struct pieces_t {
    typedef integer<BITS, SIGNED> output_t;
    static constexpr int LATE = 0;
    integer<BITS, SIGNED> value[COPIES][256];
    integer<SLOPE_BITS, true> slope[COPIES][256];

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
        const integer<BITS + 1 + FRACTION, true> addend =
            int(value[pe % COPIES][piece]) * (1 << FRACTION) + (1 << (FRACTION - 1));
        return output_t((addend + product) >> FRACTION);
    }
};

#endif  // SYSTOLIC_ACTIVATION_H
