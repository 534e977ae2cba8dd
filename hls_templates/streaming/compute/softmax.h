// Softmax over the channels of each position: p = e^x / Σ e^x, as unsigned 8-bit values p · 256.
//
//   powers    e = T[m − x] with the position's greatest value m (SOFTMAX_STABLE), or T[x] (SOFTMAX_LATENCY); e < 2^20
//   sum       S = Σ e over the position's channels
//   inverse   R = ⌊2^36 / S⌋, one division per position
//   shares    p = min(255, (e · R + 2^27) >> 28)
//
// softmax_argmax gives 255 to the first of the greatest values and 0 to all others.
//
// Each iteration reads a word of PE values, adds a word of the previous position to its sum, and writes a word of the
// position before that, II 1. One delay line holds NF words until the maximum is known, and another holds HOLD_WORDS
// words until the division is complete. The division has one stage per bit of R, and each iteration moves it by one
// stage. No cycle therefore waits for more than a subtraction. At the end of a frame the delay lines run empty, so that
// the results of a frame do not depend on the arrival of the next one.
//
//   iterations per frame = POSITIONS · NF + COMPARED + HOLD_WORDS, with NF = CHANNELS / PE
//   SOFTMAX_STABLE         COMPARED = NF, HOLD_WORDS = NF + 16     (S ≥ 2^20 − 1, so that R has 17 bits)
//   SOFTMAX_LATENCY        COMPARED = 0,  HOLD_WORDS = NF + 36
//   softmax_argmax         COMPARED = NF, HOLD_WORDS = 0
//   cycles per run       = frames · (iterations per frame) + softmax_depth<PE>() or softmax_argmax_depth<PE>()
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

// SOFTMAX_STABLE subtracts the position's maximum first. SOFTMAX_LATENCY does not, and has a shorter delay.
enum softmax_t { SOFTMAX_STABLE, SOFTMAX_LATENCY };

constexpr int SHARE_BITS = 8, MOST_SHARE = (1 << SHARE_BITS) - 1;  // bits of a result, and the greatest result
constexpr int POWER_BITS = 20;                                     // bits of a power e
// Bits of the dividend 2^36, and therefore of the inverse of the least sum, 1.
constexpr int DIVIDEND_BITS = POWER_BITS + 17;

typedef integer<POWER_BITS, false> power_t;
typedef integer<SHARE_BITS, false> share_t;

// The bits of an inverse. By SOFTMAX_STABLE a sum contains the power of the maximum and is at least 2^20 − 1, so that
// its inverse has 17 bits.
constexpr int inverse_bits(softmax_t method) {
    return method == SOFTMAX_STABLE ? DIVIDEND_BITS - POWER_BITS : DIVIDEND_BITS;
}

// The declared pipeline stages.
template <int PE>
constexpr int softmax_depth() {
    return 10 + PE / 2;
}

template <int PE>
constexpr int softmax_argmax_depth() {
    return 4 + PE;
}

// A pipelined long division ⌊2^36 / sum⌋, whose quotient has at most BITS bits. Each of BITS stages finds one bit of
// the quotient per iteration, so that BITS divisions are in progress at a time. Index k is the stage.
template <int SUM_BITS, int BITS>
struct division_t {
    integer<SUM_BITS, false> sum[BITS];       // the divisor
    integer<SUM_BITS + 1, false> rest[BITS];  // the remainder of the dividend's bits so far, doubled for the next stage
    integer<BITS, false> quotient[BITS];      // the bits of the quotient so far

    division_t() {
#pragma HLS ARRAY_PARTITION variable = sum complete
#pragma HLS ARRAY_PARTITION variable = rest complete
#pragma HLS ARRAY_PARTITION variable = quotient complete
        for (int k = 0; k < BITS; ++k) {
#pragma HLS UNROLL
            sum[k] = 0;
            rest[k] = 0;
            quotient[k] = 0;
        }
    }

    // The quotient for the sum that ``next`` was given BITS iterations ago.
    integer<BITS, false> inverse() const {
#pragma HLS INLINE
        return quotient[BITS - 1];
    }

