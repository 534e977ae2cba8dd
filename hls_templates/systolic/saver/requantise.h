// Saver, second part: y = saturate(((sum + bias) · m + 2^(s − 1)) >> s), with m = ``negative`` where sum + bias < 0,
// else ``multiplier``. Where a requantiser has LATE_OFFSET it is y = saturate((sum · m + offset) >> s) instead, with a
// multiplier of 17 signed bits and an offset of 48, in which 2^(s − 1) is: batch norms as some training gives them. Only
// engines for such networks (LATE_OFFSETS) have that. Of a layer that rounds halves to even (LATE_OFFSETS 2) no 2^(s − 1)
// is in the offset, and the product counts without its NEAR_HALF lowest bits. A layer with a function that is no
// multiplication (SiLU, mish …) looks each y up in a table behind that; a y of more than 8 bits in pieces of lines
// (TABLE_SLOPES). Process ``requantise`` first reads the constants of all output channels of the pass, and the table, then
// turns SAVE_ROWS rows of a position into results each cycle (II 1).
#ifndef SYSTOLIC_REQUANTISE_H
#define SYSTOLIC_REQUANTISE_H

#include <hls_burst_maxi.h>
#include <hls_stream.h>

#include "instrument.h"
#include "pass.h"
#include "types.h"

// What is kept of a requantiser: 72 bits, the width of a BRAM36.
struct channel_t {
    int32_t bias;
    uint16_t multiplier;
    uint16_t negative;
    uint8_t shift;
};

// Bits of ``shift`` above the number itself. LATE_OFFSET: ``bias`` has the lower 32 bits of the offset, ``negative`` the
// upper 16; LATE_SIGN: the multiplier's uppermost bit.
static const int SHIFT_MASK = 63, LATE_OFFSET = 64, LATE_SIGN = 128;

// Bits of a product that do not count where halves go to even (cnn/quantized.py).
static const int NEAR_HALF = 12;

// The same as it is stored: to the hardware one wide number, written as a whole.
#if SYSTOLIC_PACKED
typedef ap_uint<72> channel_word_t;

inline channel_word_t channel_word(const requantiser_t &from) {
#pragma HLS INLINE
    return (ap_uint<8>(from.shift), ap_uint<16>(from.negative), ap_uint<16>(from.multiplier), ap_uint<32>(from.bias));
}

inline channel_t channel_of(const channel_word_t &word) {
#pragma HLS INLINE
    const channel_t out = {int32_t(word.range(31, 0)), uint16_t(word.range(47, 32)), uint16_t(word.range(63, 48)),
                           uint8_t(word.range(71, 64))};
    return out;
}
#else
typedef channel_t channel_word_t;

inline channel_word_t channel_word(const requantiser_t &from) {
    const channel_t out = {from.bias, from.multiplier, from.negative, uint8_t(from.shift)};
    return out;
}

inline channel_t channel_of(const channel_word_t &word) { return word; }
#endif

// How a layer rounds halves, in the upper half of the word whose lower one is the length of its table.
struct parity_t {
    bool even, odd;
};

static const uint32_t TO_EVEN = 1 << 16, TO_ODD = 1 << 17;

inline parity_t parity_of(uint32_t table) {
#pragma HLS INLINE
    const parity_t out = {LATE_OFFSETS > 1 && (table & (TO_EVEN | TO_ODD)) != 0, (table & TO_ODD) != 0};
    return out;
}

// value / 2^shift, its halves rounded. Both integers beside a half are ``up`` and the one below.
inline product_t halved(product_t value, int shift, parity_t parity) {
#pragma HLS INLINE
    const product_t half = product_t(1) << (shift - 1);
    const product_t counted = value & -(product_t(1) << NEAR_HALF);
    const product_t up = (counted + half) >> shift;
    const bool is_half = ((counted + half) & ((product_t(1) << shift) - 1)) == 0;
    return is_half && (int(up) & 1) != int(parity.odd) ? product_t(up - 1) : up;
}

inline result_t requantise_value(sum_t sum, const channel_t &by, int low, int high, parity_t parity) {
#pragma HLS INLINE
    const bool late = LATE_OFFSETS > 0 && (by.shift & LATE_OFFSET) != 0;
    const int shift = by.shift & SHIFT_MASK;
    const sum_t biased = late ? sum : sum_t(sum + sum_t(by.bias));
    const uint32_t factor = late || biased >= 0 ? by.multiplier : by.negative;
    const uint32_t sign = late && (by.shift & LATE_SIGN) != 0 ? 1 : 0;
    const int32_t multiplier = int32_t(sign << 31 | factor << 15) >> 15;  // 17 bits, of which the DSPs have 18
    product_t product;
    SYSTOLIC_PRAGMA(HLS BIND_OP variable = product op = mul impl = REQUANTISE_PRODUCT latency = 4)
    product = product_t(biased) * product_t(multiplier);
    const int64_t offset = int64_t(uint64_t(by.negative) << 48 | uint64_t(uint32_t(by.bias)) << 16) >> 16;
    const product_t half = product_t(1) << (shift - 1);
    product_t rounded;
    if (LATE_OFFSETS > 1 && parity.even) {
        rounded = halved(product + (late ? product_t(offset) : product_t(0)), shift, parity);
    } else {
        rounded = (product + (late ? product_t(offset) : half)) >> shift;
    }
    return result_t(rounded < low ? product_t(low) : rounded > high ? product_t(high) : rounded);
}

static const int TABLE_WORDS = TABLE_DEPTH > 0 ? TABLE_DEPTH : 1;  // an array has one word at least
static const int PIECE_BITS =
    8;  // of a value: the lower of its 16 bits, where the upper ones are the place in the table

