// Label select: of each position the K channels with the greatest values, the greatest first, of equal ones the lower
// number. Their numbers leave, the labels of classes, and where a second stream is given their values too.
//
// Each cycle takes a word of PE values (II 1). Every PE keeps the K greatest of its own channels in order: a value is
// compared with all of them at once, and takes its place, so that a cycle waits for a comparison and a choice of the one
// before. What the PEs keep is merged as a tree, which nothing waits for, and leaves with a position's last word: a word of
// K labels, and one of K values.
//
//   cycles a frame = POSITIONS · (CHANNELS / PE)       (a run: 1 + frames · that − 1 + label_select_depth())
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

// Levels of the tree that merges what PE of them keep.
template <int PE>
constexpr int merge_levels() {
    return PE > 1 ? bits_of<PE - 1>::value : 0;
}

// Stages: the place of a value, and at each level of the tree one for each of K that are put in.
template <int PE, int K>
constexpr int label_select_depth() {
    return 3 + K * merge_levels<PE>();
}

// Puts a value where the first of [K] is that it comes before; those from there on move on by a place.
template <int K, class CARRIER, class LABEL>
inline void put_in(CARRIER value, LABEL label, const bool (&before)[K], CARRIER (&values)[K], LABEL (&labels)[K]) {
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

// The next channel of a PE, behind ``count`` of them: its label is greater than theirs.
template <int K, class VALUE, class LABEL>
inline void keep(typename VALUE::carrier value, LABEL label, int count, typename VALUE::carrier (&values)[K],
                 LABEL (&labels)[K]) {
#pragma HLS INLINE
    bool before[K];
#pragma HLS ARRAY_PARTITION variable = before complete
    for (int i = 0; i < K; ++i) {
#pragma HLS UNROLL
        before[i] = count <= i || VALUE::value(value) > VALUE::value(values[i]);
    }
    put_in<K>(value, label, before, values, labels);
}

// The first ``others`` of one list into another that has ``count``. The j-th of a list has j before it in any other.
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
            put_in<K>(from[j], from_labels[j], before, values, labels);
        }
    }
}

template <int POSITIONS, int CHANNELS, int PE, int K, class VALUE, class... VALUES>
void label_select(int frames, hls::stream<word<typename VALUE::carrier, PE>> &in,
                  hls::stream<word<number<CHANNELS - 1>, K>> &labels_out, VALUES &...values_out) {
#pragma HLS INLINE
    static_assert(CHANNELS % PE == 0, "PE divides the labels");
    static_assert(K >= 1 && K <= CHANNELS, "no more are chosen than there are");
    static_assert(sizeof...(VALUES) <= 1, "one stream of values, or none");
    typedef typename VALUE::carrier carrier;
    typedef number<CHANNELS - 1> label_t;
    constexpr int NF = CHANNELS / PE, OWN = smaller(K, NF), LEVELS = merge_levels<PE>();
    carrier values[PE][K];
    label_t labels[PE][K];
#pragma HLS ARRAY_PARTITION variable = values complete dim = 0
#pragma HLS ARRAY_PARTITION variable = labels complete dim = 0
    counter_t<NF> nf;  // as many values as every PE keeps of this position, or K
    progress_t<POSITIONS * NF> done;
    constexpr int DEPTH = label_select_depth<PE, K>();
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        const word<carrier, PE> next = in.read();
        carrier best[PE][K];
        label_t best_labels[PE][K];
#pragma HLS ARRAY_PARTITION variable = best complete dim = 0
#pragma HLS ARRAY_PARTITION variable = best_labels complete dim = 0
        for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
            keep<K, VALUE>(next.lane[pe], label_t(nf.value * PE + pe), nf.value, values[pe], labels[pe]);
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
                    const int apart = 1 << level, other = smaller(pe + apart, PE - 1);
                    if (pe % (2 * apart) == 0 && other == pe + apart) {
                        const int count = smaller(K, OWN * apart),
                                  others = smaller(K, OWN * smaller(apart, PE - other));
                        merge_into<K, VALUE>(best[pe], best_labels[pe], count, best[other], best_labels[other], others);
                    }
                }
            }
            word<label_t, K> chosen;
            word<carrier, K> theirs;
            for (int i = 0; i < K; ++i) {
#pragma HLS UNROLL
                chosen.lane[i] = best_labels[0][i];
                theirs.lane[i] = best[0][i];
            }
            labels_out.write(chosen);
            write_all(theirs, values_out...);
        }
        nf.next();
        done.next();
    }
}

#endif  // SYSTOLIC_LABEL_SELECT_H
