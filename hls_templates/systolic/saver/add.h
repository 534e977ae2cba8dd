// Saver, residual add: in passes with a residual map, process ``arrange`` adds that map to the results before it
// outputs them. The results are already rounded and saturated, as they would be in DDR. The output is
//
//   saturate((result · own + other · factor + offset) >> shift)
//
// where own and factor are the multipliers of the results and of the residual map (pass.h). If the layer rounds ties to
// even (round_to_parity in requantise.h), the offset does not include the half of 2^shift. One word of LANES values is
// added per cycle.
//
// The residual map is in the map buffer that the pass does not read; the sum replaces its word, or is written to
// another place of the same buffer. Or process ``read_added`` reads it from DDR, chunk by chunk, in the order of the
// results. Only engines for networks with residual adds (ADDED_MAPS) have this logic and its port.
#ifndef SYSTOLIC_ADD_H
#define SYSTOLIC_ADD_H

#include <hls_burst_maxi.h>
#include <hls_stream.h>

#include "instrument.h"
#include "pass.h"
#include "read.h"
#include "requantise.h"
#include "save.h"
#include "types.h"

// Process that reads the residual map from DDR. Two groups of bursts may be requested and not yet read, as in
// read_rows.
static inline void read_added(pass_t pass, hls::stream<chunk_t> &chunks, hls::burst_maxi<word_t> maps,
                              hls::stream<word_t> &added) {
    SYSTOLIC_PROCESS("read_added");
    const int count = residual_in_ddr(pass) ? pass.chunks : 0;
    int unread_words = 0;
    for (int i = 0; i < count; ++i) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1024
        const chunk_t chunk = chunks.read();
        const int last_block = chunk.blocks - 1;
        int row = 0, block = 0;
        int row_offset = pass.added_base + chunk.row_offset + chunk.offset, address = row_offset;
        while (row < chunk.rows) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 8
            int requested = 0, requested_words = 0;
            SYSTOLIC_ENTER;
            while (requested != PIECES_PER_GROUP && row < chunk.rows) {
                SYSTOLIC_PIPELINE(1, REQUEST_STAGES + 1);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 16
                maps.read_request(address, chunk.columns);
                ++requested;
                requested_words += chunk.columns;
                const bool last = block == last_block;
                block = last ? 0 : block + 1;
                address = last ? row_offset + pass.added_row_pitch : address + pass.out_block_pitch;
                if (last) {
                    row_offset += pass.added_row_pitch;
                    ++row;
                }
            }
            read_words(unread_words, maps, added);
            unread_words = requested_words;
        }
    }
    read_words(unread_words, maps, added);
}

// The constants of a residual add, which are the same for all values of a pass. own, other: multipliers of the results
// and of the residual map. low, high: limits of the sum.
struct addition_t {
    int32_t own, other;
    int64_t offset;
    int shift;
    result_t low, high;
    parity_t parity;
};

inline addition_t addition_of(const pass_t &pass) {
#pragma HLS INLINE
    addition_t out;
    out.own = pass.added_own;
    out.other = pass.added_other;
    // The offset has 48 bits: the lower 32 are in added_offset, the upper 16 in the upper half of added_shift.
    out.offset =
        int64_t(uint64_t(uint32_t(pass.added_shift) >> 16) << 48 | uint64_t(uint32_t(pass.added_offset)) << 16) >> 16;
    out.shift = pass.added_shift & 63;
    out.parity = parity_of(uint32_t(pass.added_shift & 0xffc0) << 10);  // TO_EVEN and TO_ODD above the shift
    out.low = result_t(pass.added_limits & 0xffff);
    out.high = result_t(pass.added_limits >> 16);
    return out;
}

// The multiplication is made of LUTs, because the array may need every DSP.
inline product_t residual_product(value_t value, int32_t factor) {
#pragma HLS INLINE
    product_t product;
#pragma HLS BIND_OP variable = product op = mul impl = fabric
    product = product_t(value) * product_t(factor);
    return product;
}

// Return the requantised sum of one result and one value of the residual map.
inline value_t add_residual(value_t result, value_t other, const addition_t &by) {
#pragma HLS INLINE
    const product_t sum = residual_product(result, by.own) + residual_product(other, by.other);
    const product_t total = sum + product_t(by.offset);
    const product_t rounded =
        LATE_OFFSETS > 1 && by.parity.even ? round_to_parity(total, by.shift, by.parity) : product_t(total >> by.shift);
    return value_t(rounded < by.low ? product_t(by.low) : rounded > by.high ? product_t(by.high) : rounded);
}

// Return the same for a word of LANES values.
inline word_t add_residual_word(const word_t &result, const word_t &other, const addition_t &by) {
#pragma HLS INLINE
    const lanes_t results = lanes_of(result), others = lanes_of(other);
    lanes_t out;
    for (int l = 0; l < LANES; ++l) {
#pragma HLS UNROLL
        out.lane[l] = add_residual(results.lane[l], others.lane[l], by);
    }
    return word_of(out);
}

// Return the word of the residual map in a map buffer. It is at the place of the sum, or at a constant distance from
// it. No other process accesses that buffer in this pass, so that it can be read and written.
inline word_t read_residual_word(const pass_t &pass, const buffer_place_t &at, const map_buffer_t from) {
#pragma HLS INLINE
    const int first = at.address + (writes_buffer(pass) ? pass.added_base - pass.out_base : 0);
    word_t banks[ROWS];
#pragma HLS ARRAY_PARTITION variable = banks complete
    for (int bank = 0; bank < ROWS; ++bank) {
#pragma HLS UNROLL
        banks[bank] =
            from[maximum(0, first + row_offset_in_bank(buffer_row_pitch(pass), false, bank, pass.out_turn))][bank];
    }
    return banks[at.bank];
}

// Return the output word for a word of results. In passes with a residual add, it is the sum with the residual map's
// next word from DDR, or with the word at the same place in the map buffer.
inline word_t output_word(const pass_t &pass, const buffer_place_t &at, const map_buffer_t maps, const word_t &result,
                          hls::stream<word_t> &added) {
#pragma HLS INLINE
    if (!has_residual_add(pass)) return result;
    word_t other;
    if (residual_in_ddr(pass)) other = added.read();
    else other = read_residual_word(pass, at, maps);
    return add_residual_word(result, other, addition_of(pass));
}

// Process ``arrange`` (save.h) of engines with residual adds.
static inline void arrange_and_add(pass_t pass, hls::stream<chunk_t> &chunks, hls::stream<results_t> &results,
                                   hls::stream<word_t> &added, hls::stream<word_t> ports[SAVE_PORTS], map_buffer_t to) {
    SYSTOLIC_PROCESS("arrange");
    // lint: allow(static-local) every pass fills this memory anew; it would be too large for the stack
    static arrange_buffer_t buffer;
#pragma HLS ARRAY_PARTITION variable = buffer complete dim = 3
#pragma HLS ARRAY_PARTITION variable = buffer complete dim = 5
#pragma HLS ARRAY_PARTITION variable = buffer complete dim = 6
    SYSTOLIC_PRAGMA(HLS BIND_STORAGE variable = buffer type = ram_s2p impl = ARRANGED_MEMORY)
    arrange_chunks(pass, chunks, results, ports, to, buffer, added);
}

#endif  // SYSTOLIC_ADD_H
