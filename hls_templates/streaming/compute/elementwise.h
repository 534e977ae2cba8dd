// Operations on the values at the same place of several maps of equal size, followed by an activation (activation.h).
//
//   add            Σ input · multiplier over any number of inputs, each described by a term_t<VALUE, MULTIPLIER>
//   element_wise   OPERATION (operation.h) on two inputs
//
// Each cycle reads one word of every input and writes one word of results, II 1. A word has PE channels of PIXELS
// pixels. SUM_BITS signed bits hold every result before the activation.
//
//   cycles per frame = POSITIONS · (CHANNELS / PE) / PIXELS
//   cycles per run   = frames · (cycles per frame) + ELEMENT_DEPTH + ACTIVATION::LATE
#ifndef SYSTOLIC_ELEMENTWISE_H
#define SYSTOLIC_ELEMENTWISE_H

#include <hls_stream.h>

#include "activation.h"
#include "datatype.h"
#include "instrument.h"
#include "operation.h"
#include "progress.h"
#include "word.h"

constexpr int ELEMENT_DEPTH = 16;  // declared pipeline stages, requantiser included

// An input of add: its datatype (datatype.h), and the constant by which its values are multiplied.
template <class VALUE, int MULTIPLIER>
struct term_t {
    typedef VALUE value_t;
    typedef typename VALUE::carrier carrier;
    static constexpr int multiplier = MULTIPLIER;
};

// The number of words of a frame. It is 0, which progress_t rejects, if a frame is not a whole number of words.
constexpr int words_of(int positions, int channels, int pe, int pixels) {
    return positions % pixels || channels % pe ? 0 : positions / pixels * (channels / pe);
}

// Adds a word of one input, times its multiplier, to the sums of the lanes.
template <class TERM, int LANES, class SUM>
inline void add_term(const word<typename TERM::carrier, LANES> &values, SUM sum[LANES]) {
#pragma HLS INLINE
    for (int l = 0; l < LANES; ++l) {
#pragma HLS UNROLL
        sum[l] += SUM(TERM::value_t::value(values.lane[l])) * TERM::multiplier;
    }
}

// Returns the activated sums. ``nf`` is the number of the word within its pixels.
template <int PE, int PIXELS, class SUM, class ACTIVATION>
inline word<typename ACTIVATION::output_t, PIXELS * PE> apply_activation(int nf, const SUM sum[PIXELS * PE],
                                                                         const ACTIVATION &activation) {
#pragma HLS INLINE
    word<typename ACTIVATION::output_t, PIXELS * PE> result;
    for (int x = 0; x < PIXELS; ++x) {
#pragma HLS UNROLL
        for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
            result.lane[x * PE + pe] = activation(nf, pe, sum[x * PE + pe]);
        }
    }
    return result;
}

// Sets the sums of all lanes to 0.
template <int LANES, class SUM>
inline void clear(SUM sum[LANES]) {
#pragma HLS INLINE
    for (int l = 0; l < LANES; ++l) {
#pragma HLS UNROLL
        sum[l] = 0;
    }
}

// The block has one input stream for each of TERMS, in the same order.
template <int POSITIONS, int CHANNELS, int PE, int PIXELS, int SUM_BITS, class... TERMS, class ACTIVATION>
void add(int frames, hls::stream<word<typename TERMS::carrier, PIXELS * PE>> &...ins,
         hls::stream<word<typename ACTIVATION::output_t, PIXELS * PE>> &out, const ACTIVATION &activation) {
#pragma HLS INLINE
    counter_t<CHANNELS / PE> nf;  // the number of the next word within its pixels
    progress_t<words_of(POSITIONS, CHANNELS, PE, PIXELS)> done;
    constexpr int DEPTH = ELEMENT_DEPTH + ACTIVATION::LATE;
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        exact_t<SUM_BITS> sum[PIXELS * PE];
#pragma HLS ARRAY_PARTITION variable = sum complete
        clear<PIXELS * PE>(sum);
        // Calls add_term for every input, in order. The initialiser list only serves to expand the pack of calls: the
        // array of zeros that it fills is not used.
        const int expanded[] = {(add_term<TERMS, PIXELS * PE>(ins.read(), sum), 0)...};
        static_cast<void>(expanded);
        out.write(apply_activation<PE, PIXELS>(nf.value, sum, activation));
        nf.next();
        done.next();
    }
}

template <int POSITIONS, int CHANNELS, int PE, int PIXELS, class VALUE0, class VALUE1, int SUM_BITS, class OPERATION,
          class ACTIVATION>
void element_wise(int frames, hls::stream<word<typename VALUE0::carrier, PIXELS * PE>> &in0,
                  hls::stream<word<typename VALUE1::carrier, PIXELS * PE>> &in1,
                  hls::stream<word<typename ACTIVATION::output_t, PIXELS * PE>> &out, const ACTIVATION &activation) {
#pragma HLS INLINE
    counter_t<CHANNELS / PE> nf;  // the number of the next word within its pixels
    progress_t<words_of(POSITIONS, CHANNELS, PE, PIXELS)> done;
    constexpr int DEPTH = ELEMENT_DEPTH + ACTIVATION::LATE;
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        const word<typename VALUE0::carrier, PIXELS * PE> first = in0.read();
        const word<typename VALUE1::carrier, PIXELS * PE> second = in1.read();
        exact_t<SUM_BITS> sum[PIXELS * PE];
#pragma HLS ARRAY_PARTITION variable = sum complete
        for (int l = 0; l < PIXELS * PE; ++l) {
#pragma HLS UNROLL
            const exact_t<SUM_BITS> a = VALUE0::value(first.lane[l]), b = VALUE1::value(second.lane[l]);
            sum[l] = OPERATION::of(a, b);
        }
        out.write(apply_activation<PE, PIXELS>(nf.value, sum, activation));
        nf.next();
        done.next();
    }
}

#endif  // SYSTOLIC_ELEMENTWISE_H
