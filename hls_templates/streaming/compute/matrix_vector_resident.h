// Matrix-vector unit for weights from DDR: the vectors of a whole frame stay on chip, so that each weight is read once
// a frame and not once a position. A frame has three phases, one after the other, all with II 1:
//
//   VECTORS_COME    a word of a vector is read and kept, each cycle
//   TILES_MEET      a tile of weights is read, then multiplied with its word of every vector, PIXELS positions a cycle;
//                   the sums of all positions wait meanwhile
//   RESULTS_LEAVE   a word of results is written, each cycle
//
//   cycles a frame = POSITIONS / PIXELS · (SF + NF · SF + NF)      (a run: 1 + frames · that − 1 + unit_depth(SIMD) + RESIDENT_DEPTH)
//   weights        = NF · SF words a frame, one each POSITIONS / PIXELS cycles: fetch_weights<1, NF · SF, …>
//   memory         = POSITIONS · (MW values + MH results + PE sums)
//
// The order of the loops is what differs from matrix_vector.h:
//
//   there   for position: for fold: for word of the vector     each position reads every tile again
//   here    for fold: for word of the vector: for position     each tile is read once
#ifndef SYSTOLIC_MATRIX_VECTOR_RESIDENT_H
#define SYSTOLIC_MATRIX_VECTOR_RESIDENT_H

#include <hls_stream.h>

#include "activation.h"
#include "datatype.h"
#include "delay.h"
#include "dot.h"
#include "fold.h"
#include "instrument.h"
#include "progress.h"
#include "ram.h"
#include "word.h"

constexpr int RESIDENT_DEPTH = 4;  // the memories on both sides of the sum

enum resident_t { VECTORS_COME, TILES_MEET, RESULTS_LEAVE };

// RAM: what keeps the vectors, the largest of the memories.
template <int POSITIONS, int MW, int MH, int SIMD, int PE, int PIXELS, class WEIGHT, class VALUE, int SUM_BITS,
          int MULTIPLIER, int RAM = RAM_AUTO, class ACTIVATION>
void matrix_vector_resident(int frames, hls::stream<word<typename VALUE::carrier, PIXELS * SIMD>> &in,
                            hls::stream<word<typename WEIGHT::carrier, PE * SIMD>> &weights,
                            hls::stream<word<typename ACTIVATION::output_t, PIXELS * PE>> &out,
                            const ACTIVATION &activation) {
#pragma HLS INLINE
    static_assert(MW % SIMD == 0 && MH % PE == 0, "SIMD divides the columns, PE the rows");
    static_assert(POSITIONS % PIXELS == 0, "PIXELS divides the positions of a frame");
    constexpr int NF = MH / PE, SF = MW / SIMD, GROUPS = POSITIONS / PIXELS;
    typedef word<typename VALUE::carrier, PIXELS * SIMD> values_t;
    typedef word<typename ACTIVATION::output_t, PIXELS * PE> results_t;
    typedef word<exact_t<SUM_BITS>, PIXELS * PE> sums_t;
    // vectors: [group][word of the vector]. results: [group][fold]. Phases do not overlap: one port writes, one reads.
    values_t vectors[GROUPS * SF];
#pragma HLS AGGREGATE variable = vectors compact = bit
    keep_in(vectors, ram_of<RAM>());
    results_t results[GROUPS * NF];
#pragma HLS AGGREGATE variable = results compact = bit
    keep_in(results, ram_of<RAM_AUTO>());
    lines_t<sums_t, 1> waiting[GROUPS];  // the sums of every group, as the tile before left them
#pragma HLS AGGREGATE variable = waiting compact = bit
    keep_delay<RAM_AUTO>(waiting);
    delay_t<GROUPS> previous;
    word<typename WEIGHT::carrier, PE * SIMD> tile;
    resident_t phase = VECTORS_COME;
    fold_t<NF, SF> at;
    counter_t<GROUPS * SF> coming;   // the word of a vector that comes next
    counter_t<GROUPS * NF> leaving;  // the word of results that leaves next
    counter_t<GROUPS> group;
    number<(GROUPS + 1) * SF> vector_word = 0;  // group · SF + sf
    number<(GROUPS + 1) * NF> result_word = 0;  // group · NF + nf
    progress_t<(SF + NF * SF + NF) * GROUPS> done;
    constexpr int DEPTH = unit_depth(SIMD) + RESIDENT_DEPTH + ACTIVATION::LATE;
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
#pragma HLS DEPENDENCE variable = vectors type = inter false
#pragma HLS DEPENDENCE variable = results type = inter false
#pragma HLS DEPENDENCE variable = waiting type = inter false
        if (phase == VECTORS_COME) {
            vectors[coming.value] = in.read();
            if (coming.next()) phase = TILES_MEET;
        } else if (phase == TILES_MEET) {
            if (group.value == 0) tile = weights.read();
            typename WEIGHT::carrier weight[PE][SIMD];
            exact_t<SUM_BITS> sum[PIXELS][PE];
            sums_t sums[1];
#pragma HLS ARRAY_PARTITION variable = sums complete
#pragma HLS ARRAY_PARTITION variable = weight complete dim = 0
#pragma HLS ARRAY_PARTITION variable = sum complete dim = 0
            previous.peek(waiting, sums);
            spread_weights<PE, SIMD>(tile, weight);
            for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
                for (int x = 0; x < PIXELS; ++x) {
#pragma HLS UNROLL
                    sum[x][pe] = at.first() ? exact_t<SUM_BITS>(0) : sums[0].lane[x * PE + pe];
                }
            }
            const values_t values = vectors[vector_word];
            multiply_accumulate<WEIGHT, VALUE, MULTIPLIER, PE, SIMD, PIXELS>(weight, values.lane, sum);
            results_t result;
            for (int x = 0; x < PIXELS; ++x) {
#pragma HLS UNROLL
                for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
                    sums[0].lane[x * PE + pe] = sum[x][pe];
                    if (at.last()) result.lane[x * PE + pe] = activation(at.nf.value, pe, sum[x][pe]);
                }
            }
            previous.push(waiting, sums);
            if (at.last()) results[result_word] = result;
            vector_word += SF;
            result_word += NF;
            if (group.next()) {
                if (at.tile.last) phase = RESULTS_LEAVE;
                at.step();
                vector_word = at.sf.value;
                result_word = at.nf.value;
            }
        } else {
            out.write(results[leaving.value]);
            if (leaving.next()) phase = VECTORS_COME;
        }
        done.next();
    }
}

#endif  // SYSTOLIC_MATRIX_VECTOR_RESIDENT_H
