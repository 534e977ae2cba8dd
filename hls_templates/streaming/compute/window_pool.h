// A pool behind a depthwise window (window.h): OPERATION over the TAPS of each channel, then the activation. max_op and
// min_op pool the maximum and the minimum; add_op with an activation that divides by TAPS, the average.
//
// Every cycle takes a word: PE channels, SIMD of their TAPS, lane = pixel · SIMD · PE + tap · PE + channel. II is 1.
// Padding zeros of the window take part. A maximum of signed values with padding is the block of max_pool.h.
//
//   cycles a frame = POSITIONS · (CHANNELS / PE) · (TAPS / SIMD) / PIXELS   (a run: 1 + frames · that − 1 + POOL_DEPTH)
#ifndef SYSTOLIC_WINDOW_POOL_H
#define SYSTOLIC_WINDOW_POOL_H

#include <hls_stream.h>

#include "activation.h"
#include "datatype.h"
#include "fold.h"
#include "instrument.h"
#include "operation.h"
#include "progress.h"
#include "word.h"

constexpr int POOL_DEPTH = 24;

template <int POSITIONS, int CHANNELS, int TAPS, int SIMD, int PE, int PIXELS, class VALUE, int SUM_BITS,
          class OPERATION, class ACTIVATION>
void window_pool(int frames, hls::stream<word<typename VALUE::carrier, PIXELS * SIMD * PE>> &in,
                 hls::stream<word<typename ACTIVATION::output_t, PIXELS * PE>> &out, const ACTIVATION &activation) {
#pragma HLS INLINE
    static_assert(CHANNELS % PE == 0 && TAPS % SIMD == 0, "PE divides the channels, SIMD the taps");
    static_assert(POSITIONS % PIXELS == 0, "PIXELS divides the positions of a frame");
    static_assert(OPERATION::POOLS, "a pool takes add_op, max_op or min_op: its taps come in groups, a cycle each");
    constexpr int NF = CHANNELS / PE, SF = TAPS / SIMD;
    exact_t<SUM_BITS> pooled[PIXELS * PE];  // of the taps so far
#pragma HLS ARRAY_PARTITION variable = pooled complete
    fold_t<NF, SF> at;
    progress_t<POSITIONS / PIXELS * NF * SF> done;
    constexpr int DEPTH = POOL_DEPTH + ACTIVATION::LATE;
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        const word<typename VALUE::carrier, PIXELS * SIMD * PE> values = in.read();
        for (int x = 0; x < PIXELS; ++x) {
#pragma HLS UNROLL
            for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
                exact_t<SUM_BITS> total = VALUE::value(values.lane[x * SIMD * PE + pe]);
                for (int s = 1; s < SIMD; ++s) {
#pragma HLS UNROLL
                    const exact_t<SUM_BITS> next = VALUE::value(values.lane[(x * SIMD + s) * PE + pe]);
                    total = OPERATION::of(total, next);
                }
                exact_t<SUM_BITS> &channel = pooled[x * PE + pe];
                channel = at.first() ? total : OPERATION::of(channel, total);
            }
        }
        if (at.last()) {
            word<typename ACTIVATION::output_t, PIXELS * PE> result;
            for (int x = 0; x < PIXELS; ++x) {
#pragma HLS UNROLL
                for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
                    result.lane[x * PE + pe] = activation(at.nf.value, pe, pooled[x * PE + pe]);
                }
            }
            out.write(result);
        }
        at.step();
        done.next();
    }
}

#endif  // SYSTOLIC_WINDOW_POOL_H
