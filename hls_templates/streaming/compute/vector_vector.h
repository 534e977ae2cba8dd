// Vector-vector unit (VVU) for depthwise convolutions: each channel has its own kernel. Each cycle computes SIMD of the
// TAPS taps of PE channels, for PIXELS positions.
//
// Each cycle reads a word, II 1. A group of PE channels has SF = TAPS / SIMD words, and after the last of them the
// block writes a word of results. Lane pixel · SIMD · PE + tap · PE + channel of an input word has the value of this
// pixel, tap and channel. A default depthwise window (window.h) writes such words with SIMD 1, and a parallel window
// with SIMD = TAPS.
//
//   cycles per frame = POSITIONS · (CHANNELS / PE) · (TAPS / SIMD) / PIXELS
//   cycles per run   = frames · (cycles per frame) + unit_depth(SIMD) + ACTIVATION::LATE
//
// The weight matrix (fold.h) has a row for each channel and a column for each tap. It is an array of constants in the
// unit, because a depthwise layer has few weights.
#ifndef SYSTOLIC_VECTOR_VECTOR_H
#define SYSTOLIC_VECTOR_VECTOR_H

#include <hls_stream.h>

#include "activation.h"
#include "datatype.h"
#include "dot.h"
#include "fold.h"
#include "instrument.h"
#include "progress.h"
#include "word.h"

// One cycle: adds the products of SIMD taps of PE channels to the sums. Writes the results after the last taps.
template <int SIMD, int PE, int PIXELS, int NF, int SF, class WEIGHT, class VALUE, int SUM_BITS, int MULTIPLIER,
          class ACTIVATION>
inline void vector_vector_step(const fold_t<NF, SF> &at, const typename WEIGHT::carrier weight[PE][SIMD],
                               const word<typename VALUE::carrier, PIXELS * SIMD * PE> &values,
                               exact_t<SUM_BITS> sum[PE][PIXELS][1],
                               hls::stream<word<typename ACTIVATION::output_t, PIXELS * PE>> &out,
                               const ACTIVATION &activation) {
#pragma HLS INLINE
    for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
        // Each channel is a dot product of its own weights and values, so that products of different PEs share nothing.
        typename WEIGHT::carrier own[1][SIMD];
        typename VALUE::carrier value[PIXELS * SIMD];
#pragma HLS ARRAY_PARTITION variable = own complete dim = 0
#pragma HLS ARRAY_PARTITION variable = value complete
        for (int s = 0; s < SIMD; ++s) {
#pragma HLS UNROLL
            own[0][s] = weight[pe][s];
            for (int x = 0; x < PIXELS; ++x) {
#pragma HLS UNROLL
                value[x * SIMD + s] = values.lane[(x * SIMD + s) * PE + pe];
            }
        }
        for (int x = 0; x < PIXELS; ++x) {
#pragma HLS UNROLL
            if (at.first()) sum[pe][x][0] = 0;
        }
        multiply_accumulate<WEIGHT, VALUE, MULTIPLIER, 1, SIMD, PIXELS>(own, value, sum[pe]);
    }
    if (at.last()) {
        word<typename ACTIVATION::output_t, PIXELS * PE> result;
        for (int x = 0; x < PIXELS; ++x) {
#pragma HLS UNROLL
            for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
                result.lane[x * PE + pe] = activation(at.nf.value, pe, sum[pe][x][0]);
            }
        }
        out.write(result);
    }
}

template <int POSITIONS, int CHANNELS, int TAPS, int SIMD, int PE, int PIXELS, class WEIGHT, class VALUE, int SUM_BITS,
          int MULTIPLIER, class ACTIVATION, class STORED>
void vector_vector(int frames, hls::stream<word<typename VALUE::carrier, PIXELS * SIMD * PE>> &in,
                   hls::stream<word<typename ACTIVATION::output_t, PIXELS * PE>> &out,
                   const STORED (&weights)[PE][(CHANNELS / PE) * (TAPS / SIMD)][SIMD], const ACTIVATION &activation) {
#pragma HLS INLINE
// Each PE has its own memory, with one word of SIMD weights per tile.
#pragma HLS ARRAY_PARTITION variable = weights complete dim = 1
#pragma HLS ARRAY_RESHAPE variable = weights complete dim = 3
    static_assert(CHANNELS % PE == 0 && TAPS % SIMD == 0, "PE must divide CHANNELS, and SIMD must divide TAPS");
    static_assert(POSITIONS % PIXELS == 0, "PIXELS must divide POSITIONS");
    constexpr int NF = CHANNELS / PE, SF = TAPS / SIMD;
    exact_t<SUM_BITS> sum[PE][PIXELS][1];
#pragma HLS ARRAY_PARTITION variable = sum complete dim = 0
    fold_t<NF, SF> at;
    progress_t<POSITIONS / PIXELS * NF * SF> done;
    constexpr int DEPTH = unit_depth(SIMD) + ACTIVATION::LATE;
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        typename WEIGHT::carrier weight[PE][SIMD];
#pragma HLS ARRAY_PARTITION variable = weight complete dim = 0
        read_weights<PE, SIMD>(weights, at.tile.value, weight);
        vector_vector_step<SIMD, PE, PIXELS, NF, SF, WEIGHT, VALUE, SUM_BITS, MULTIPLIER>(at, weight, in.read(), sum,
                                                                                          out, activation);
        at.step();
        done.next();
    }
}

#endif  // SYSTOLIC_VECTOR_VECTOR_H
