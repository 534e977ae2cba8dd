// Top K: the labels of the K greatest values of a frame, the greatest first; of equal values the lesser label. Writes
// one word of K labels a frame.
//
// Each cycle takes PE values (II 1), puts them in order among themselves, and merges them with the K best so far. All
// pairs of an old and a new value are compared at once; where both are in order, two of these comparisons tell of a value
// whether it takes a place. So what one cycle waits for of the cycle before is one comparison and one selection.
//
//   cycles a frame = LABELS / PE       (a run: 1 + frames · that − 1 + LABEL_DEPTH)
#ifndef SYSTOLIC_LABEL_SELECT_H
#define SYSTOLIC_LABEL_SELECT_H

#include <hls_stream.h>

#include "constant.h"
#include "datatype.h"
#include "instrument.h"
#include "progress.h"
#include "word.h"

constexpr int LABEL_DEPTH = 6;

// valid: false for a place that has no value yet; it stands behind all others.
template <class VALUE, int INDEX_BITS>
struct candidate_t {
    typename VALUE::value_t value;
    integer<INDEX_BITS, false> label;
    bool valid;
};

// The values of a word in order, the greatest first; of equal ones the lesser label.
template <int PE, class ENTRY>
inline void sort_entries(const ENTRY (&values)[PE], ENTRY (&sorted)[PE]) {
#pragma HLS INLINE
    for (int e = 0; e < PE; ++e) {
#pragma HLS UNROLL
        int rank = 0;
        for (int other = 0; other < PE; ++other) {
#pragma HLS UNROLL
            const bool before =
                other < e ? values[other].value >= values[e].value : values[other].value > values[e].value;
            if (other != e && before) ++rank;
        }
        for (int place = 0; place < PE; ++place) {
#pragma HLS UNROLL
            if (rank == place) sorted[place] = values[e];
        }
    }
}

// Merges ``best`` and ``sorted``, whose labels are all greater. With i values of ``best`` and j of ``sorted`` before it,
// a value takes place i + j.
template <int K, int PE, class ENTRY>
inline void merge_entries(ENTRY (&best)[K], const ENTRY (&sorted)[PE]) {
#pragma HLS INLINE
    bool ahead[K][PE];  // whether best[i] stands before sorted[j]
#pragma HLS ARRAY_PARTITION variable = ahead complete dim = 0
    for (int i = 0; i < K; ++i) {
#pragma HLS UNROLL
        for (int j = 0; j < PE; ++j) {
#pragma HLS UNROLL
            ahead[i][j] = best[i].valid && best[i].value >= sorted[j].value;
        }
    }
    for (int place = K - 1; place >= 0; --place) {
#pragma HLS UNROLL
        ENTRY older = best[place], newer = sorted[0];
        bool stays = ahead[place][0];
        for (int j = 1; j <= PE; ++j) {
#pragma HLS UNROLL
            const int i = larger(place - j, 0), next = smaller(j, PE - 1);
            if (j <= place && !ahead[i][j - 1] && (j == PE || ahead[i][next])) {
                older = best[i];
                stays = true;
            }
            if (j <= place && j < PE && (i == 0 || ahead[larger(i - 1, 0)][next]) && !ahead[i][next])
                newer = sorted[next];
        }
        best[place] = stays ? older : newer;
    }
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
    progress_t<LABELS / PE> done;
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, LABEL_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        const word<typename VALUE::carrier, PE> values = in.read();
        entry_t entries[PE], sorted[PE];
#pragma HLS ARRAY_PARTITION variable = entries complete
#pragma HLS ARRAY_PARTITION variable = sorted complete
        for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
            entries[pe].value = VALUE::value(values.lane[pe]);
            entries[pe].label = done.step.value * PE + pe;
            entries[pe].valid = true;
        }
        sort_entries(entries, sorted);
        merge_entries(best, sorted);
        if (done.step.last) {
            word<integer<INDEX_BITS, false>, K> result;
            for (int k = 0; k < K; ++k) {
#pragma HLS UNROLL
                result.lane[k] = best[k].label;
                best[k].valid = false;
            }
            out.write(result);
        }
        done.next();
    }
}

#endif  // SYSTOLIC_LABEL_SELECT_H
