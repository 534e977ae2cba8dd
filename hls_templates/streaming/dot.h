// Σ over SIMD of weight · value, for PE channels × PIXELS pixels at once: the arithmetic of the matrix-vector unit.
#ifndef SYSTOLIC_DOT_H
#define SYSTOLIC_DOT_H

#include "datatype.h"
#include "packing.h"

// sum[x][pe] += Σ_s weight[pe][s] · value[x · SIMD + s].
template <class WEIGHT, class VALUE, int MULTIPLIER, int PE, int SIMD, int PIXELS, class SUM>
inline void multiply_accumulate(const typename WEIGHT::carrier weight[PE][SIMD],
                                const typename VALUE::carrier value[PIXELS * SIMD], SUM sum[PIXELS][PE]) {
#pragma HLS INLINE
    for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
        for (int x = 0; x < PIXELS; ++x) {
#pragma HLS UNROLL
            SUM total = 0;
            for (int s = 0; s < SIMD; ++s) {
#pragma HLS UNROLL
                total += WEIGHT::value(weight[pe][s]) * VALUE::value(value[x * SIMD + s]);
            }
            sum[x][pe] += total;
        }
    }
}

#endif  // SYSTOLIC_DOT_H
