// The PE array: ROWS output rows × COLUMNS output channels × LANES input channels, output-stationary.
//
// Data moves from register to register: weights and their control enter row 0 and go one row down a
// cycle, so no weight bit drives more than one row; the words of row m are delayed by m cycles to meet
// them. A word is shared by the COLUMNS / 2 DSP columns of its row.
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

// One row of PEs for one cycle: row[n] (+)= Σ over lanes of weight · activation.
inline void pe_row(const lanes_t &word, const weights_t &weights, bool first, sums_t &sums) {
#pragma HLS INLINE
#if SYSTOLIC_PACKED
    for (int n = 0; n < COLUMNS; n += 2) {
#pragma HLS UNROLL
        sum_t sum0 = first ? sum_t(0) : sums.column[n];
        sum_t sum1 = first ? sum_t(0) : sums.column[n + 1];
        for (int chain = 0; chain < LANES; chain += PACK_CHAIN) {
#pragma HLS UNROLL
            value_t w0[PACK_CHAIN], w1[PACK_CHAIN], a[PACK_CHAIN];
            for (int l = 0; l < PACK_CHAIN; ++l) {
#pragma HLS UNROLL
                w0[l] = weights.value[(chain + l) * COLUMNS + n];
                w1[l] = weights.value[(chain + l) * COLUMNS + n + 1];
                a[l] = word.lane[chain + l];
            }
            packed_chain(w0, w1, a, sum0, sum1);
        }
        sums.column[n] = sum0;
        sums.column[n + 1] = sum1;
    }
#else
    // The same sums in the order that a CPU's vector unit likes.
    sum_t sum[COLUMNS];
    for (int n = 0; n < COLUMNS; ++n) sum[n] = first ? 0 : sums.column[n];
    for (int l = 0; l < LANES; ++l) {
        const sum_t a = word.lane[l];
        for (int n = 0; n < COLUMNS; ++n) sum[n] += a * weights.value[l * COLUMNS + n];
    }
    for (int n = 0; n < COLUMNS; ++n) sums.column[n] = sum[n];
#endif
}

inline void pe_array(pass_t pass, hls::stream<activations_t> &activations, hls::stream<weights_t> &weights,
                     hls::stream<sums_t> sums[ROWS]) {
    SYSTOLIC_PROCESS("pe_array");
    lanes_t delay[ROWS][ROWS];  // delay[m][0 … m]: the skew of row m
    weights_t weight[ROWS];
    control_t control[ROWS];
    sums_t accumulator[ROWS];
#pragma HLS ARRAY_PARTITION variable=delay complete dim=0
#pragma HLS ARRAY_PARTITION variable=weight complete
#pragma HLS ARRAY_PARTITION variable=control complete
#pragma HLS ARRAY_PARTITION variable=accumulator complete
    for (int m = 0; m < ROWS; ++m) {
#pragma HLS UNROLL
        control[m].valid = control[m].first = control[m].last = false;
    }
    const int steps = pass.row_tiles * pass.channel_tiles * pass.out_width * pass.steps;
    int step = 0;
    SYSTOLIC_ENTER;
    for (int i = 0; i < steps + ROWS - 1; ++i) {
        SYSTOLIC_PIPELINE(1, 12);
#pragma HLS LOOP_TRIPCOUNT min=1 max=1000000
        for (int m = ROWS - 1; m > 0; --m) {
#pragma HLS UNROLL
            weight[m] = weight[m - 1];
            control[m] = control[m - 1];
            for (int d = m; d > 0; --d) {
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
        for (int m = 0; m < ROWS; ++m) {
#pragma HLS UNROLL
            if (control[m].valid) {
                pe_row(delay[m][m], weight[m], control[m].first, accumulator[m]);
                if (control[m].last) sums[m].write(accumulator[m]);
            }
        }
    }
}

#endif  // SYSTOLIC_PE_ARRAY_H
