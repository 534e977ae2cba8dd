// Global pool: for each channel the sum over the whole map, then the activation; a requantised sum is the average.
//
// Each cycle takes a word, PE channels of PIXELS pixels, and adds it to the sums of its channels (II 1). With the last
// pixels of a frame the results leave, PE channels a word.
//
//   cycles a frame = POSITIONS · (CHANNELS / PE) / PIXELS       (a run: 1 + frames · that − 1 + GLOBAL_POOL_DEPTH)
#ifndef SYSTOLIC_GLOBAL_POOL_H
#define SYSTOLIC_GLOBAL_POOL_H

#include <hls_stream.h>

#include "activation.h"
#include "datatype.h"
#include "delay.h"
#include "instrument.h"
#include "progress.h"
#include "ram.h"
#include "word.h"

constexpr int GLOBAL_POOL_DEPTH = 12;

template <int POSITIONS, int CHANNELS, int PE, int PIXELS, class VALUE, int SUM_BITS, int RAM = RAM_AUTO,
          class ACTIVATION>
void global_pool(int frames, hls::stream<word<typename VALUE::carrier, PIXELS * PE>> &in,
                 hls::stream<word<typename ACTIVATION::output_t, PE>> &out, const ACTIVATION &activation) {
#pragma HLS INLINE
    static_assert(CHANNELS % PE == 0, "PE divides the channels");
    static_assert(POSITIONS % PIXELS == 0, "PIXELS divides the positions of a frame");
    constexpr int NF = CHANNELS / PE, STEPS = POSITIONS / PIXELS;
    typedef word<exact_t<SUM_BITS>, PE> sums_t;
    lines_t<sums_t, 1> waiting[NF];  // the sums of every group of channels, as the pixels before left them
#pragma HLS AGGREGATE variable = waiting compact = bit
    keep_delay<RAM>(waiting);
    delay_t<NF> previous;
    counter_t<NF> nf;
    counter_t<STEPS> step;
    progress_t<STEPS * NF> done;
    constexpr int DEPTH = GLOBAL_POOL_DEPTH + ACTIVATION::LATE;
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
#pragma HLS DEPENDENCE variable = waiting type = inter false
        const word<typename VALUE::carrier, PIXELS * PE> values = in.read();
        sums_t sums[1];
#pragma HLS ARRAY_PARTITION variable = sums complete
        previous.peek(waiting, sums);
        for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
            integer<VALUE::bits + 1 + bits_of<PIXELS>::value, true> total = 0;  // of this word, so that one sum waits
            for (int x = 0; x < PIXELS; ++x) {
#pragma HLS UNROLL
                total += VALUE::value(values.lane[x * PE + pe]);
            }
            if (step.value == 0) sums[0].lane[pe] = 0;
            sums[0].lane[pe] += exact_t<SUM_BITS>(total);
        }
        previous.push(waiting, sums);
        if (step.last) {
            word<typename ACTIVATION::output_t, PE> result;
            for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
                result.lane[pe] = activation(nf.value, pe, sums[0].lane[pe]);
            }
            out.write(result);
        }
        if (nf.next()) step.next();
        done.next();
    }
}

#endif  // SYSTOLIC_GLOBAL_POOL_H
