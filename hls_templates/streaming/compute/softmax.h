// Softmax: of each position the shares p = e^x / Σ e^x of its channels, as unsigned numbers of 8 bits, p · 256.
//
//   powers    e = T[m − x] of the greatest value m (SOFTMAX_STABLE), or T[x] (SOFTMAX_LATENCY), at most 2^20 − 1
//   sum       S = Σ e of the position
//   inverse   R = ⌊2^36 / S⌋, one division a position
//   shares    p = min(255, (e · R + 2^27) >> 28)
//   softmax_argmax    p = 255 for the first of the greatest values, 0 for all others
//
// Each iteration takes a word of PE values (II 1), adds up a word of the position before and gives a word of the one
// before that: words wait in two delay lines, NF for the maximum and HELD for the division. That has a stage for each
// bit of R, which steps on with every iteration, so that no cycle waits for more than a subtraction. At the end of a
// frame the lines run empty, and nothing waits for the next one.
//
//   iterations a frame = POSITIONS · NF + COMPARED + HELD, NF = CHANNELS / PE
//   SOFTMAX_STABLE     COMPARED = NF, HELD = NF + 16     (2^20 − 1 ≤ S: R has 17 bits)
//   SOFTMAX_LATENCY    COMPARED = 0,  HELD = NF + 36
//   softmax_argmax     COMPARED = NF, HELD = 0
//                                         (a run: 1 + frames · that − 1 + softmax_depth() or softmax_argmax_depth())
#ifndef SYSTOLIC_SOFTMAX_H
#define SYSTOLIC_SOFTMAX_H

#include <hls_stream.h>

#include "activation.h"
#include "constant.h"
#include "counter.h"
#include "datatype.h"
#include "delay.h"
#include "instrument.h"
#include "progress.h"
#include "ram.h"
#include "word.h"

enum softmax_t { SOFTMAX_STABLE, SOFTMAX_LATENCY };

constexpr int SHARE_BITS = 8, MOST_SHARE = (1 << SHARE_BITS) - 1;
constexpr int POWER_BITS = 20;
// Of the dividend 2^36, and with it of the inverse of a sum of 1.
constexpr int DIVIDEND_BITS = POWER_BITS + 17;

typedef integer<POWER_BITS, false> power_t;
typedef integer<SHARE_BITS, false> share_t;

// Bits of an inverse: sums that hold the power of the maximum are no less than 2^20 − 1.
constexpr int inverse_bits(softmax_t method) {
    return method == SOFTMAX_STABLE ? DIVIDEND_BITS - POWER_BITS : DIVIDEND_BITS;
}

template <int PE>
constexpr int softmax_depth() {
    return 10 + PE / 2;
}

template <int PE>
constexpr int softmax_argmax_depth() {
    return 4 + PE;
}

// The last BITS bits of ⌊2^36 / sum⌋, which are all: the division by hand, a bit an iteration, of as many sums at once.
template <int SUM_BITS, int BITS>
struct division_t {
    integer<SUM_BITS, false> sum[BITS];
    integer<SUM_BITS + 1, false> rest[BITS];  // of the dividend, behind the bits that are found
    integer<BITS, false> found[BITS];

    division_t() {
#pragma HLS ARRAY_PARTITION variable = sum complete
#pragma HLS ARRAY_PARTITION variable = rest complete
#pragma HLS ARRAY_PARTITION variable = found complete
        for (int k = 0; k < BITS; ++k) {
#pragma HLS UNROLL
            sum[k] = 0;
            rest[k] = 0;
            found[k] = 0;
        }
    }

    // Of the sum that came BITS iterations ago.
    integer<BITS, false> inverse() const {
#pragma HLS INLINE
        return found[BITS - 1];
    }

    void next(integer<SUM_BITS, false> newest) {
#pragma HLS INLINE
        for (int k = BITS - 1; k > 0; --k) {
#pragma HLS UNROLL
            step(k, sum[k - 1], rest[k - 1], found[k - 1]);
        }
        step(0, newest, integer<SUM_BITS + 1, false>(1) << (DIVIDEND_BITS - BITS), 0);
    }

    void step(int k, integer<SUM_BITS, false> by, integer<SUM_BITS + 1, false> left, integer<BITS, false> bits) {
#pragma HLS INLINE
        const bool goes_in = left >= by;
        const integer<SUM_BITS + 1, false> less = goes_in ? integer<SUM_BITS + 1, false>(left - by) : left;
        sum[k] = by;
        rest[k] = less << 1;
        found[k] = integer<BITS, false>(bits << 1) | integer<BITS, false>(goes_in ? 1 : 0);
    }
};

// power · inverse ≤ 2^36, as no power is greater than its sum.
template <int BITS>
inline share_t share_of(power_t power, integer<BITS, false> inverse) {
#pragma HLS INLINE
    const integer<DIVIDEND_BITS + 1, false> product = integer<DIVIDEND_BITS + 1, false>(power) * inverse;
    const integer<SHARE_BITS + 2, false> rounded = ((product >> (DIVIDEND_BITS - SHARE_BITS - 2)) + 1) >> 1;
    return rounded > MOST_SHARE ? share_t(MOST_SHARE) : share_t(rounded);
}

