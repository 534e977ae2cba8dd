// An activation (activation.h) as a block of its own. Each cycle reads a word of PE channels of PIXELS pixels and
// writes the word of its activated values, II 1.
//
// The channels of a pixel arrive in NF = CHANNELS / PE words. POSITIONS is the pixels of a frame.
//
//   cycles per frame = POSITIONS · NF / PIXELS
//   cycles per run   = frames · (cycles per frame) + ACTIVATE_DEPTH + ACTIVATION::LATE
#ifndef SYSTOLIC_ACTIVATE_H
#define SYSTOLIC_ACTIVATE_H

#include <hls_stream.h>

#include "activation.h"
#include "datatype.h"
#include "instrument.h"
#include "progress.h"
#include "word.h"

constexpr int ACTIVATE_DEPTH = 12;  // declared pipeline stages, requantiser included

template <int POSITIONS, int CHANNELS, int PE, int PIXELS, class VALUE, class ACTIVATION>
void activate(int frames, hls::stream<word<typename VALUE::carrier, PIXELS * PE>> &in,
              hls::stream<word<typename ACTIVATION::output_t, PIXELS * PE>> &out, const ACTIVATION &activation) {
#pragma HLS INLINE
    static_assert(CHANNELS % PE == 0, "PE must divide CHANNELS");
    static_assert(POSITIONS % PIXELS == 0, "PIXELS must divide POSITIONS");
    constexpr int NF = CHANNELS / PE;
    counter_t<NF> nf;  // the number of the word within its pixels
    progress_t<POSITIONS / PIXELS * NF> done;
    constexpr int DEPTH = ACTIVATE_DEPTH + ACTIVATION::LATE;
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        const word<typename VALUE::carrier, PIXELS * PE> values = in.read();
        word<typename ACTIVATION::output_t, PIXELS * PE> result;
        for (int x = 0; x < PIXELS; ++x) {
#pragma HLS UNROLL
            for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
                result.lane[x * PE + pe] = activation(nf.value, pe, VALUE::value(values.lane[x * PE + pe]));
            }
        }
        out.write(result);
        nf.next();
        done.next();
    }
}

#endif  // SYSTOLIC_ACTIVATE_H
