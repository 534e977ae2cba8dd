// Sum over the whole map (global accumulate), then the activation: an average is a requantised sum.
//
// PE channels of PIXELS pixels a word come, PE channels of one pixel leave with the last pixel of a frame.
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

constexpr int GLOBAL_POOL_DEPTH = 10;

template <int POSITIONS, int CHANNELS, int PE, int PIXELS, class VALUE, int SUM_BITS, int RAM = RAM_AUTO,
          class ACTIVATION>
void global_pool(int frames, hls::stream<word<typename VALUE::carrier, PIXELS * PE>> &in,
                 hls::stream<word<typename ACTIVATION::output_t, PE>> &out, const ACTIVATION &activation) {
#pragma HLS INLINE
    static_assert(CHANNELS % PE == 0, "PE divides the channels");
    static_assert(POSITIONS % PIXELS == 0, "PIXELS divides the positions of a frame");
    constexpr int NF = CHANNELS / PE, STEPS = POSITIONS / PIXELS;
    typedef word<exact_t<SUM_BITS>, PE> sums_t;
    sums_t kept[NF][1];  // what a group's sums were, one pixel ago
    keep_delay<RAM>(kept);
    delay_t<NF> ago;
    int nf = 0, step = 0;
    progress_t<STEPS * NF> done = {0, 0};
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, GLOBAL_POOL_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
#pragma HLS DEPENDENCE variable = kept type = inter false
        const word<typename VALUE::carrier, PIXELS * PE> values = in.read();
        sums_t sums[1];
        ago.peek(kept, sums);
        for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
            if (step == 0) sums[0].lane[pe] = 0;
            for (int x = 0; x < PIXELS; ++x) {
#pragma HLS UNROLL
                sums[0].lane[pe] += VALUE::value(values.lane[x * PE + pe]);
            }
        }
        ago.push(kept, sums);
        if (step == STEPS - 1) {
            word<typename ACTIVATION::output_t, PE> result;
            for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
                result.lane[pe] = activation(nf, pe, sums[0].lane[pe]);
            }
            out.write(result);
        }
        if (++nf == NF) {
            nf = 0;
            step = step == STEPS - 1 ? 0 : step + 1;
        }
        done.next();
    }
}

#endif  // SYSTOLIC_GLOBAL_POOL_H
