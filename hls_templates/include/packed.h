// Two multiply-accumulates in one DSP: (w1 · 2^PACK_SHIFT + w0) · a holds both products. A chain of
// PACK_CHAIN of them is summed before the fields are taken apart; |Σ w0 · a| then still fits the low field
// (8 · 127 · 128 = 130,048 < 2^17 with PACK_SHIFT 18 on a DSP48E2), so the split is exact.
#ifndef SYSTOLIC_PACKED_H
#define SYSTOLIC_PACKED_H

#include "types.h"

#if SYSTOLIC_PACKED
typedef ap_int<PACK_SHIFT + VALUE_BITS> packed_weight_t;   // the DSP's A:D port after the pre-adder
typedef ap_int<PACK_SHIFT> low_field_t;
typedef ap_int<48> chain_t;                                 // the DSP's P register
inline int sign_low(chain_t chain) { return low_field_t(chain); }
#else
typedef int32_t packed_weight_t;
typedef int64_t chain_t;
inline int sign_low(chain_t chain) {
    return static_cast<int>(static_cast<uint32_t>(chain) << (32 - PACK_SHIFT)) >> (32 - PACK_SHIFT);
}
#endif

// sum0 += Σ w0[l] · a[l], sum1 += Σ w1[l] · a[l] over one chain, through packed products only.
inline void packed_chain(const value_t w0[PACK_CHAIN], const value_t w1[PACK_CHAIN], const value_t a[PACK_CHAIN],
                         sum_t &sum0, sum_t &sum1) {
#pragma HLS INLINE
    chain_t chain = 0;
    for (int l = 0; l < PACK_CHAIN; ++l) {
#pragma HLS UNROLL
        const packed_weight_t packed = packed_weight_t(w1[l]) * (1 << PACK_SHIFT) + w0[l];
        chain += chain_t(packed) * a[l];
    }
    const sum_t low = sign_low(chain);
    sum0 += low;
    sum1 += sum_t((chain - low) >> PACK_SHIFT);
}

#endif  // SYSTOLIC_PACKED_H
