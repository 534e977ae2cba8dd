// Global pool: the sum of each channel over the whole map, followed by an activation (activation.h). A requantiser
// makes an average of the sum.
//
// Each cycle reads a word of PE channels of PIXELS pixels and adds it to the sums of these channels, II 1. In the
// cycles of a frame's last pixels the block also writes a word of results, PE channels of the frame's single position.
//
//   cycles per frame = POSITIONS · (CHANNELS / PE) / PIXELS
//   cycles per run   = frames · (cycles per frame) + GLOBAL_POOL_DEPTH + ACTIVATION::LATE
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

constexpr int GLOBAL_POOL_DEPTH = 12;  // declared pipeline stages, requantiser included

// SUM_BITS is the signed bits of the largest sum over the map. RAM is the kind of memory of the sums (ram.h).
template <int POSITIONS, int CHANNELS, int PE, int PIXELS, class VALUE, int SUM_BITS, int RAM = RAM_AUTO,
          class ACTIVATION>
void global_pool(int frames, hls::stream<word<typename VALUE::carrier, PIXELS * PE>> &in,
                 hls::stream<word<typename ACTIVATION::output_t, PE>> &out, const ACTIVATION &activation) {
#pragma HLS INLINE
    static_assert(CHANNELS % PE == 0, "PE must divide CHANNELS");
    static_assert(POSITIONS % PIXELS == 0, "PIXELS must divide POSITIONS");
    constexpr int NF = CHANNELS / PE, STEPS = POSITIONS / PIXELS;
    typedef word<exact_t<SUM_BITS>, PE> sums_t;
    lines_t<sums_t, 1> partial_sums[NF];  // for each group of PE channels, the sums over the pixels read so far
#pragma HLS AGGREGATE variable = partial_sums compact = bit
    bind_delay_memory<RAM>(partial_sums);
    delay_t<NF> previous;
    counter_t<NF> nf;       // the group of channels of the next word
    counter_t<STEPS> step;  // the PIXELS pixels of the next word
    progress_t<STEPS * NF> done;
    constexpr int DEPTH = GLOBAL_POOL_DEPTH + ACTIVATION::LATE;
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
// The delay line reads a sum NF cycles after it was written (delay.h).
#pragma HLS DEPENDENCE variable = partial_sums type = inter false
        const word<typename VALUE::carrier, PIXELS * PE> values = in.read();
        sums_t sums[1];
#pragma HLS ARRAY_PARTITION variable = sums complete
        previous.peek(partial_sums, sums);
        for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
            // The pixels of the word are added up first, so that the loop-carried path has a single addition.
            integer<VALUE::bits + 1 + bits_of<PIXELS>::value, true> total = 0;
            for (int x = 0; x < PIXELS; ++x) {
#pragma HLS UNROLL
                total += VALUE::value(values.lane[x * PE + pe]);
            }
            if (step.value == 0) sums[0].lane[pe] = 0;
            sums[0].lane[pe] += exact_t<SUM_BITS>(total);
        }
        previous.push(partial_sums, sums);
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