// POWERS: a table_t of activation.h, of m − x or of x.
template <softmax_t METHOD, int POSITIONS, int CHANNELS, int PE, class VALUE, int RAM = RAM_AUTO, class POWERS>
void softmax(int frames, hls::stream<word<typename VALUE::carrier, PE>> &in, hls::stream<word<share_t, PE>> &out,
             const POWERS &powers) {
#pragma HLS INLINE
    static_assert(CHANNELS % PE == 0, "PE divides the channels");
    constexpr bool STABLE = METHOD == SOFTMAX_STABLE;
    constexpr int BITS = inverse_bits(METHOD), SUM_BITS = POWER_BITS + bits_of<CHANNELS - 1>::value;
    constexpr int NF = CHANNELS / PE, WORDS = POSITIONS * NF, COMPARED = STABLE ? NF : 0, HELD = NF - 1 + BITS;
    typedef word<typename VALUE::carrier, PE> values_t;
    typedef word<power_t, PE> powers_t;
    lines_t<values_t, 1> arrived[NF];
    lines_t<powers_t, 1> added[HELD];
#pragma HLS AGGREGATE variable = arrived compact = bit
#pragma HLS AGGREGATE variable = added compact = bit
    keep_delay<RAM>(arrived);
    keep_delay<RAM>(added);
    delay_t<NF> compare;
    delay_t<HELD> hold;
    division_t<SUM_BITS, BITS> division;
    counter_t<NF> taken, summed, given;
    typename VALUE::value_t best = 0, greatest = 0;  // so far, and of the position that is added up
    integer<SUM_BITS, false> sum = 0;
    integer<BITS, false> inverse = 0;
    progress_t<WORDS + COMPARED + HELD> done;
    constexpr int DEPTH = softmax_depth<PE>();
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
#pragma HLS DEPENDENCE variable = arrived type = inter false
#pragma HLS DEPENDENCE variable = added type = inter false
        const int step = done.step.value;
        const bool takes = step < WORDS, adds = inside(step, COMPARED, WORDS), gives = step >= COMPARED + HELD;
        values_t newest[1], values[1];
        powers_t fresh[1], oldest[1];
#pragma HLS ARRAY_PARTITION variable = newest complete
#pragma HLS ARRAY_PARTITION variable = values complete
#pragma HLS ARRAY_PARTITION variable = fresh complete
#pragma HLS ARRAY_PARTITION variable = oldest complete
        newest[0] = zeros<values_t>();
        if (takes) newest[0] = in.read();
        values[0] = newest[0];
        if (STABLE) {
            compare.peek(arrived, values);
            compare.push(arrived, newest);
        }
        hold.peek(added, oldest);
        if (gives) {
            if (given.value == 0) inverse = division.inverse();
            word<share_t, PE> shares;
            for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
                shares.lane[pe] = share_of<BITS>(oldest[0].lane[pe], inverse);
            }
            out.write(shares);
            given.next();
        }
        integer<SUM_BITS, false> total = 0;  // of this word, so that one sum waits
        for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
            const int value = VALUE::value(values[0].lane[pe]);
            fresh[0].lane[pe] = powers(0, pe, adds ? (STABLE ? int(greatest) - value : value) : 0);
            total += fresh[0].lane[pe];
        }
        hold.push(added, fresh);
        if (adds) {
            sum = summed.value == 0 ? total : integer<SUM_BITS, false>(sum + total);
            summed.next();
        }
        division.next(sum);
        if (takes) {
            typename VALUE::value_t top = VALUE::value(newest[0].lane[0]);  // of this word
            for (int pe = 1; pe < PE; ++pe) {
#pragma HLS UNROLL
                const typename VALUE::value_t value = VALUE::value(newest[0].lane[pe]);
                if (value > top) top = value;
            }
            best = taken.value == 0 || top > best ? top : best;
            if (taken.last) greatest = best;
            taken.next();
        }
        done.next();
    }
}

template <int POSITIONS, int CHANNELS, int PE, class VALUE>
void softmax_argmax(int frames, hls::stream<word<typename VALUE::carrier, PE>> &in,
                    hls::stream<word<share_t, PE>> &out) {
#pragma HLS INLINE
    static_assert(CHANNELS % PE == 0, "PE divides the channels");
    constexpr int NF = CHANNELS / PE, WORDS = POSITIONS * NF;
    typedef typename VALUE::value_t value_t;
    typedef number<larger(NF - 1, 1)> fold_t;
    typedef number<larger(PE - 1, 1)> lane_t;
    value_t best = 0;
    fold_t best_fold = 0, fold = 0;  // so far, and of the position that leaves
    lane_t best_lane = 0, lane = 0;
    counter_t<NF> taken, given;
    progress_t<WORDS + NF> done;
    constexpr int DEPTH = softmax_argmax_depth<PE>();
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        const int step = done.step.value;
        if (step >= NF) {
            word<share_t, PE> shares;
            for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
                shares.lane[pe] = given.value == fold && lane == pe ? share_t(MOST_SHARE) : share_t(0);
            }
            out.write(shares);
            given.next();
        }
        if (step < WORDS) {
            const word<typename VALUE::carrier, PE> values = in.read();
            value_t top = VALUE::value(values.lane[0]);  // of this word
            lane_t place = 0;
            for (int pe = 1; pe < PE; ++pe) {
#pragma HLS UNROLL
                const value_t value = VALUE::value(values.lane[pe]);
                if (value > top) {
                    top = value;
                    place = pe;
                }
            }
            if (taken.value == 0 || top > best) {
                best = top;
                best_fold = taken.value;
                best_lane = place;
            }
            if (taken.last) {
                fold = best_fold;
                lane = best_lane;
            }
            taken.next();
        }
        done.next();
    }
}

#endif  // SYSTOLIC_SOFTMAX_H