    // Moves every division by one stage, and starts the division by ``newest``. The quotient has at most BITS bits, so
    // that the dividend's upper bits go into the first stage together.
    void next(integer<SUM_BITS, false> newest) {
#pragma HLS INLINE
        for (int k = BITS - 1; k > 0; --k) {
#pragma HLS UNROLL
            step(k, sum[k - 1], rest[k - 1], quotient[k - 1]);
        }
        step(0, newest, integer<SUM_BITS + 1, false>(1) << (DIVIDEND_BITS - BITS), 0);
    }

    // Stage k: finds the next bit of a quotient.
    void step(int k, integer<SUM_BITS, false> by, integer<SUM_BITS + 1, false> left, integer<BITS, false> bits) {
#pragma HLS INLINE
        const bool subtracts = left >= by;
        const integer<SUM_BITS + 1, false> less = subtracts ? integer<SUM_BITS + 1, false>(left - by) : left;
        sum[k] = by;
        rest[k] = less << 1;
        quotient[k] = integer<BITS, false>(bits << 1) | integer<BITS, false>(subtracts ? 1 : 0);
    }
};

// Returns (power · inverse + 2^27) >> 28, saturated to 255. The product is at most 2^36, because no power is greater
// than its position's sum.
template <int BITS>
inline share_t share_of(power_t power, integer<BITS, false> inverse) {
#pragma HLS INLINE
    const integer<DIVIDEND_BITS + 1, false> product = integer<DIVIDEND_BITS + 1, false>(power) * inverse;
    const integer<SHARE_BITS + 2, false> rounded = ((product >> (DIVIDEND_BITS - SHARE_BITS - 2)) + 1) >> 1;
    return rounded > MOST_SHARE ? share_t(MOST_SHARE) : share_t(rounded);
}

// POWERS is a table_t (activation.h) of the powers of e, indexed by m − x (SOFTMAX_STABLE) or by x (SOFTMAX_LATENCY).
// RAM is the kind of memory of the delay lines (ram.h).
template <softmax_t METHOD, int POSITIONS, int CHANNELS, int PE, class VALUE, int RAM = RAM_AUTO, class POWERS>
void softmax(int frames, hls::stream<word<typename VALUE::carrier, PE>> &in, hls::stream<word<share_t, PE>> &out,
             const POWERS &powers) {
#pragma HLS INLINE
    static_assert(CHANNELS % PE == 0, "PE must divide CHANNELS");
    constexpr bool STABLE = METHOD == SOFTMAX_STABLE;
    constexpr int BITS = inverse_bits(METHOD), SUM_BITS = POWER_BITS + bits_of<CHANNELS - 1>::value;
    constexpr int NF = CHANNELS / PE, WORDS = POSITIONS * NF, COMPARED = STABLE ? NF : 0, HOLD_WORDS = NF - 1 + BITS;
    typedef word<typename VALUE::carrier, PE> values_t;
    typedef word<power_t, PE> powers_t;
    lines_t<values_t, 1> pending_values[NF];          // values whose position's maximum is not known yet
    lines_t<powers_t, 1> pending_powers[HOLD_WORDS];  // powers whose position's inverse is not known yet
// One memory word holds all lanes, because a cycle reads and writes whole words.
#pragma HLS AGGREGATE variable = pending_values compact = bit
#pragma HLS AGGREGATE variable = pending_powers compact = bit
    bind_delay_memory<RAM>(pending_values);
    bind_delay_memory<RAM>(pending_powers);
    delay_t<NF> compare;
    delay_t<HOLD_WORDS> hold;
    division_t<SUM_BITS, BITS> division;
    counter_t<NF> read_count, summed_count,
        written_count;  // the words of a position that are read, added to the sum, and written
    // The greatest value so far of the position that is read, and the greatest value of the position that is added up.
    typename VALUE::value_t best = 0, greatest = 0;
    integer<SUM_BITS, false> sum = 0;
    integer<BITS, false> inverse = 0;
    progress_t<WORDS + COMPARED + HOLD_WORDS> done;
    constexpr int DEPTH = softmax_depth<PE>();
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
// The delay lines read each word long after its write (delay.h).
#pragma HLS DEPENDENCE variable = pending_values type = inter false
#pragma HLS DEPENDENCE variable = pending_powers type = inter false
        const int step = done.step.value;
        const bool reads = step < WORDS, accumulates = inside(step, COMPARED, WORDS),
                   writes = step >= COMPARED + HOLD_WORDS;
        values_t newest[1], values[1];
        powers_t new_powers[1], old_powers[1];
#pragma HLS ARRAY_PARTITION variable = newest complete
#pragma HLS ARRAY_PARTITION variable = values complete
#pragma HLS ARRAY_PARTITION variable = new_powers complete
#pragma HLS ARRAY_PARTITION variable = old_powers complete
        newest[0] = zeros<values_t>();
        if (reads) newest[0] = in.read();
        values[0] = newest[0];
        if (STABLE) {
            compare.peek(pending_values, values);
            compare.push(pending_values, newest);
        }
        hold.peek(pending_powers, old_powers);
        if (writes) {
            if (written_count.value == 0) inverse = division.inverse();
            word<share_t, PE> shares;
            for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
                shares.lane[pe] = share_of<BITS>(old_powers[0].lane[pe], inverse);
            }
            out.write(shares);
            written_count.next();
        }
        // The powers of the word are added up first, so that the loop-carried path has a single addition.
        integer<SUM_BITS, false> total = 0;
        for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
            const int value = VALUE::value(values[0].lane[pe]);
            new_powers[0].lane[pe] = powers(0, pe, accumulates ? (STABLE ? int(greatest) - value : value) : 0);
            total += new_powers[0].lane[pe];
        }
        hold.push(pending_powers, new_powers);
        if (accumulates) {
            sum = summed_count.value == 0 ? total : integer<SUM_BITS, false>(sum + total);
            summed_count.next();
        }
        division.next(sum);
        if (reads) {
            typename VALUE::value_t top = VALUE::value(newest[0].lane[0]);  // the greatest value of this word
            for (int pe = 1; pe < PE; ++pe) {
#pragma HLS UNROLL
                const typename VALUE::value_t value = VALUE::value(newest[0].lane[pe]);
                if (value > top) top = value;
            }
            best = read_count.value == 0 || top > best ? top : best;
            if (read_count.last) greatest = best;
            read_count.next();
        }
        done.next();
    }
}

