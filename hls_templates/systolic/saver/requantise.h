// Saver, second part: process ``requantise`` turns accumulators into results:
//
//   y = saturate(((sum + bias) · m + 2^(s − 1)) >> s)
//
// where m is ``negative_multiplier`` if sum + bias < 0, else ``multiplier``. It first reads the constants of all output
// channels of the pass, and the table. Then it requantises SAVE_ROWS rows of a position per cycle (II 1).
//
// In engines with LATE_OFFSETS, a requantiser may have a late offset, which some quantised networks need for their
// batch norms: y = saturate((sum · m + offset) >> s), with a signed multiplier of 17 bits and an offset of 48 bits that
// includes 2^(s − 1). In a layer that rounds ties to even (LATE_OFFSETS 2), the offset does not include 2^(s − 1), and
// the NEAR_HALF lowest bits of the product are ignored.
//
// In engines with TABLE_DEPTH, a layer whose activation is not a multiplication (SiLU, mish, …) looks each y up in a
// table. A y of more than 8 bits uses a piecewise-linear table (TABLE_SLOPES).
#ifndef SYSTOLIC_REQUANTISE_H
#define SYSTOLIC_REQUANTISE_H

#include <hls_burst_maxi.h>
#include <hls_stream.h>

#include "instrument.h"
#include "pass.h"
#include "types.h"

// The part of a requantiser that is stored on chip: 72 bits, the width of a BRAM36.
struct channel_t {
    int32_t bias;
    uint16_t multiplier;
    uint16_t negative_multiplier;
    uint8_t shift;
};

// ``shift`` is the shift in the lower bits (SHIFT_MASK) and two flags. LATE_OFFSET: ``bias`` has the lower 32 bits of
// the late offset, and ``negative_multiplier`` the upper 16. LATE_SIGN: the top bit of the multiplier.
static const int SHIFT_MASK = 63, LATE_OFFSET = 64, LATE_SIGN = 128;

// Lowest bits of a product that are ignored if ties are rounded to even (cnn/quantized.py).
static const int NEAR_HALF = 12;

// The same in the form in which it is stored: in hardware one wide number, which is written as a whole.
#if SYSTOLIC_PACKED
typedef ap_uint<72> channel_word_t;

inline channel_word_t pack_channel(const requantiser_t &from) {
#pragma HLS INLINE
    return (ap_uint<8>(from.shift), ap_uint<16>(from.negative_multiplier), ap_uint<16>(from.multiplier),
            ap_uint<32>(from.bias));
}

inline channel_t unpack_channel(const channel_word_t &word) {
#pragma HLS INLINE
    const channel_t out = {int32_t(word.range(31, 0)), uint16_t(word.range(47, 32)), uint16_t(word.range(63, 48)),
                           uint8_t(word.range(71, 64))};
    return out;
}
#else
typedef channel_t channel_word_t;

inline channel_word_t pack_channel(const requantiser_t &from) {
    const channel_t out = {from.bias, from.multiplier, from.negative_multiplier, uint8_t(from.shift)};
    return out;
}

inline channel_t unpack_channel(const channel_word_t &word) { return word; }
#endif

// The rounding of ties in a layer. It is stored in the upper half of a word whose lower half is the length of the
// table. even: ties are rounded to integers of one parity, and not up. odd: this parity is odd, and not even.
struct parity_t {
    bool even, odd;
};

static const uint32_t TO_EVEN = 1 << 16, TO_ODD = 1 << 17;

inline parity_t parity_of(uint32_t table) {
#pragma HLS INLINE
    const parity_t out = {LATE_OFFSETS > 1 && (table & (TO_EVEN | TO_ODD)) != 0, (table & TO_ODD) != 0};
    return out;
}

// Return value / 2^shift with ties rounded to the given parity. A tie is between two integers, ``up`` and up − 1.
inline product_t round_to_parity(product_t value, int shift, parity_t parity) {
#pragma HLS INLINE
    const product_t half = product_t(1) << (shift - 1);
    const product_t masked = value & -(product_t(1) << NEAR_HALF);
    const product_t up = (masked + half) >> shift;
    const bool is_half = ((masked + half) & ((product_t(1) << shift) - 1)) == 0;
    return is_half && (int(up) & 1) != int(parity.odd) ? product_t(up - 1) : up;
}

