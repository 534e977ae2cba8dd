// Saver, where a map is added to that of a layer: between ``arrange`` and the port that writes. What arrives are the
// results of the layer, rounded and saturated as they would be in DDR; what leaves is
//
//   saturate((result · own + other · factor + offset) >> shift)
//
// which is the requantised sum of both maps, with all multiplications of a value in one. Process ``read_added`` reads the
// other map in the order in which the results come, a chunk at a time, and ``add_maps`` adds a word of LANES values a
// cycle (II 1). In passes that add nothing both end at once. Only engines of networks with such a layer (ADDED_MAPS)
// have any of it, and a port for it.
#ifndef SYSTOLIC_ADD_H
#define SYSTOLIC_ADD_H

#include <hls_burst_maxi.h>
#include <hls_stream.h>

#include "instrument.h"
#include "pass.h"
#include "read.h"
#include "save.h"
#include "types.h"

// Two groups of bursts may be requested and not yet read, as in read_rows.
static inline void read_added(pass_t pass, hls::stream<chunk_t> &chunks, hls::burst_maxi<word_t> maps,
                              hls::stream<word_t> &added) {
    SYSTOLIC_PROCESS("read_added");
    const int count = adds(pass) ? pass.chunks : 0;
    int unread = 0;
    for (int i = 0; i < count; ++i) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1024
        const chunk_t chunk = chunks.read();
        const int last_block = chunk.blocks - 1;
        int row = 0, block = 0;
        int row_offset = pass.added_base + chunk.lap + chunk.offset, address = row_offset;
        while (row < chunk.rows) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 8
            int requested = 0, requested_words = 0;
            SYSTOLIC_ENTER;
            while (requested != PIECES_TOGETHER && row < chunk.rows) {
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
            read_words(unread, maps, added);
            unread = requested_words;
        }
    }
    read_words(unread, maps, added);
}

// The numbers of an addition, the same for every value of a pass.
struct addition_t {
    int32_t own, other;
    int64_t offset;
    int shift;
    result_t low, high;
};

inline addition_t addition_of(const pass_t &pass) {
#pragma HLS INLINE
    addition_t out;
    out.own = pass.added_own;
    out.other = pass.added_other;
    out.offset =
        int64_t(uint64_t(uint32_t(pass.added_shift) >> 16) << 48 | uint64_t(uint32_t(pass.added_offset)) << 16) >> 16;
    out.shift = pass.added_shift & 63;
    out.low = result_t(pass.added_limits & 0xffff);
    out.high = result_t(pass.added_limits >> 16);
    return out;
}

// In LUTs: the array may take every DSP.
inline product_t added_product(value_t value, int32_t factor) {
#pragma HLS INLINE
    product_t product;
#pragma HLS BIND_OP variable = product op = mul impl = fabric
    product = product_t(value) * product_t(factor);
    return product;
}

inline value_t added_value(value_t result, value_t other, const addition_t &by) {
#pragma HLS INLINE
    const product_t sum = added_product(result, by.own) + added_product(other, by.other);
    const product_t rounded = (sum + product_t(by.offset)) >> by.shift;
    return value_t(rounded < by.low ? product_t(by.low) : rounded > by.high ? product_t(by.high) : rounded);
}

static inline void add_maps(pass_t pass, hls::stream<word_t> &results, hls::stream<word_t> &added,
                            hls::stream<word_t> &sums) {
    SYSTOLIC_PROCESS("add_maps");
    const addition_t by = addition_of(pass);
    const int words = adds(pass) ? pass.added_words : 0;
    SYSTOLIC_ENTER;
    for (int i = 0; i < words; ++i) {
        SYSTOLIC_PIPELINE(1, 8);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 100000
        const lanes_t own = lanes_of(results.read()), other = lanes_of(added.read());
        lanes_t out;
        for (int l = 0; l < LANES; ++l) {
#pragma HLS UNROLL
            out.lane[l] = added_value(own.lane[l], other.lane[l], by);
        }
        sums.write(word_of(out));
    }
}

#endif  // SYSTOLIC_ADD_H
