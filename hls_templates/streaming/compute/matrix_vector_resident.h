// Matrix-vector unit for weights from DDR. It stores the vectors of a whole frame on chip, so that each weight is read
// once per frame and not once per position.
//
// A frame has three phases, one after the other, each with II 1:
//
//   READ_VECTORS    each cycle reads a word of a vector and stores it
//   MULTIPLY_TILES      each cycle multiplies a tile of weights by its word of the vectors of PIXELS positions. A tile is
//                   used for all positions before the next tile is read. The sums of all positions are stored meanwhile
//   WRITE_RESULTS   each cycle writes a word of results
//
//   cycles per frame  = POSITIONS / PIXELS · (SF + NF · SF + NF)
//   cycles per run    = frames · (cycles per frame) + unit_depth(SIMD) + RESIDENT_DEPTH + ACTIVATION::LATE
//   words of weights  = NF · SF per frame, one every POSITIONS / PIXELS cycles: fetch_weights<1, NF · SF, …>
//   memory            = POSITIONS · (MW values + MH results + PE sums)
//
// The order of the loops is the difference from matrix_vector.h:
//
//   matrix_vector            for position: for fold: for word of the vector     each position reads every tile again
//   matrix_vector_resident   for fold: for word of the vector: for position     each tile is read once
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

constexpr int RESIDENT_DEPTH = 4;  // further stages for the memory accesses before and after the sum

enum resident_t { READ_VECTORS, MULTIPLY_TILES, WRITE_RESULTS };

// RAM is the kind of memory of the vectors, the largest of the memories (ram.h).
template <int POSITIONS, int MW, int MH, int SIMD, int PE, int PIXELS, class WEIGHT, class VALUE, int SUM_BITS,
          int MULTIPLIER, int RAM = RAM_AUTO, class ACTIVATION>
void matrix_vector_resident(int frames, hls::stream<word<typename VALUE::carrier, PIXELS * SIMD>> &in,
                            hls::stream<word<typename WEIGHT::carrier, PE * SIMD>> &weights,
                            hls::stream<word<typename ACTIVATION::output_t, PIXELS * PE>> &out,
                            const ACTIVATION &activation) {
#pragma HLS INLINE
    static_assert(MW % SIMD == 0 && MH % PE == 0, "SIMD must divide MW, and PE must divide MH");
    static_assert(POSITIONS % PIXELS == 0, "PIXELS must divide POSITIONS");
    constexpr int NF = MH / PE, SF = MW / SIMD, GROUPS = POSITIONS / PIXELS;
    typedef word<typename VALUE::carrier, PIXELS * SIMD> values_t;
    typedef word<typename ACTIVATION::output_t, PIXELS * PE> results_t;
    typedef word<exact_t<SUM_BITS>, PIXELS * PE> sums_t;
    // vectors is [group][word of the vector] and results is [group][fold], where a group is PIXELS positions. The
    // phases do not overlap, so that each memory needs one write port and one read port.
    values_t vectors[GROUPS * SF];
#pragma HLS AGGREGATE variable = vectors compact = bit
    bind_memory(vectors, ram_of<RAM>());
    results_t results[GROUPS * NF];
#pragma HLS AGGREGATE variable = results compact = bit
    bind_memory(results, ram_of<RAM_AUTO>());
    lines_t<sums_t, 1> partial_sums[GROUPS];  // the sums of every group over the tiles of this fold so far
#pragma HLS AGGREGATE variable = partial_sums compact = bit
    bind_delay_memory<RAM_AUTO>(partial_sums);
    delay_t<GROUPS> previous;
    word<typename WEIGHT::carrier, PE * SIMD> tile;
    resident_t phase = READ_VECTORS;
    fold_t<NF, SF> at;
    counter_t<GROUPS * SF> input_word;          // the number of the next input word
    counter_t<GROUPS * NF> output_word;         // the number of the next output word
    counter_t<GROUPS> group;                    // the group that the tile meets next
    number<(GROUPS + 1) * SF> vector_word = 0;  // group · SF + sf
    number<(GROUPS + 1) * NF> result_word = 0;  // group · NF + nf
    progress_t<(SF + NF * SF + NF) * GROUPS> done;
    constexpr int DEPTH = unit_depth(SIMD) + RESIDENT_DEPTH + ACTIVATION::LATE;
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
// Vectors and results are written in one phase and read in a later one. A sum is read GROUPS cycles after it was
// written (delay.h).
#pragma HLS DEPENDENCE variable = vectors type = inter false
#pragma HLS DEPENDENCE variable = results type = inter false
#pragma HLS DEPENDENCE variable = partial_sums type = inter false
        if (phase == READ_VECTORS) {
            vectors[input_word.value] = in.read();
            if (input_word.next()) phase = MULTIPLY_TILES;
        } else if (phase == MULTIPLY_TILES) {
            if (group.value == 0) tile = weights.read();
            typename WEIGHT::carrier weight[PE][SIMD];
            exact_t<SUM_BITS> sum[PIXELS][PE];
            sums_t sums[1];
#pragma HLS ARRAY_PARTITION variable = sums complete
#pragma HLS ARRAY_PARTITION variable = weight complete dim = 0
#pragma HLS ARRAY_PARTITION variable = sum complete dim = 0
            previous.peek(partial_sums, sums);
            unpack_weights<PE, SIMD>(tile, weight);
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
            previous.push(partial_sums, sums);
            if (at.last()) results[result_word] = result;
            vector_word += SF;
            result_word += NF;
            if (group.next()) {
                if (at.tile.last) phase = WRITE_RESULTS;
                at.step();
                vector_word = at.sf.value;
                result_word = at.nf.value;
            }
        } else {
            out.write(results[output_word.value]);
            if (output_word.next()) phase = READ_VECTORS;
        }
        done.next();
    }
}

#endif  // SYSTOLIC_MATRIX_VECTOR_RESIDENT_H
