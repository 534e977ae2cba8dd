// Several multiply-accumulates per DSP. One multiplication computes the products of PACK_COLUMNS weights (of
// neighbouring columns) and POSITIONS activations (of neighbouring positions of a row). Weight c is shifted left by c ·
// POSITIONS · PACK_SHIFT bits and activation r by r · PACK_SHIFT bits, so that each product has its own field of
// PACK_SHIFT bits:
//
//   8 bits, two products     (w1 · 2^18 + w0) · a                 = w1·a · 2^18 + w0·a
//   4 bits, four products    (w1 · 2^22 + w0) · (a1 · 2^11 + a0)  = w1·a1 · 2^33 + w1·a0 · 2^22 + w0·a1 · 2^11 + w0·a0
//
// A chain of PACK_CHAIN such multiplications is summed in the DSPs' 48 bits before the fields are separated. The sum of
// every field still fits into its signed field (8 · 127 · 128 < 2^17, 16 · 7 · 8 < 2^10), so that the separation is
// exact. The wide port of a DSP48E1 has only 25 bits: there, fields have 17 and 10 bits, and chains are half as long.
// At 16 bits, a DSP computes one product.
#ifndef SYSTOLIC_PACKED_H
#define SYSTOLIC_PACKED_H

#include "types.h"

// Fields of a packed product, and the distance of two weights in bits.
static const int FIELDS = PACK_COLUMNS * POSITIONS;
static const int WEIGHT_SHIFT = POSITIONS * PACK_SHIFT;

#if SYSTOLIC_PACKED
typedef ap_int<(PACK_COLUMNS - 1) * WEIGHT_SHIFT + VALUE_BITS> packed_weight_t;  // the DSP's wide port
// The DSP's B port. It needs one bit more than the fields, because activations are not narrow: −8 · 2^11 − 8 < −2^14.
typedef ap_int<(POSITIONS - 1) * (PACK_SHIFT + 1) + VALUE_BITS> packed_value_t;
typedef ap_int<PACK_SHIFT> field_t;
typedef ap_int<48> chain_t;  // the DSP's P register
// Return the lowest field of a chain, sign extended.
inline int low_field(chain_t chain) { return field_t(chain); }
#else
typedef int32_t packed_weight_t;
typedef int32_t packed_value_t;
typedef int64_t chain_t;
inline int low_field(chain_t chain) {
    return static_cast<int>(static_cast<uint32_t>(chain) << (32 - PACK_SHIFT)) >> (32 - PACK_SHIFT);
}
#endif

// Compute part[r][c] = Σ w[c][l] · a[r][l] over one chain, by packed products only.
inline void packed_chain(const value_t w[PACK_COLUMNS][PACK_CHAIN], const value_t a[POSITIONS][PACK_CHAIN],
                         sum_t part[POSITIONS][PACK_COLUMNS]) {
#pragma HLS INLINE
    chain_t chain = 0;
    for (int l = 0; l < PACK_CHAIN; ++l) {
#pragma HLS UNROLL
        packed_weight_t weight = w[0][l];
        for (int c = 1; c < PACK_COLUMNS; ++c) {
#pragma HLS UNROLL
            weight += packed_weight_t(w[c][l]) * (1 << (c * WEIGHT_SHIFT));
        }
        packed_value_t value = a[0][l];
        for (int r = 1; r < POSITIONS; ++r) {
#pragma HLS UNROLL
            value += packed_value_t(a[r][l]) * (1 << (r * PACK_SHIFT));
        }
        chain += chain_t(weight) * value;
    }
    for (int f = 0; f < FIELDS - 1; ++f) {
#pragma HLS UNROLL
        const sum_t low = low_field(chain);
        part[f % POSITIONS][f / POSITIONS] = low;
        // A negative field has borrowed 1 from the field above. Subtracting it before the shift returns that 1.
        chain = (chain - low) >> PACK_SHIFT;
    }
    part[POSITIONS - 1][PACK_COLUMNS - 1] = sum_t(chain);
}

#endif  // SYSTOLIC_PACKED_H