// Return the requantised result of one sum, limited to ``low`` … ``high``.
inline result_t requantise_value(sum_t sum, const channel_t &by, int low, int high, parity_t parity) {
#pragma HLS INLINE
    const bool late = LATE_OFFSETS > 0 && (by.shift & LATE_OFFSET) != 0;
    const int shift = by.shift & SHIFT_MASK;
    const sum_t biased = late ? sum : sum_t(sum + sum_t(by.bias));
    const uint32_t factor = late || biased >= 0 ? by.multiplier : by.negative_multiplier;
    const uint32_t sign = late && (by.shift & LATE_SIGN) != 0 ? 1 : 0;
    const int32_t multiplier = int32_t(sign << 31 | factor << 15) >> 15;  // 17 bits; the DSP's port has 18
    product_t product;
    SYSTOLIC_PRAGMA(HLS BIND_OP variable = product op = mul impl = REQUANTISE_PRODUCT latency = 4)
    product = product_t(biased) * product_t(multiplier);
    const int64_t offset = int64_t(uint64_t(by.negative_multiplier) << 48 | uint64_t(uint32_t(by.bias)) << 16) >> 16;
    const product_t half = product_t(1) << (shift - 1);
    product_t rounded;
    if (LATE_OFFSETS > 1 && parity.even) {
        rounded = round_to_parity(product + (late ? product_t(offset) : product_t(0)), shift, parity);
    } else {
        rounded = (product + (late ? product_t(offset) : half)) >> shift;
    }
    return result_t(rounded < low ? product_t(low) : rounded > high ? product_t(high) : rounded);
}

static const int TABLE_WORDS = TABLE_DEPTH > 0 ? TABLE_DEPTH : 1;  // an array needs at least one word
static const int SEGMENT_BITS =
    8;  // lower bits of a value of 16 bits: the place within a segment, which the upper bits select

// An entry of the table: the function's value, or a segment's value at its start and its slope.
#if SYSTOLIC_PACKED
static const int ENTRY_BITS = 16 + 18 * TABLE_SLOPES;
typedef ap_uint<ENTRY_BITS> entry_t;

inline entry_t make_entry(result_t start, slope_t slope) {
#pragma HLS INLINE
    return entry_t((ap_uint<18>(slope), ap_uint<16>(start)));
}

inline result_t start_of(const entry_t &entry) {
#pragma HLS INLINE
    return result_t(entry.range(15, 0));
}

inline slope_t slope_of(const entry_t &entry) {
#pragma HLS INLINE
    return slope_t(entry >> 16);
}
#else
struct entry_t {
    result_t start;
    slope_t slope;
};

inline entry_t make_entry(result_t start, slope_t slope) {
    const entry_t out = {start, slope};
    return out;
}

inline result_t start_of(const entry_t &entry) { return entry.start; }

inline slope_t slope_of(const entry_t &entry) { return entry.slope; }
#endif

// Shift a value left by ``align_shift``, so that it is aligned to 16 bits: the upper 8 bits then select the segment,
// and the lower SEGMENT_BITS bits are the place within it.
inline uint16_t align_value(result_t value, int align_shift) {
#pragma HLS INLINE
    return uint16_t(uint16_t(value) << align_shift);
}

// Return the segment's start plus the rise of the line within it, rounded. The half of the rounding is appended to the
// start, so that one addition suffices.
inline result_t interpolate(result_t start, slope_t slope, uint16_t segment_offset) {
#pragma HLS INLINE
    rise_t rise;
#pragma HLS BIND_OP variable = rise op = mul impl = fabric latency = 2
    rise = slope * segment_offset_t(segment_offset);
    const int addend = int(start) * (1 << SEGMENT_BITS) + (1 << (SEGMENT_BITS - 1));
    return result_t((rise + addend) >> SEGMENT_BITS);
}

// Pipeline depth of the main loop.
static const int REQUANTISE_STAGES = TABLE_SLOPES > 0 ? 16 : 12;

