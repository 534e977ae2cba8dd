// Matrix-vector unit (MVU): MH sums over the MW values of each position, PE of them and SIMD values a cycle.
//
// A position's vector comes as SF = MW / SIMD words and leaves as NF = MH / PE words. Fold 0 computes with the words as
// they arrive and keeps them for the other folds, so that there is no bubble between folds, positions or frames:
//
//   cycles a frame = POSITIONS · NF · SF / PIXELS         (a run of `frames`: 1 + frames · that − 1 + MVU_DEPTH)
//
// PIXELS positions go together through one pass over the weights: a word is PIXELS times as wide, pixel by pixel.
// Weights [PE][NF · SF][SIMD]: row nf · PE + pe, column sf · SIMD + simd at [pe][nf · SF + sf][simd].
#ifndef SYSTOLIC_MATRIX_VECTOR_H
#define SYSTOLIC_MATRIX_VECTOR_H

#include <hls_stream.h>

#include "activation.h"
#include "datatype.h"
#include "dot.h"
#include "instrument.h"
#include "progress.h"
#include "word.h"

constexpr int MVU_DEPTH = 12;  // declared: read, products, sum, requantise; the vendor's report has the last word

// Where a unit stands: word sf of fold nf, which takes tile nf · SF + sf of the weights.
template <int NF, int SF>
struct fold_t {
    int nf, sf, tile;

    void step() {
#pragma HLS INLINE
        tile = tile == NF * SF - 1 ? 0 : tile + 1;
        if (++sf == SF) {
            sf = 0;
            nf = nf == NF - 1 ? 0 : nf + 1;
        }
    }
};

// The weights of one cycle, from where they are kept: a tile of constants, or a streamer's word.
template <int PE, int SIMD, int TILES, class CARRIER, class STORED>
inline void take_tile(const STORED weights[PE][TILES][SIMD], int tile, CARRIER (&weight)[PE][SIMD]) {
#pragma HLS INLINE
    for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
        for (int s = 0; s < SIMD; ++s) {
#pragma HLS UNROLL
            weight[pe][s] = weights[pe][tile][s];
        }
    }
}
template <int PE, int SIMD, class CARRIER>
inline void take_tile(const word<CARRIER, PE * SIMD> &tile, CARRIER (&weight)[PE][SIMD]) {
#pragma HLS INLINE
    for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
        for (int s = 0; s < SIMD; ++s) {
#pragma HLS UNROLL
            weight[pe][s] = tile.lane[pe * SIMD + s];
        }
    }
}

// One cycle of the unit: word `sf` of the vector, `weight` of the tile; writes where a fold is done.
template <int SIMD, int PE, int PIXELS, int NF, int SF, class WEIGHT, class VALUE, int SUM_BITS, int MULTIPLIER,
          class ACTIVATION>
inline void matrix_vector_step(const fold_t<NF, SF> &at, const typename WEIGHT::carrier weight[PE][SIMD],
                               hls::stream<word<typename VALUE::carrier, PIXELS * SIMD>> &in,
                               word<typename VALUE::carrier, PIXELS * SIMD> vector[SF],
                               exact_t<SUM_BITS> sum[PIXELS][PE],
                               hls::stream<word<typename ACTIVATION::output_t, PIXELS * PE>> &out,
                               const ACTIVATION &activation) {
#pragma HLS INLINE
    // What arrives is used at once: no read of the buffer waits for a write of the same cycle.
    word<typename VALUE::carrier, PIXELS * SIMD> values;
    if (at.nf == 0) {
        values = in.read();
        vector[at.sf] = values;
    } else {
        values = vector[at.sf];
    }
    for (int x = 0; x < PIXELS; ++x) {
#pragma HLS UNROLL
        for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
            if (at.sf == 0) sum[x][pe] = 0;
        }
    }
    multiply_accumulate<WEIGHT, VALUE, MULTIPLIER, PE, SIMD, PIXELS>(weight, values.lane, sum);
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
}