// What a table holds of a value, or of a piece of a line: what it becomes, and the slope from there.
#if SYSTOLIC_PACKED
static const int ENTRY_BITS = 16 + 18 * TABLE_SLOPES;
typedef ap_uint<ENTRY_BITS> entry_t;

inline entry_t entry_of(result_t start, slope_t slope) {
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

inline entry_t entry_of(result_t start, slope_t slope) {
    const entry_t out = {start, slope};
    return out;
}

inline result_t start_of(const entry_t &entry) { return entry.start; }

inline slope_t slope_of(const entry_t &entry) { return entry.slope; }
#endif

// From a value that stands before the upper bits of its own width to its place in the table and within the piece.
inline uint16_t aligned(result_t value, int places) {
#pragma HLS INLINE
    return uint16_t(uint16_t(value) << places);
}

// The start of a piece, and what the line has risen by within it, rounded. The start has the half below it, so that one
// addition does.
inline result_t on_line(result_t start, slope_t slope, uint16_t along) {
#pragma HLS INLINE
    rise_t risen;
#pragma HLS BIND_OP variable = risen op = mul impl = fabric latency = 2
    risen = slope * along_t(along);
    const int addend = int(start) * (1 << PIECE_BITS) + (1 << (PIECE_BITS - 1));
    return result_t((risen + addend) >> PIECE_BITS);
}

static const int REQUANTISE_STAGES = TABLE_SLOPES > 0 ? 16 : 12;

static inline void requantise(pass_t pass, hls::burst_maxi<requantiser_t> requantisers, hls::stream<group_t> &groups,
                              hls::stream<results_t> &results) {
    SYSTOLIC_PROCESS("requantise");
    // lint: allow(static-local) a memory of its own, filled anew by every pass; on the stack it is too large
    static channel_word_t channel[CHANNEL_TILES][COLUMNS];
#pragma HLS ARRAY_PARTITION variable = channel complete dim = 2
    SYSTOLIC_PRAGMA(HLS BIND_STORAGE variable = channel type = ram_s2p impl = REQUANTISER_MEMORY)
    // What each value becomes, by its two's complement: a copy for each that is looked up in a cycle.
    static entry_t table[SAVE_ROWS][COLUMNS][TABLE_WORDS];  // lint: allow(static-local) the same
#pragma HLS ARRAY_PARTITION variable = table complete dim = 1
#pragma HLS ARRAY_PARTITION variable = table complete dim = 2
    SYSTOLIC_PRAGMA(HLS BIND_STORAGE variable = table type = ram_s2p impl = TABLE_MEMORY)
    requantisers.read_request(pass.requantiser_base, pass.channels);
    // The column whose constants come next, a flag each that is handed on: a number to compare with would make the stores
    // one chain of decisions, longer with every column.
    bool turn[COLUMNS];
#pragma HLS ARRAY_PARTITION variable = turn complete dim = 0
    for (int n = 0; n < COLUMNS; ++n) {
#pragma HLS UNROLL
        turn[n] = n == 0;
    }
    int channel_tile = 0;
    uint32_t table_values = 0;
    SYSTOLIC_ENTER;
    for (int c = 0; c < pass.channels; ++c) {
        SYSTOLIC_PIPELINE(1, 3);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 4096
        const requantiser_t word = requantisers.read();
        const channel_word_t constants = channel_word(word);
        if (c == 0) table_values = word.table;
        for (int n = 0; n < COLUMNS; ++n) {
#pragma HLS UNROLL
            if (turn[n]) channel[channel_tile][n] = constants;
        }
        const bool tile_ends = turn[COLUMNS - 1];
        if (tile_ends) ++channel_tile;
        for (int n = COLUMNS - 1; n > 0; --n) {
#pragma HLS UNROLL
            turn[n] = turn[n - 1];
        }
        turn[0] = tile_ends;
    }
    const bool looks_up = TABLE_DEPTH > 0 && (table_values & 0xffff) > 0;
    const parity_t parity = parity_of(table_values);
    int places = 0;  // by which a value is moved up so that its upper bits are its place in the table
    if (looks_up) {
        requantisers.read_request(pass.requantiser_base + pass.channels, TABLE_DEPTH);
        SYSTOLIC_ENTER;
        for (int i = 0; i < TABLE_DEPTH; ++i) {
            SYSTOLIC_PIPELINE(1, 3);
            const requantiser_t word = requantisers.read();
            const entry_t entry = entry_of(result_t(word.bias), slope_t(word.slope()));
            if (TABLE_SLOPES > 0) places = PIECE_BITS + 1 - int(word.shift);
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
            const channel_t by = channel_of(channel[in.channel][n]);
            for (int r = 0; r < SAVE_ROWS; ++r) {
#pragma HLS UNROLL
                const result_t value = requantise_value(in.row[r].column[n], by, low, high, parity);
                const uint16_t where =
                    TABLE_SLOPES > 0 ? aligned(value, places) : uint16_t(uint16_t(value) << PIECE_BITS);
                // A value with more bits than choose a piece is its own place.
                const int place = TABLE_WORDS > 1 << PIECE_BITS && (TABLE_SLOPES == 0 || places == PIECE_BITS)
                                      ? int(value)
                                      : where >> PIECE_BITS;
                const entry_t entry = table[r][n][place & (TABLE_WORDS - 1)];
                const uint16_t along = where & ((1 << PIECE_BITS) - 1);
                const result_t start = start_of(entry);
                const result_t function_of = TABLE_SLOPES > 0 ? on_line(start, slope_of(entry), along) : start;
                out.value[r][n] = looks_up ? function_of : value;
            }
        }
        results.write(out);
        more = !in.last;
    }
}

#endif  // SYSTOLIC_REQUANTISE_H
