// Vector-vector unit (VVU, depthwise): each channel's own kernel. PE channels and SIMD of the TAPS a cycle.
//
// Words come in the order (group of PE channels, SIMD taps), lane = pixel · SIMD · PE + tap · PE + channel: SIMD 1 behind
// a default depthwise window, SIMD = TAPS behind a parallel one. Nothing is replayed:
//
//   cycles a frame = POSITIONS · (CHANNELS / PE) · (TAPS / SIMD) / PIXELS       (a run: 1 + frames · that − 1 + VVU_DEPTH)
//
// Weights [PE][NF · SF][SIMD]: channel nf · PE + pe, tap sf · SIMD + simd at [pe][nf · SF + sf][simd].
#ifndef SYSTOLIC_VECTOR_VECTOR_H
#define SYSTOLIC_VECTOR_VECTOR_H

#include <hls_stream.h>

#include "activation.h"
#include "datatype.h"
#include "dot.h"
#include "instrument.h"
#include "matrix_vector.h"
#include "word.h"

constexpr int VVU_DEPTH = 12;

template <int POSITIONS, int CHANNELS, int TAPS, int SIMD, int PE, int PIXELS, class WEIGHT, class VALUE, int SUM_BITS,
          int MULTIPLIER, class ACTIVATION>
void vector_vector(int frames, hls::stream<word<typename VALUE::carrier, PIXELS * SIMD * PE>> &in,
                   hls::stream<word<typename ACTIVATION::output_t, PIXELS * PE>> &out,
                   const typename WEIGHT::carrier weights[PE][(CHANNELS / PE) * (TAPS / SIMD)][SIMD],
                   const ACTIVATION &activation) {
#pragma HLS INLINE
#pragma HLS ARRAY_PARTITION variable=weights complete dim=1
#pragma HLS ARRAY_RESHAPE variable=weights complete dim=3
    static_assert(CHANNELS % PE == 0 && TAPS % SIMD == 0, "PE divides the channels, SIMD the taps");
    static_assert(POSITIONS % PIXELS == 0, "PIXELS divides the positions of a frame");
    constexpr int NF = CHANNELS / PE, SF = TAPS / SIMD;
    exact_t<SUM_BITS> sum[PIXELS][PE];
#pragma HLS ARRAY_PARTITION variable=sum complete dim=0
    fold_t<NF, SF> at = {0, 0, 0};
    const int cycles = frames * (POSITIONS / PIXELS) * NF * SF;
    SYSTOLIC_ENTER;
    for (int i = 0; i < cycles; ++i) {
        SYSTOLIC_PIPELINE(1, VVU_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min=1 max=1000000
        const word<typename VALUE::carrier, PIXELS * SIMD * PE> values = in.read();
        for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
            typename WEIGHT::carrier weight[1][SIMD];
            typename VALUE::carrier value[PIXELS * SIMD];
            exact_t<SUM_BITS> own[PIXELS][1];
#pragma HLS ARRAY_PARTITION variable=weight complete dim=0
#pragma HLS ARRAY_PARTITION variable=value complete
#pragma HLS ARRAY_PARTITION variable=own complete dim=0
            for (int s = 0; s < SIMD; ++s) {
#pragma HLS UNROLL
                weight[0][s] = weights[pe][at.tile][s];
            }
            for (int x = 0; x < PIXELS; ++x) {
#pragma HLS UNROLL
                own[x][0] = at.sf == 0 ? exact_t<SUM_BITS>(0) : sum[x][pe];
                for (int s = 0; s < SIMD; ++s) {
#pragma HLS UNROLL
                    value[x * SIMD + s] = values.lane[(x * SIMD + s) * PE + pe];
                }
            }
            multiply_accumulate<WEIGHT, VALUE, MULTIPLIER, 1, SIMD, PIXELS>(weight, value, own);
            for (int x = 0; x < PIXELS; ++x) {
#pragma HLS UNROLL
                sum[x][pe] = own[x][0];
            }
        }
        if (at.sf == SF - 1) {
            word<typename ACTIVATION::output_t, PIXELS * PE> result;
            for (int x = 0; x < PIXELS; ++x) {
#pragma HLS UNROLL
                for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
                    result.lane[x * PE + pe] = activation(at.nf, pe, sum[x][pe]);
                }
            }
            out.write(result);
        }
        at.step();
    }
}

#endif  // SYSTOLIC_VECTOR_VECTOR_H
