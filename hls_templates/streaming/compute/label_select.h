// Label select (top-k): the K channels with the greatest values of each position, in descending order. Of equal values
// the lower channel comes first. The output is the channel numbers, which are the class labels, and optionally the
// values.
//
// Each cycle reads a word of PE values, II 1. Every PE keeps a sorted list of the K greatest values of its own
// channels. A new value is compared with all of them in parallel and inserted, so that the loop-carried path is one
// comparison and one selection. In the cycle of a position's last word, a tree merges the lists of the PEs. The block
// then writes a word of K labels, and a word of K values to the optional second stream. Nothing in the loop depends on
// the tree's result.
//
//   cycles per frame = POSITIONS · (CHANNELS / PE)
//   cycles per run   = frames · (cycles per frame) + label_select_depth<PE, K>()
#ifndef SYSTOLIC_LABEL_SELECT_H
#define SYSTOLIC_LABEL_SELECT_H

#include <hls_stream.h>

#include "constant.h"
#include "counter.h"
#include "datatype.h"
#include "duplicate.h"
#include "instrument.h"
#include "progress.h"
#include "word.h"

// The number of levels of the tree that merges the lists of the PEs.
template <int PE>
constexpr int merge_levels() {
    return PE > 1 ? bits_of<PE - 1>::value : 0;
}

// The declared pipeline stages: three for the insertion of a value, and one for each of the K insertions per level of
// the tree.
template <int PE, int K>
constexpr int label_select_depth() {
    return 3 + K * merge_levels<PE>();
}

// Inserts a value and its label into a sorted list, and drops the list's last entry. ``before[i]`` says whether the
// value comes before entry i. It is monotonic, so that the entries from the first true one on move by one place.
template <int K, class CARRIER, class LABEL>
inline void insert_at(CARRIER value, LABEL label, const bool (&before)[K], CARRIER (&values)[K], LABEL (&labels)[K]) {
#pragma HLS INLINE
    for (int n = 0; n < K; ++n) {
#pragma HLS UNROLL
        const int i = K - 1 - n, ahead = larger(i - 1, 0);
        const bool moves = i > 0 && before[ahead];
        if (before[i]) {
            values[i] = moves ? values[ahead] : value;
            labels[i] = moves ? labels[ahead] : label;
        }
    }
}

// Inserts the value of a PE's next channel into the PE's list, which has seen ``count`` channels of the position.
// Entries from ``count`` on are not valid. Of equal values the new one is last, because its label is greater.
template <int K, class VALUE, class LABEL>
inline void insert_value(typename VALUE::carrier value, LABEL label, int count, typename VALUE::carrier (&values)[K],
                         LABEL (&labels)[K]) {
#pragma HLS INLINE
    bool before[K];
#pragma HLS ARRAY_PARTITION variable = before complete
    for (int i = 0; i < K; ++i) {
#pragma HLS UNROLL
        before[i] = count <= i || VALUE::value(value) > VALUE::value(values[i]);
    }
    insert_at<K>(value, label, before, values, labels);
}

// Merges the first ``others`` entries of the list ``from`` into a list of ``count`` valid entries. Both are sorted, so
// that entry j of ``from`` has at least j entries before it in the result.
template <int K, class VALUE, class LABEL>
inline void merge_into(typename VALUE::carrier (&values)[K], LABEL (&labels)[K], int count,
                       const typename VALUE::carrier (&from)[K], const LABEL (&from_labels)[K], int others) {
#pragma HLS INLINE
    for (int j = 0; j < K; ++j) {
#pragma HLS UNROLL
        if (j < others) {
            bool before[K];
#pragma HLS ARRAY_PARTITION variable = before complete
            for (int i = 0; i < K; ++i) {
#pragma HLS UNROLL
                const bool greater = VALUE::value(from[j]) > VALUE::value(values[i]);
                const bool equal = from[j] == values[i] && from_labels[j] < labels[i];
                before[i] = i >= j && (i >= count + j || greater || equal);
            }
            insert_at<K>(from[j], from_labels[j], before, values, labels);
        }
    }
}

// VALUES is empty, or the type of the optional stream of values.
template <int POSITIONS, int CHANNELS, int PE, int K, class VALUE, class... VALUES>
void label_select(int frames, hls::stream<word<typename VALUE::carrier, PE>> &in,
                  hls::stream<word<number<CHANNELS - 1>, K>> &labels_out, VALUES &...values_out) {
#pragma HLS INLINE
    static_assert(CHANNELS % PE == 0, "PE must divide CHANNELS");
    static_assert(K >= 1 && K <= CHANNELS, "K must be at least 1 and at most CHANNELS");
    static_assert(sizeof...(VALUES) <= 1, "label_select takes at most one stream of values");
    typedef typename VALUE::carrier carrier;
    typedef number<CHANNELS - 1> label_t;
    constexpr int NF = CHANNELS / PE, OWN = smaller(K, NF), LEVELS = merge_levels<PE>();
    carrier values[PE][K];
    label_t labels[PE][K];
#pragma HLS ARRAY_PARTITION variable = values complete dim = 0
#pragma HLS ARRAY_PARTITION variable = labels complete dim = 0
    counter_t<NF> nf;  // the words read of this position, which is the number of values that every PE has seen
    progress_t<POSITIONS * NF> done;
    constexpr int DEPTH = label_select_depth<PE, K>();
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        const word<carrier, PE> next = in.read();
        // The tree works on copies: the lists are in registers that the next cycle needs.
        carrier best[PE][K];
        label_t best_labels[PE][K];
#pragma HLS ARRAY_PARTITION variable = best complete dim = 0
#pragma HLS ARRAY_PARTITION variable = best_labels complete dim = 0
        for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
            insert_value<K, VALUE>(next.lane[pe], label_t(nf.value * PE + pe), nf.value, values[pe], labels[pe]);
            for (int i = 0; i < K; ++i) {
#pragma HLS UNROLL
                best[pe][i] = values[pe][i];
                best_labels[pe][i] = labels[pe][i];
            }
        }
        if (nf.last) {
            for (int level = 0; level < LEVELS; ++level) {
#pragma HLS UNROLL
                for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
                    const int distance = 1 << level, other = smaller(pe + distance, PE - 1);
                    if (pe % (2 * distance) == 0 && other == pe + distance) {
                        const int count = smaller(K, OWN * distance),
                                  others = smaller(K, OWN * smaller(distance, PE - other));
                        merge_into<K, VALUE>(best[pe], best_labels[pe], count, best[other], best_labels[other], others);
                    }
                }
            }
            word<label_t, K> chosen;
            word<carrier, K> chosen_values;
            for (int i = 0; i < K; ++i) {
#pragma HLS UNROLL
                chosen.lane[i] = best_labels[0][i];
                chosen_values.lane[i] = best[0][i];
            }
            labels_out.write(chosen);
            write_all(chosen_values, values_out...);
        }
        nf.next();
        done.next();
    }
}

#endif  // SYSTOLIC_LABEL_SELECT_H
