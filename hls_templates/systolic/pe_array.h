// The PE array: ROWS output rows × COLUMNS output channels × LANES input channels a cycle (II 1), output-stationary: a
// sum stays in its PE until it is complete.
//
// Data moves from register to register. Weights and their control signals enter row 0 and go down one row a cycle, so
// that no weight bit drives more than one row; the activations of row m are delayed by m cycles, so that they meet. All
// columns of a row share its activations. At 4 bits two neighbouring positions of a row share every DSP.
#ifndef SYSTOLIC_PE_ARRAY_H
#define SYSTOLIC_PE_ARRAY_H

#include <hls_stream.h>

#include "instrument.h"
#include "packed.h"
#include "pass.h"
#include "types.h"

// What goes down beside the weights: whether they are weights at all, of the first step of a position, of the last.
struct control_t {
    bool valid, first, last;
};

// The lane that is number ``l`` of chain ``chain``: a chain of products is summed inside the DSPs (packed.h). At 4 bits
// even and odd lanes have chains of their own, because the odd lanes of a pixel are its high nibbles (load.h), which
// count 16 times.
inline int chain_lane(int chain, int l) {
#pragma HLS INLINE
    if (VALUE_BITS == 4) return (chain / 2 * PACK_CHAIN + l) * 2 + chain % 2;
    return chain * PACK_CHAIN + l;
}

// One cycle of a row of PEs: sums.position[p].column[n] += Σ over lanes of weight · activation, from 0 where ``first``.
// What comes in this cycle is added up before the sum so far: only one addition waits for the cycle before.
inline void pe_row(const words_t &words, const weights_t &weights, bool first, bool nibbles, positions_t &sums) {
#pragma HLS INLINE
#if SYSTOLIC_PACKED
    for (int n = 0; n < COLUMNS; n += PACK_COLUMNS) {
#pragma HLS UNROLL
        sum_t total[POSITIONS][PACK_COLUMNS];
#pragma HLS ARRAY_PARTITION variable = total complete dim = 0
        for (int chain = 0; chain < LANES / PACK_CHAIN; ++chain) {
#pragma HLS UNROLL
            value_t w[PACK_COLUMNS][PACK_CHAIN], a[POSITIONS][PACK_CHAIN];
#pragma HLS ARRAY_PARTITION variable = w complete dim = 0
#pragma HLS ARRAY_PARTITION variable = a complete dim = 0
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
#pragma HLS ARRAY_PARTITION variable = part complete dim = 0
            packed_chain(w, a, part);
            for (int f = 0; f < FIELDS; ++f) {
#pragma HLS UNROLL
                const sum_t products = part[f / PACK_COLUMNS][f % PACK_COLUMNS];
                const sum_t counted = nibbles && chain % 2 == 1 ? sum_t(products * 16) : products;
                sum_t &into = total[f / PACK_COLUMNS][f % PACK_COLUMNS];
                into = chain == 0 ? counted : sum_t(into + counted);
            }
        }
        for (int f = 0; f < FIELDS; ++f) {
#pragma HLS UNROLL
            sum_t &sum = sums.position[f / PACK_COLUMNS].column[n + f % PACK_COLUMNS];
            sum = (first ? sum_t(0) : sum) + total[f / PACK_COLUMNS][f % PACK_COLUMNS];
        }
    }
#else
    // The same sums, in an order that a compiler vectorises.
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
    words_t delay[ROWS][ROWS];  // delay[m][0 … m]: row m's activations, delayed by m cycles
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
#pragma HLS EXPRESSION_BALANCE off
    // A tool may turn a sum into a tree. The products of a chain are to be added one after the other, as DSPs pass them
    // on: each adds its product to what the one before gives (PCIN), a cycle later, with no adder of LUTs.
    //
    // An array of 4 bits takes a pixel of 8 bits as two nibbles.
    const bool nibbles = VALUE_BITS == 4 && pass.pixel_input;
    int step = 0;
    SYSTOLIC_ENTER;
    for (int i = 0; i < pass.array_steps + ROWS - 1; ++i) {
        SYSTOLIC_PIPELINE(1, 16);
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
