// The PE array: ROWS output rows × COLUMNS output channels × LANES input channels per cycle (II 1). It is
// output-stationary: a sum stays in its PE until it is complete.
//
// Each row of PEs is a process of its own, and all are the same. A row stalls on its own FIFOs, and no control signal
// reaches the whole array. Each row passes the weights on to the next one, so that no weight bit drives more than one
// row. Row m takes a step 2 · m cycles after row 0. All columns of a row share its activations. At 4 bits, two
// neighbouring positions of a row share every DSP; with six products per DSP, three columns share it too.
#ifndef SYSTOLIC_PE_ARRAY_H
#define SYSTOLIC_PE_ARRAY_H

#include <hls_stream.h>

#include "instrument.h"
#include "packed.h"
#include "pass.h"
#include "six_products.h"
#include "types.h"

// Return the lane that is operand ``l`` of chain ``chain``. The products of a chain are summed inside the DSPs
// (packed.h). At 4 bits, even and odd lanes are in separate chains, because the odd lanes of a pixel are its high
// nibbles (load.h) and have weight 16.
inline int chain_lane(int chain, int l) {
#pragma HLS INLINE
    if (VALUE_BITS == 4) return (chain / 2 * PACK_CHAIN + l) * 2 + chain % 2;
    return chain * PACK_CHAIN + l;
}

#if SYSTOLIC_PACKED
// Compute total[p][c] = Σ over lanes of weight · activation, chain by chain, for the PACK_COLUMNS columns from n on,
// which share DSPs.
template <bool SIX>
struct shared_dsps_t {
    static void sums(const row_activations_t &words, const weights_t &weights, int n, bool nibbles,
                     sum_t total[POSITIONS][PACK_COLUMNS]) {
#pragma HLS INLINE
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
                const sum_t scaled = nibbles && chain % 2 == 1 ? sum_t(products * 16) : products;
                sum_t &into = total[f / PACK_COLUMNS][f % PACK_COLUMNS];
                into = chain == 0 ? scaled : sum_t(into + scaled);
            }
        }
    }
};
// The same with six products per DSP.
template <>
struct shared_dsps_t<true> {
    template <int SHARING>
    static void sums(const row_activations_t &words, const weights_t &weights, int n, bool nibbles,
                     sum_t (*total)[SHARING]) {
#pragma HLS INLINE
        six_sums(words, weights, n, nibbles, total);
    }
};
#endif

// One cycle of a row of PEs: sums[p][n] += Σ over lanes of weight · activation; the sum starts from 0 if ``first`` is
// set. The products of the cycle are summed before the accumulator is added, so that only one addition depends on the
// cycle before.
inline void add_products(const row_activations_t &words, const weights_t &weights, bool first, bool nibbles,
                         sum_t sums[POSITIONS][COLUMNS]) {
#pragma HLS INLINE
#if SYSTOLIC_PACKED
    for (int n = 0; n < COLUMNS; n += PACK_COLUMNS) {
#pragma HLS UNROLL
        sum_t total[POSITIONS][PACK_COLUMNS];
#pragma HLS ARRAY_PARTITION variable = total complete dim = 0
        shared_dsps_t<SIX_PRODUCTS>::sums(words, weights, n, nibbles, total);
        for (int f = 0; f < FIELDS; ++f) {
#pragma HLS UNROLL
            sum_t &sum = sums[f / PACK_COLUMNS][n + f % PACK_COLUMNS];
            sum = (first ? sum_t(0) : sum) + total[f / PACK_COLUMNS][f % PACK_COLUMNS];
        }
    }
#else
    // The same sums, in an order that a compiler can vectorise.
    for (int p = 0; p < POSITIONS; ++p) {
        sum_t sum[COLUMNS];
        for (int n = 0; n < COLUMNS; ++n) sum[n] = first ? 0 : sums[p][n];
        for (int l = 0; l < LANES; ++l) {
            const sum_t a = words.position[p].lane[l] * (nibbles && l % 2 == 1 ? 16 : 1);
            for (int n = 0; n < COLUMNS; ++n) sum[n] += a * weights.value[l * COLUMNS + n];
        }
        for (int n = 0; n < COLUMNS; ++n) sums[p][n] = sum[n];
    }
#endif
}

// One step of a row: step number ``step`` of a position, which has last_step + 1 steps. After the last step, the sums
// of the position are written.
inline void row_step(const row_activations_t &words, const weights_t &weights, bool nibbles, int last_step, int &step,
                     sum_t accumulator[POSITIONS][COLUMNS], hls::stream<positions_t> &sums) {
#pragma HLS INLINE
    add_products(words, weights, step == 0, nibbles, accumulator);
    if (step == last_step) {
        positions_t out;
        for (int p = 0; p < POSITIONS; ++p) {
#pragma HLS UNROLL
            for (int n = 0; n < COLUMNS; ++n) {
#pragma HLS UNROLL
                out.position[p].column[n] = accumulator[p][n];
            }
        }
        sums.write(out);
    }
    step = step == last_step ? 0 : step + 1;
}

// Return whether the lanes are nibbles: with 4 bits, a pixel value of 8 bits is read as two nibbles.
inline bool has_nibbles(const pass_t &pass) {
#pragma HLS INLINE
    return VALUE_BITS == 4 && pass.pixel_input;
}

// Process of a row that passes the weights on to the row below.
//
// EXPRESSION_BALANCE off: the HLS tool must not turn the sum of a chain into a tree. Each DSP adds its product to the
// sum of the DSP before it (PCIN) one cycle later, which takes no adder in LUTs.
inline void pe_row(pass_t pass, hls::stream<row_activations_t> &activations, hls::stream<weights_t> &weights,
                   hls::stream<weights_t> &below, hls::stream<positions_t> &sums) {
#pragma HLS EXPRESSION_BALANCE off
    SYSTOLIC_PROCESS("pe_row");
    sum_t accumulator[POSITIONS][COLUMNS];
#pragma HLS ARRAY_PARTITION variable = accumulator complete dim = 0
    const bool nibbles = has_nibbles(pass);
    int step = 0;
    SYSTOLIC_ENTER;
    for (int i = 0; i < pass.array_steps; ++i) {
        SYSTOLIC_PIPELINE(1, 16);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        const weights_t weight = weights.read();
        SYSTOLIC_FORWARD(below, weight);
        row_step(activations.read(), weight, nibbles, pass.steps - 1, step, accumulator, sums);
    }
}

// Process of the last row, which passes no weights on.
inline void last_pe_row(pass_t pass, hls::stream<row_activations_t> &activations, hls::stream<weights_t> &weights,
                        hls::stream<positions_t> &sums) {
#pragma HLS EXPRESSION_BALANCE off
    SYSTOLIC_PROCESS("pe_row");
    sum_t accumulator[POSITIONS][COLUMNS];
#pragma HLS ARRAY_PARTITION variable = accumulator complete dim = 0
    const bool nibbles = has_nibbles(pass);
    int step = 0;
    SYSTOLIC_ENTER;
    for (int i = 0; i < pass.array_steps; ++i) {
        SYSTOLIC_PIPELINE(1, 16);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        row_step(activations.read(), weights.read(), nibbles, pass.steps - 1, step, accumulator, sums);
    }
}

#endif  // SYSTOLIC_PE_ARRAY_H
