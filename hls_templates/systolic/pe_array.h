// The PE array: ROWS output rows × COLUMNS output channels × LANES input channels, output-stationary.
//
// Data moves from register to register: weights and their control enter row 0 and go one row down a
// cycle, so no weight bit drives more than one row; the words of row m are delayed by m cycles to meet
// them. A word is shared by the DSP columns of its row. At 4 bits two
// positions, neighbours in the row, share every DSP.
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

// Lane ``l`` of chain ``chain``. 4 bits: even lanes and odd lanes in chains of their own, because the odd ones of a
// pixel are its high nibbles (load.h), worth 16 of the even ones.
inline int chain_lane(int chain, int l) {
#pragma HLS INLINE
    if (VALUE_BITS == 4) return (chain / 2 * PACK_CHAIN + l) * 2 + chain % 2;
    return chain * PACK_CHAIN + l;
}

// One row of PEs for one cycle: position[p].column[n] (+)= Σ over lanes of weight · activation.
inline void pe_row(const words_t &words, const weights_t &weights, bool first, bool nibbles, positions_t &sums) {
#pragma HLS INLINE
#if SYSTOLIC_PACKED
    for (int n = 0; n < COLUMNS; n += PACK_COLUMNS) {
#pragma HLS UNROLL
        sum_t sum[POSITIONS][PACK_COLUMNS];
        for (int f = 0; f < FIELDS; ++f) {
#pragma HLS UNROLL
            sum[f / PACK_COLUMNS][f % PACK_COLUMNS] =
                first ? sum_t(0) : sums.position[f / PACK_COLUMNS].column[n + f % PACK_COLUMNS];
        }
        for (int chain = 0; chain < LANES / PACK_CHAIN; ++chain) {
#pragma HLS UNROLL
            value_t w[PACK_COLUMNS][PACK_CHAIN], a[POSITIONS][PACK_CHAIN];
            for (int l = 0; l < PACK_CHAIN; ++l) {
#pragma HLS UNROLL
                const int lane = chain_lane(chain, l);
                for (int c = 0; c < PACK_COLUMNS; ++c) {
#pragma HLS UNROLL
                    w[c][l] = weights.value[lane * COLUMNS + n + c];
                }
                for (int p = 0; p < POSITIONS; ++p) {
#pragma HLS UNROLL
                    a[p][l] = words.position[p].lane[lane];
                }
            }
            sum_t part[POSITIONS][PACK_COLUMNS];
            packed_chain(w, a, part);
            for (int f = 0; f < FIELDS; ++f) {
#pragma HLS UNROLL
                const sum_t one = part[f / PACK_COLUMNS][f % PACK_COLUMNS];
                sum[f / PACK_COLUMNS][f % PACK_COLUMNS] += nibbles && chain % 2 == 1 ? sum_t(one * 16) : one;
            }
        }
        for (int f = 0; f < FIELDS; ++f) {
#pragma HLS UNROLL
            sums.position[f / PACK_COLUMNS].column[n + f % PACK_COLUMNS] = sum[f / PACK_COLUMNS][f % PACK_COLUMNS];
        }
    }
#else
    // The same sums in the order that a CPU's vector unit likes.
    for (int p = 0; p < POSITIONS; ++p) {
        sum_t sum[COLUMNS];
        for (int n = 0; n < COLUMNS; ++n) sum[n] = first ? 0 : sums.position[p].column[n];
        for (int l = 0; l < LANES; ++l) {
            const sum_t a = words.position[p].lane[l] * (nibbles && l % 2 == 1 ? 16 : 1);
            for (int n = 0; n < COLUMNS; ++n) sum[n] += a * weights.value[l * COLUMNS + n];
        }
        for (int n = 0; n < COLUMNS; ++n) sums.position[p].column[n] = sum[n];
    }
#endif
}

inline void pe_array(pass_t pass, hls::stream<activations_t> &activations, hls::stream<weights_t> &weights,
                     hls::stream<positions_t> sums[ROWS]) {
    SYSTOLIC_PROCESS("pe_array");
    words_t delay[ROWS][ROWS];  // delay[m][0 … m]: the skew of row m
    weights_t weight[ROWS];
    control_t control[ROWS];
    positions_t accumulator[ROWS];
#pragma HLS ARRAY_PARTITION variable = delay complete dim = 0
#pragma HLS ARRAY_PARTITION variable = weight complete
#pragma HLS ARRAY_PARTITION variable = control complete
#pragma HLS ARRAY_PARTITION variable = accumulator complete
    for (int m = 0; m < ROWS; ++m) {
#pragma HLS UNROLL
        control[m].valid = control[m].first = control[m].last = false;
    }
    // Pixels of 4-bit engines come as nibbles.
    const bool nibbles = VALUE_BITS == 4 && pass.pixel_input;
    int step = 0;
    SYSTOLIC_ENTER;
    for (int i = 0; i < pass.array_steps + ROWS - 1; ++i) {
        SYSTOLIC_PIPELINE(1, 12);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        for (int m = ROWS - 1; m > 0; --m) {
#pragma HLS UNROLL
            weight[m] = weight[m - 1];
            control[m] = control[m - 1];
            for (int d = m; d > 0; --d) {
#pragma HLS UNROLL
                delay[m][d] = delay[m][d - 1];
            }
        }
        control[0].valid = i < pass.array_steps;
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
                pe_row(delay[m][m], weight[m], control[m].first, nibbles, accumulator[m]);
                if (control[m].last) sums[m].write(accumulator[m]);
            }
        }
    }
}

#endif  // SYSTOLIC_PE_ARRAY_H
