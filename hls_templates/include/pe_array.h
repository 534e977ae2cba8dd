// The PE array: ROWS output rows × COLUMNS output channels × LANES input channels, output-stationary.
//
// Data moves from register to register: weights and their control enter row 0 and go one row down a
// cycle, so no weight bit drives more than one row; the words of row m are delayed by m cycles to meet
// them. A word is shared by the DSP columns of its row. Where two rows share DSPs (4 bits) they are one row of DSPs.
#ifndef SYSTOLIC_PE_ARRAY_H
#define SYSTOLIC_PE_ARRAY_H

#include <hls_stream.h>

#include "instrument.h"
#include "packed.h"
#include "pass.h"
#include "types.h"

struct control_t {
    bool valid, first, last;
};

// Rows that share DSPs work in step: group g of PACK_ROWS rows is g cycles behind the first. Where ROWS is odd the
// last row of a pair is not there.
static const int ROW_GROUPS = (ROWS + PACK_ROWS - 1) / PACK_ROWS;

// Lane ``l`` of chain ``chain``. 4 bits: even lanes and odd lanes in chains of their own, because the odd ones of a
// pixel are its high nibbles (include/load.h), worth 16 of the even ones.
inline int chain_lane(int chain, int l) {
#pragma HLS INLINE
    if (VALUE_BITS == 4) return (chain / 2 * PACK_CHAIN + l) * 2 + chain % 2;
    return chain * PACK_CHAIN + l;
}

// One group of rows for one cycle: sums[r].column[n] (+)= Σ over lanes of weight · activation.
inline void pe_rows(const lanes_t words[PACK_ROWS], const weights_t &weights, bool first, bool nibbles,
                    sums_t sums[PACK_ROWS]) {
#pragma HLS INLINE
#if SYSTOLIC_PACKED
    for (int n = 0; n < COLUMNS; n += PACK_COLUMNS) {
#pragma HLS UNROLL
        sum_t sum[PACK_ROWS][PACK_COLUMNS];
        for (int f = 0; f < FIELDS; ++f) {
#pragma HLS UNROLL
            sum[f / PACK_COLUMNS][f % PACK_COLUMNS] =
                first ? sum_t(0) : sums[f / PACK_COLUMNS].column[n + f % PACK_COLUMNS];
        }
        for (int chain = 0; chain < LANES / PACK_CHAIN; ++chain) {
#pragma HLS UNROLL
            value_t w[PACK_COLUMNS][PACK_CHAIN], a[PACK_ROWS][PACK_CHAIN];
            for (int l = 0; l < PACK_CHAIN; ++l) {
#pragma HLS UNROLL
                const int lane = chain_lane(chain, l);
                for (int c = 0; c < PACK_COLUMNS; ++c) {
#pragma HLS UNROLL
                    w[c][l] = weights.value[lane * COLUMNS + n + c];
                }
                for (int r = 0; r < PACK_ROWS; ++r) {
#pragma HLS UNROLL
                    a[r][l] = words[r].lane[lane];
                }
            }
            sum_t part[PACK_ROWS][PACK_COLUMNS];
            packed_chain(w, a, part);
            for (int f = 0; f < FIELDS; ++f) {
#pragma HLS UNROLL
                const sum_t one = part[f / PACK_COLUMNS][f % PACK_COLUMNS];
                sum[f / PACK_COLUMNS][f % PACK_COLUMNS] += nibbles && chain % 2 == 1 ? sum_t(one * 16) : one;
            }
        }
        for (int f = 0; f < FIELDS; ++f) {
#pragma HLS UNROLL
            sums[f / PACK_COLUMNS].column[n + f % PACK_COLUMNS] = sum[f / PACK_COLUMNS][f % PACK_COLUMNS];
        }
    }
#else
    // The same sums in the order that a CPU's vector unit likes.
    for (int r = 0; r < PACK_ROWS; ++r) {
        sum_t sum[COLUMNS];
        for (int n = 0; n < COLUMNS; ++n) sum[n] = first ? 0 : sums[r].column[n];
        for (int l = 0; l < LANES; ++l) {
            const sum_t a = words[r].lane[l] * (nibbles && l % 2 == 1 ? 16 : 1);
            for (int n = 0; n < COLUMNS; ++n) sum[n] += a * weights.value[l * COLUMNS + n];
        }
        for (int n = 0; n < COLUMNS; ++n) sums[r].column[n] = sum[n];
    }
#endif
}

