// Saver, second part: y = saturate(((sum + bias) · m + 2^(s − 1)) >> s), with m = ``negative`` where sum + bias < 0,
// else ``multiplier``. Process ``requantise`` first reads the constants of all output channels of the pass, then turns
// SAVE_ROWS rows of a position into results each cycle (II 1).
#ifndef SYSTOLIC_REQUANTISE_H
#define SYSTOLIC_REQUANTISE_H

#include <hls_burst_maxi.h>
#include <hls_stream.h>

#include "instrument.h"
#include "pass.h"
#include "pool.h"
#include "types.h"

// What is kept of a requantiser: 72 bits, the width of a BRAM36.
struct channel_t {
    int32_t bias;
    uint16_t multiplier;
    uint16_t negative;
    uint8_t shift;
};

inline result_t requantise_value(sum_t sum, const channel_t &by, int low, int high) {
#pragma HLS INLINE
    const sum_t biased = sum + sum_t(by.bias);
    product_t product;
    SYSTOLIC_PRAGMA(HLS BIND_OP variable = product op = mul impl = REQUANTISE_PRODUCT)
    product = product_t(biased) * product_t(biased < 0 ? by.negative : by.multiplier);
    const product_t rounded = (product + (product_t(1) << (by.shift - 1))) >> by.shift;
    return result_t(rounded < low ? product_t(low) : rounded > high ? product_t(high) : rounded);
}

static inline void requantise(pass_t pass, hls::burst_maxi<requantiser_t> requantisers, hls::stream<group_t> &groups,
                              hls::stream<results_t> &results) {
    SYSTOLIC_PROCESS("requantise");
    // lint: allow(static-local) a memory of its own, filled anew by every pass; on the stack it is too large
    static channel_t channel[CHANNEL_TILES][COLUMNS];
#pragma HLS ARRAY_PARTITION variable = channel complete dim = 2
    SYSTOLIC_PRAGMA(HLS BIND_STORAGE variable = channel type = ram_s2p impl = REQUANTISER_MEMORY)
    requantisers.read_request(pass.requantiser_base, pass.channels);
    int channel_tile = 0, n = 0;
    SYSTOLIC_ENTER;
    for (int c = 0; c < pass.channels; ++c) {
        SYSTOLIC_PIPELINE(1, 3);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 4096
        const requantiser_t from = requantisers.read();
        const channel_t constants = {from.bias, from.multiplier, from.negative, uint8_t(from.shift)};
        channel[channel_tile][n] = constants;
        if (++n == COLUMNS) {
            n = 0;
            ++channel_tile;
        }
    }
    int x = 0, group = 0;
    tile_t tile = {0, 0, 0};
    bool more = true;
    int count = groups_of(rows_of_tile(pass, tile).saved);
    SYSTOLIC_ENTER;
    while (more) {
        SYSTOLIC_PIPELINE(1, 8);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        const group_t in = groups.read();
        results_t out;
        for (int n = 0; n < COLUMNS; ++n) {
#pragma HLS UNROLL
            const channel_t by = channel[tile.channel][n];
            for (int r = 0; r < SAVE_ROWS; ++r) {
#pragma HLS UNROLL
                out.value[r][n] = requantise_value(in.row[r].column[n], by, pass.low, pass.high);
            }
        }
        results.write(out);
        if (++group == count) {
            group = 0;
            if (++x == pass.save_width) {
                x = 0;
                more = next_tile(pass, tile);
                count = groups_of(rows_of_tile(pass, tile).saved);
            }
        }
    }
}

#endif  // SYSTOLIC_REQUANTISE_H