template <int POSITIONS, int CHANNELS, int PE, class VALUE>
void softmax_argmax(int frames, hls::stream<word<typename VALUE::carrier, PE>> &in,
                    hls::stream<word<share_t, PE>> &out) {
#pragma HLS INLINE
    static_assert(CHANNELS % PE == 0, "PE must divide CHANNELS");
    constexpr int NF = CHANNELS / PE, WORDS = POSITIONS * NF;
    typedef typename VALUE::value_t value_t;
    typedef number<larger(NF - 1, 1)> fold_t;
    typedef number<larger(PE - 1, 1)> lane_t;
    // best, best_fold and best_lane: the greatest value so far of the position that is read, its word and its lane.
    // fold and lane: the word and the lane of the greatest value of the position that is written.
    value_t best = 0;
    fold_t best_fold = 0, fold = 0;
    lane_t best_lane = 0, lane = 0;
    counter_t<NF> read_count, written_count;
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
                shares.lane[pe] = written_count.value == fold && lane == pe ? share_t(MOST_SHARE) : share_t(0);
            }
            out.write(shares);
            written_count.next();
        }
        if (step < WORDS) {
            const word<typename VALUE::carrier, PE> values = in.read();
            value_t top = VALUE::value(values.lane[0]);  // the greatest value of this word
            lane_t place = 0;
            for (int pe = 1; pe < PE; ++pe) {
#pragma HLS UNROLL
                const value_t value = VALUE::value(values.lane[pe]);
                if (value > top) {
                    top = value;
                    place = pe;
                }
            }
            if (read_count.value == 0 || top > best) {
                best = top;
                best_fold = read_count.value;
                best_lane = place;
            }
            if (read_count.last) {
                fold = best_fold;
                lane = best_lane;
            }
            read_count.next();
        }
        done.next();
    }
}

#endif  // SYSTOLIC_SOFTMAX_H
