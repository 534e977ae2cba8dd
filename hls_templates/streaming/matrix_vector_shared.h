// Matrix-vector unit whose PEs share activations: a fold takes SF cycles, so that its PE · PIXELS sums need not become
// values in one of them. LANES = shared_lanes<PE, PIXELS, SF>() activations work on the sums of the last fold while the
// next is summed; at the end of a frame they finish, so that no value of a frame waits for the next frame.
//
//   cycles a frame = POSITIONS · NF · SF / PIXELS + PE · PIXELS / LANES    (a run: 1 + frames · that − 1 + SHARED_DEPTH)
//
// ACTIVATION is of LANES PEs and MH / LANES folds: lane l of fold n is channel n · LANES + l.
#ifndef SYSTOLIC_MATRIX_VECTOR_SHARED_H
#define SYSTOLIC_MATRIX_VECTOR_SHARED_H

#include <hls_stream.h>

#include "activation.h"
#include "datatype.h"
#include "dot.h"
#include "instrument.h"
#include "matrix_vector.h"
#include "progress.h"
#include "word.h"

constexpr int SHARED_DEPTH = 13;

// The fewest activations, a divisor of PE, that finish a fold before the next one is summed.
template <int PE, int PIXELS, int SF>
constexpr int shared_lanes() {
    int lanes = PE;
    for (int fewer = PE; fewer >= 1; --fewer) {
        if (PE % fewer == 0 && PE * PIXELS / fewer <= SF) lanes = fewer;
    }
    return lanes;
}

// The sums of a fold on their way through the activations: LANES of them a cycle, lane 0 first.
template <int PE, int PIXELS, int LANES, int NF, int SUM_BITS, class ACTIVATION>
struct waiting_t {
    static constexpr int ALL = PE * PIXELS, STEPS = ALL / LANES, PARTS = PE / LANES;
    exact_t<SUM_BITS> sum[ALL];
    word<typename ACTIVATION::output_t, ALL> result;
    int left, nf, part;  // cycles that it still takes; the fold; which LANES of its PE channels

    void take(const exact_t<SUM_BITS> from[PIXELS][PE], int fold) {
#pragma HLS INLINE
        for (int x = 0; x < PIXELS; ++x) {
#pragma HLS UNROLL
            for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
                sum[x * PE + pe] = from[x][pe];
            }
        }
        left = STEPS;
        nf = fold;
        part = 0;
    }

    void step(hls::stream<word<typename ACTIVATION::output_t, ALL>> &out, const ACTIVATION &activation) {
#pragma HLS INLINE
        if (left == 0) return;
        // Both shift: no multiplexer chooses a sum or a place.
        for (int l = 0; l < ALL - LANES; ++l) {
#pragma HLS UNROLL
            result.lane[l] = result.lane[l + LANES];
        }
        for (int l = 0; l < LANES; ++l) {
#pragma HLS UNROLL
            result.lane[ALL - LANES + l] = activation(nf * PARTS + part, l, sum[l]);
        }
        for (int l = 0; l < ALL - LANES; ++l) {
#pragma HLS UNROLL
            sum[l] = sum[l + LANES];
        }
        part = part == PARTS - 1 ? 0 : part + 1;
        if (--left == 0) out.write(result);
    }
};

template <int POSITIONS, int MW, int MH, int SIMD, int PE, int PIXELS, class WEIGHT, class VALUE, int SUM_BITS,
          int MULTIPLIER, class ACTIVATION, class STORED>
void matrix_vector_shared(int frames, hls::stream<word<typename VALUE::carrier, PIXELS * SIMD>> &in,
                          hls::stream<word<typename ACTIVATION::output_t, PIXELS * PE>> &out,
                          const STORED weights[PE][(MH / PE) * (MW / SIMD)][SIMD], const ACTIVATION &activation) {
#pragma HLS INLINE
#pragma HLS ARRAY_PARTITION variable=weights complete dim=1
#pragma HLS ARRAY_RESHAPE variable=weights complete dim=3
    static_assert(MW % SIMD == 0 && MH % PE == 0, "SIMD divides the columns, PE the rows");
    static_assert(POSITIONS % PIXELS == 0, "PIXELS divides the positions of a frame");
    constexpr int NF = MH / PE, SF = MW / SIMD, LANES = shared_lanes<PE, PIXELS, SF>();
    static_assert(PE * PIXELS / LANES <= SF, "a fold is too short to share activations: take matrix_vector");
    constexpr int SUMMED = POSITIONS / PIXELS * NF * SF;
    word<typename VALUE::carrier, PIXELS * SIMD> vector[SF], values;
#pragma HLS AGGREGATE variable=vector
    exact_t<SUM_BITS> sum[PIXELS][PE];
#pragma HLS ARRAY_PARTITION variable=sum complete dim=0
    waiting_t<PE, PIXELS, LANES, NF, SUM_BITS, ACTIVATION> waiting;
#pragma HLS ARRAY_PARTITION variable=waiting.sum complete
    waiting.left = waiting.nf = waiting.part = 0;
    fold_t<NF, SF> at = {0, 0, 0};
    progress_t<SUMMED + PE * PIXELS / LANES> done = {0, 0};
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, SHARED_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min=1 max=1000000
        waiting.step(out, activation);
        if (done.step < SUMMED) {
            if (at.nf == 0) {
                values = in.read();
                vector[at.sf] = values;
            } else {
                values = vector[at.sf];
            }
            typename WEIGHT::carrier weight[PE][SIMD];
#pragma HLS ARRAY_PARTITION variable=weight complete dim=0
            take_tile(weights, at.tile, weight);
            for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
                for (int x = 0; x < PIXELS; ++x) {
#pragma HLS UNROLL
                    if (at.sf == 0) sum[x][pe] = 0;
                }
            }
            multiply_accumulate<WEIGHT, VALUE, MULTIPLIER, PE, SIMD, PIXELS>(weight, values.lane, sum);
            if (at.sf == SF - 1) waiting.take(sum, at.nf);
            at.step();
        }
        done.next();
    }
}

#endif  // SYSTOLIC_MATRIX_VECTOR_SHARED_H
