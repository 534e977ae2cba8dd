// Matrix-vector unit (MVU): for each position, MH dot products of weights and the MW values of the position's vector.
// Each cycle computes with PE rows and SIMD columns of the weight matrix.
//
// A position's vector arrives in SF = MW / SIMD words, and its results are written in NF = MH / PE words. Fold 0 reads
// a word of the vector per cycle, uses it at once and stores it. Folds 1 … NF − 1 read the stored words. Every SF-th
// cycle writes a word of results. The II is 1, and no cycle is lost between folds, positions or frames:
//
//   cycles per frame = POSITIONS · NF · SF / PIXELS
//   cycles per run   = frames · (cycles per frame) + unit_depth(SIMD) + ACTIVATION::LATE
//
// PIXELS positions are processed together and share each weight. A word then has the lanes of PIXELS pixels, one pixel
// after the other. fold.h describes the order of the weights.
//
//   matrix_vector            embedded weights: an array of constants in the unit
//   matrix_vector_streamed   weights from a streamer (weights.h): NF · SF words for every PIXELS positions
//
// SUM_BITS signed bits hold every sum. MULTIPLIER selects DSPs or logic (packing.h).
#ifndef SYSTOLIC_MATRIX_VECTOR_H
#define SYSTOLIC_MATRIX_VECTOR_H

#include <hls_stream.h>

#include "activation.h"
#include "datatype.h"
#include "dot.h"
#include "fold.h"
#include "instrument.h"
#include "progress.h"
#include "word.h"

// One cycle: gets word ``at.sf.value`` of the vector from the stream or from memory, and adds its products with the
// tile ``weight`` to the sums. Writes the results if this is the last word of a fold.
template <int SIMD, int PE, int PIXELS, int NF, int SF, class WEIGHT, class VALUE, int SUM_BITS, int MULTIPLIER,
          class ACTIVATION>
inline void matrix_vector_step(const fold_t<NF, SF> &at, const typename WEIGHT::carrier weight[PE][SIMD],
                               hls::stream<word<typename VALUE::carrier, PIXELS * SIMD>> &in,
                               word<typename VALUE::carrier, PIXELS * SIMD> vector[SF],
                               exact_t<SUM_BITS> sum[PIXELS][PE],
                               hls::stream<word<typename ACTIVATION::output_t, PIXELS * PE>> &out,
                               const ACTIVATION &activation) {
#pragma HLS INLINE
    // A word that arrives is used directly, so that no read of the memory depends on a write of the same cycle.
    word<typename VALUE::carrier, PIXELS * SIMD> values;
    if (at.nf.value == 0) {
        values = in.read();
        vector[at.sf.value] = values;
    } else {
        values = vector[at.sf.value];
    }
    for (int x = 0; x < PIXELS; ++x) {
#pragma HLS UNROLL
        for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
            if (at.first()) sum[x][pe] = 0;
        }
    }
    multiply_accumulate<WEIGHT, VALUE, MULTIPLIER, PE, SIMD, PIXELS>(weight, values.lane, sum);
    if (at.last()) {
        word<typename ACTIVATION::output_t, PIXELS * PE> result;
        for (int x = 0; x < PIXELS; ++x) {
#pragma HLS UNROLL
            for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
                result.lane[x * PE + pe] = activation(at.nf.value, pe, sum[x][pe]);
            }
        }
        out.write(result);
    }
}

// The unit for any SOURCE of weights for which read_weights (fold.h) has an overload.
template <int POSITIONS, int MW, int MH, int SIMD, int PE, int PIXELS, class WEIGHT, class VALUE, int SUM_BITS,
          int MULTIPLIER, class SOURCE, class ACTIVATION>
void matrix_vector_unit(int frames, hls::stream<word<typename VALUE::carrier, PIXELS * SIMD>> &in, SOURCE &source,
                        hls::stream<word<typename ACTIVATION::output_t, PIXELS * PE>> &out,
                        const ACTIVATION &activation) {
#pragma HLS INLINE
    static_assert(MW % SIMD == 0 && MH % PE == 0, "SIMD must divide MW, and PE must divide MH");
    static_assert(POSITIONS % PIXELS == 0, "PIXELS must divide POSITIONS");
    constexpr int NF = MH / PE, SF = MW / SIMD;
    word<typename VALUE::carrier, PIXELS * SIMD> vector[SF];  // the vector, for folds 1 … NF − 1
// One memory word holds all lanes, because a cycle reads or writes a whole word.
#pragma HLS AGGREGATE variable = vector compact = bit
    exact_t<SUM_BITS> sum[PIXELS][PE];  // in registers, because every cycle updates all sums
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
        read_weights<PE, SIMD>(source, at.tile.value, weight);
        matrix_vector_step<SIMD, PE, PIXELS, NF, SF, WEIGHT, VALUE, SUM_BITS, MULTIPLIER>(at, weight, in, vector, sum,
                                                                                          out, activation);
        at.step();
        done.next();
    }
}

template <int POSITIONS, int MW, int MH, int SIMD, int PE, int PIXELS, class WEIGHT, class VALUE, int SUM_BITS,
          int MULTIPLIER, class ACTIVATION, class STORED>
void matrix_vector(int frames, hls::stream<word<typename VALUE::carrier, PIXELS * SIMD>> &in,
                   hls::stream<word<typename ACTIVATION::output_t, PIXELS * PE>> &out,
                   const STORED (&weights)[PE][(MH / PE) * (MW / SIMD)][SIMD], const ACTIVATION &activation) {
#pragma HLS INLINE
// Each PE has its own memory, with one word of SIMD weights per tile.
#pragma HLS ARRAY_PARTITION variable = weights complete dim = 1
#pragma HLS ARRAY_RESHAPE variable = weights complete dim = 3
    matrix_vector_unit<POSITIONS, MW, MH, SIMD, PE, PIXELS, WEIGHT, VALUE, SUM_BITS, MULTIPLIER>(frames, in, weights,
                                                                                                 out, activation);
}

template <int POSITIONS, int MW, int MH, int SIMD, int PE, int PIXELS, class WEIGHT, class VALUE, int SUM_BITS,
          int MULTIPLIER, class ACTIVATION>
void matrix_vector_streamed(int frames, hls::stream<word<typename VALUE::carrier, PIXELS * SIMD>> &in,
                            hls::stream<word<typename WEIGHT::carrier, PE * SIMD>> &weights,
                            hls::stream<word<typename ACTIVATION::output_t, PIXELS * PE>> &out,
                            const ACTIVATION &activation) {
#pragma HLS INLINE
    matrix_vector_unit<POSITIONS, MW, MH, SIMD, PE, PIXELS, WEIGHT, VALUE, SUM_BITS, MULTIPLIER>(frames, in, weights,
                                                                                                 out, activation);
}

#endif  // SYSTOLIC_MATRIX_VECTOR_H
