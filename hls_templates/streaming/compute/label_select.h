// Top K: the labels of the K greatest values of a frame, the greatest first; of equal values the lesser label. Writes
// one word of K labels a frame.
//
// Each cycle takes PE values (II 1) and ranks them together with the K best so far: the rank of each is the number of
// those that stand before it. All pairs are compared at once, so that what one cycle waits for of the cycle before is
// one comparison, one count and one selection.
//
//   cycles a frame = LABELS / PE       (a run: 1 + frames · that − 1 + LABEL_DEPTH)
#ifndef SYSTOLIC_LABEL_SELECT_H
#define SYSTOLIC_LABEL_SELECT_H

#include <hls_stream.h>

#include "datatype.h"
#include "instrument.h"
#include "progress.h"
#include "word.h"

constexpr int LABEL_DEPTH = 6;

// valid: false for a place that has no value yet; it ranks behind all others.
template <class VALUE, int INDEX_BITS>
struct candidate_t {
    typename VALUE::value_t value;
    integer<INDEX_BITS, false> label;
    bool valid;
};

// Whether a ranks before b. earlier: a has the lesser label, which decides between equal values.
template <class VALUE, int INDEX_BITS>
inline bool before(const candidate_t<VALUE, INDEX_BITS> &a, const candidate_t<VALUE, INDEX_BITS> &b, bool earlier) {
#pragma HLS INLINE
    if (!a.valid || !b.valid) return a.valid || (!b.valid && earlier);
    return a.value > b.value || (a.value == b.value && earlier);
}

template <int LABELS, int PE, int K, class VALUE, int INDEX_BITS>
void label_select(int frames, hls::stream<word<typename VALUE::carrier, PE>> &in,
                  hls::stream<word<integer<INDEX_BITS, false>, K>> &out) {
#pragma HLS INLINE
    static_assert(LABELS % PE == 0, "PE divides the labels");
    static_assert(1 <= K && K <= LABELS, "no more labels are selected than there are");
    static_assert((int64_t(1) << INDEX_BITS) >= LABELS, "INDEX_BITS hold every label");
    typedef candidate_t<VALUE, INDEX_BITS> entry_t;
    entry_t best[K];
#pragma HLS ARRAY_PARTITION variable = best complete
    for (int k = 0; k < K; ++k) {
#pragma HLS UNROLL
        best[k].value = 0;
        best[k].label = 0;
        best[k].valid = false;
    }
    int at = 0;
    progress_t<LABELS / PE> done = {0, 0};
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, LABEL_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        const word<typename VALUE::carrier, PE> values = in.read();
        entry_t all[K + PE];
#pragma HLS ARRAY_PARTITION variable = all complete
        for (int k = 0; k < K; ++k) {
#pragma HLS UNROLL
            all[k] = best[k];
            if (at == 0) all[k].valid = false;
        }
        for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
            all[K + pe].value = VALUE::value(values.lane[pe]);
            all[K + pe].label = at + pe;
            all[K + pe].valid = true;
        }
        for (int e = 0; e < K + PE; ++e) {
#pragma HLS UNROLL
            int rank = 0;
            for (int other = 0; other < K + PE; ++other) {
#pragma HLS UNROLL
                if (other != e && before<VALUE, INDEX_BITS>(all[other], all[e], other < e)) ++rank;
            }
            for (int k = 0; k < K; ++k) {
#pragma HLS UNROLL
                if (rank == k) best[k] = all[e];
            }
        }
        if (at == LABELS - PE) {
            word<integer<INDEX_BITS, false>, K> result;
            for (int k = 0; k < K; ++k) {
#pragma HLS UNROLL
                result.lane[k] = best[k].label;
            }
            out.write(result);
        }
        at = at == LABELS - PE ? 0 : at + PE;
        done.next();
    }
}

#endif  // SYSTOLIC_LABEL_SELECT_H