// Weights embedded: constants beside the unit.
template <int POSITIONS, int MW, int MH, int SIMD, int PE, int PIXELS, class WEIGHT, class VALUE, int SUM_BITS,
          int MULTIPLIER, class ACTIVATION, class STORED>
void matrix_vector(int frames, hls::stream<word<typename VALUE::carrier, PIXELS * SIMD>> &in,
                   hls::stream<word<typename ACTIVATION::output_t, PIXELS * PE>> &out,
                   const STORED weights[PE][(MH / PE) * (MW / SIMD)][SIMD], const ACTIVATION &activation) {
#pragma HLS INLINE
#pragma HLS ARRAY_PARTITION variable = weights complete dim = 1
#pragma HLS ARRAY_RESHAPE variable = weights complete dim = 3
    static_assert(MW % SIMD == 0 && MH % PE == 0, "SIMD divides the columns, PE the rows");
    static_assert(POSITIONS % PIXELS == 0, "PIXELS divides the positions of a frame");
    constexpr int NF = MH / PE, SF = MW / SIMD;
    word<typename VALUE::carrier, PIXELS * SIMD> vector[SF];
#pragma HLS AGGREGATE variable = vector
    exact_t<SUM_BITS> sum[PIXELS][PE];
#pragma HLS ARRAY_PARTITION variable = sum complete dim = 0
    fold_t<NF, SF> at = {0, 0, 0};
    progress_t<POSITIONS / PIXELS * NF * SF> done = {0, 0};
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, MVU_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        typename WEIGHT::carrier weight[PE][SIMD];
#pragma HLS ARRAY_PARTITION variable = weight complete dim = 0
        take_tile(weights, at.tile, weight);
        matrix_vector_step<SIMD, PE, PIXELS, NF, SF, WEIGHT, VALUE, SUM_BITS, MULTIPLIER>(at, weight, in, vector, sum,
                                                                                          out, activation);
        at.step();
        done.next();
    }
}

// Weights from a streamer (weights.h): one word [PE][SIMD] a cycle, NF · SF of them for each PIXELS positions.
template <int POSITIONS, int MW, int MH, int SIMD, int PE, int PIXELS, class WEIGHT, class VALUE, int SUM_BITS,
          int MULTIPLIER, class ACTIVATION>
void matrix_vector_streamed(int frames, hls::stream<word<typename VALUE::carrier, PIXELS * SIMD>> &in,
                            hls::stream<word<typename WEIGHT::carrier, PE * SIMD>> &weights,
                            hls::stream<word<typename ACTIVATION::output_t, PIXELS * PE>> &out,
                            const ACTIVATION &activation) {
#pragma HLS INLINE
    static_assert(MW % SIMD == 0 && MH % PE == 0, "SIMD divides the columns, PE the rows");
    static_assert(POSITIONS % PIXELS == 0, "PIXELS divides the positions of a frame");
    constexpr int NF = MH / PE, SF = MW / SIMD;
    word<typename VALUE::carrier, PIXELS * SIMD> vector[SF];
#pragma HLS AGGREGATE variable = vector
    exact_t<SUM_BITS> sum[PIXELS][PE];
#pragma HLS ARRAY_PARTITION variable = sum complete dim = 0
    fold_t<NF, SF> at = {0, 0, 0};
    progress_t<POSITIONS / PIXELS * NF * SF> done = {0, 0};
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, MVU_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        typename WEIGHT::carrier weight[PE][SIMD];
#pragma HLS ARRAY_PARTITION variable = weight complete dim = 0
        take_tile(weights.read(), weight);
        matrix_vector_step<SIMD, PE, PIXELS, NF, SF, WEIGHT, VALUE, SUM_BITS, MULTIPLIER>(at, weight, in, vector, sum,
                                                                                          out, activation);
        at.step();
        done.next();
    }
}

#endif  // SYSTOLIC_MATRIX_VECTOR_H