static inline void requantise(pass_t pass, hls::burst_maxi<requantiser_t> requantisers, hls::stream<group_t> &groups,
                              hls::stream<results_t> &results) {
    SYSTOLIC_PROCESS("requantise");
    // lint: allow(static-local) every pass fills this memory anew; it would be too large for the stack
    static channel_word_t channel[CHANNEL_TILES][COLUMNS];
#pragma HLS ARRAY_PARTITION variable = channel complete dim = 2
    SYSTOLIC_PRAGMA(HLS BIND_STORAGE variable = channel type = ram_s2p impl = REQUANTISER_MEMORY)
    // The table, addressed by a value's two's complement. There is one copy per value that is looked up in a cycle.
    static entry_t table[SAVE_ROWS][COLUMNS][TABLE_WORDS];  // lint: allow(static-local) as above
#pragma HLS ARRAY_PARTITION variable = table complete dim = 1
#pragma HLS ARRAY_PARTITION variable = table complete dim = 2
    SYSTOLIC_PRAGMA(HLS BIND_STORAGE variable = table type = ram_s2p impl = TABLE_MEMORY)
    requantisers.read_request(pass.requantiser_base, pass.channels);
    // The column whose constants arrive next, as one flag per column (one-hot). With a number, every store would
    // compare it with its column, and the HLS tool would make a chain of decisions that grows with the number of
    // columns.
    bool column_select[COLUMNS];
#pragma HLS ARRAY_PARTITION variable = column_select complete dim = 0
    for (int n = 0; n < COLUMNS; ++n) {
#pragma HLS UNROLL
        column_select[n] = n == 0;
    }
    int channel_tile = 0;
    uint32_t table_values = 0;
    SYSTOLIC_ENTER;
    for (int c = 0; c < pass.channels; ++c) {
        SYSTOLIC_PIPELINE(1, 3);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 4096
        const requantiser_t word = requantisers.read();
        const channel_word_t constants = pack_channel(word);
        if (c == 0) table_values = word.table;
        for (int n = 0; n < COLUMNS; ++n) {
#pragma HLS UNROLL
            if (column_select[n]) channel[channel_tile][n] = constants;
        }
        const bool tile_ends = column_select[COLUMNS - 1];
        if (tile_ends) ++channel_tile;
        for (int n = COLUMNS - 1; n > 0; --n) {
#pragma HLS UNROLL
            column_select[n] = column_select[n - 1];
        }
        column_select[0] = tile_ends;
    }
    const bool uses_table = TABLE_DEPTH > 0 && (table_values & 0xffff) > 0;
    const parity_t parity = parity_of(table_values);
    int align_shift = 0;  // left shift of a value, after which its upper bits are its address in the table
    if (uses_table) {
        requantisers.read_request(pass.requantiser_base + pass.channels, TABLE_DEPTH);
        SYSTOLIC_ENTER;
        for (int i = 0; i < TABLE_DEPTH; ++i) {
            SYSTOLIC_PIPELINE(1, 3);
            const requantiser_t word = requantisers.read();
            const entry_t entry = make_entry(result_t(word.bias), slope_t(word.slope()));
            if (TABLE_SLOPES > 0) align_shift = SEGMENT_BITS + 1 - int(word.shift);
            for (int r = 0; r < SAVE_ROWS; ++r) {
#pragma HLS UNROLL
                for (int n = 0; n < COLUMNS; ++n) {
#pragma HLS UNROLL
                    table[r][n][i] = entry;
                }
            }
        }
    }
    const result_t low = result_t(pass.limits & 0xffff), high = result_t(pass.limits >> 16);
    bool more = true;
    SYSTOLIC_ENTER;
    while (more) {
        SYSTOLIC_PIPELINE(1, REQUANTISE_STAGES);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        const group_t in = groups.read();
        results_t out;
        for (int n = 0; n < COLUMNS; ++n) {
#pragma HLS UNROLL
            const channel_t by = unpack_channel(channel[in.channel][n]);
            for (int r = 0; r < SAVE_ROWS; ++r) {
#pragma HLS UNROLL
                const result_t value = requantise_value(in.row[r].column[n], by, low, high, parity);
                const uint16_t aligned =
                    TABLE_SLOPES > 0 ? align_value(value, align_shift) : uint16_t(uint16_t(value) << SEGMENT_BITS);
                // If the table has an entry per value of more than 8 bits, the value itself is the address (align_shift
                // is 8).
                const int place = TABLE_WORDS > 1 << SEGMENT_BITS && (TABLE_SLOPES == 0 || align_shift == SEGMENT_BITS)
                                      ? int(value)
                                      : aligned >> SEGMENT_BITS;
                const entry_t entry = table[r][n][place & (TABLE_WORDS - 1)];
                const uint16_t segment_offset = aligned & ((1 << SEGMENT_BITS) - 1);
                const result_t start = start_of(entry);
                const result_t table_value =
                    TABLE_SLOPES > 0 ? interpolate(start, slope_of(entry), segment_offset) : start;
                out.value[r][n] = uses_table ? table_value : value;
            }
        }
        results.write(out);
        more = !in.last;
    }
}

#endif  // SYSTOLIC_REQUANTISE_H