inline void pe_array(pass_t pass, hls::stream<activations_t> &activations, hls::stream<weights_t> &weights,
                     hls::stream<sums_t> sums[ROWS]) {
    SYSTOLIC_PROCESS("pe_array");
    lanes_t delay[ROW_GROUPS * PACK_ROWS][ROW_GROUPS];  // delay[m][0 … m / PACK_ROWS]: the skew of row m
    weights_t weight[ROW_GROUPS];
    control_t control[ROW_GROUPS];
    sums_t accumulator[ROW_GROUPS * PACK_ROWS];
#pragma HLS ARRAY_PARTITION variable=delay complete dim=0
#pragma HLS ARRAY_PARTITION variable=weight complete
#pragma HLS ARRAY_PARTITION variable=control complete
#pragma HLS ARRAY_PARTITION variable=accumulator complete
    for (int g = 0; g < ROW_GROUPS; ++g) {
#pragma HLS UNROLL
        control[g].valid = control[g].first = control[g].last = false;
    }
    // The row of a pair that is not there multiplies zeros.
    for (int m = ROWS; m < ROW_GROUPS * PACK_ROWS; ++m) {
#pragma HLS UNROLL
        for (int d = 0; d < ROW_GROUPS; ++d) {
#pragma HLS UNROLL
            for (int l = 0; l < LANES; ++l) {
#pragma HLS UNROLL
                delay[m][d].lane[l] = 0;
            }
        }
    }
    // Pixels of 4-bit engines come as nibbles.
    const bool nibbles = VALUE_BITS == 4 && pass.pixel_input;
    const int steps = pass.row_tiles * pass.channel_tiles * pass.out_width * pass.steps;
    int step = 0;
    SYSTOLIC_ENTER;
    for (int i = 0; i < steps + ROW_GROUPS - 1; ++i) {
        SYSTOLIC_PIPELINE(1, 12);
#pragma HLS LOOP_TRIPCOUNT min=1 max=1000000
        for (int g = ROW_GROUPS - 1; g > 0; --g) {
#pragma HLS UNROLL
            weight[g] = weight[g - 1];
            control[g] = control[g - 1];
        }
        for (int m = PACK_ROWS; m < ROW_GROUPS * PACK_ROWS; ++m) {
#pragma HLS UNROLL
            for (int d = m / PACK_ROWS; d > 0; --d) {
#pragma HLS UNROLL
                delay[m][d] = delay[m][d - 1];
            }
        }
        control[0].valid = i < steps;
        control[0].first = step == 0;
        control[0].last = step == pass.steps - 1;
        step = control[0].last ? 0 : step + 1;
        if (control[0].valid) {
            const activations_t word = activations.read();
            weight[0] = weights.read();
            for (int m = 0; m < ROWS; ++m) {
#pragma HLS UNROLL
                delay[m][0] = word.row[m];
            }
        }
        for (int g = 0; g < ROW_GROUPS; ++g) {
#pragma HLS UNROLL
            if (control[g].valid) {
                lanes_t words[PACK_ROWS];
                sums_t sum[PACK_ROWS];
                for (int r = 0; r < PACK_ROWS; ++r) {
#pragma HLS UNROLL
                    words[r] = delay[g * PACK_ROWS + r][g];
                    sum[r] = accumulator[g * PACK_ROWS + r];
                }
                pe_rows(words, weight[g], control[g].first, nibbles, sum);
                for (int r = 0; r < PACK_ROWS; ++r) {
#pragma HLS UNROLL
                    accumulator[g * PACK_ROWS + r] = sum[r];
                    if (control[g].last && g * PACK_ROWS + r < ROWS) sums[g * PACK_ROWS + r].write(sum[r]);
                }
            }
        }
    }
}

#endif  // SYSTOLIC_PE_ARRAY_H
