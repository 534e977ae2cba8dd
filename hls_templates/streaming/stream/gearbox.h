// Between words of IN units and words of OUT units: a shift register of IN + OUT − 1 units at most, each of UNIT values,
// the widths' common divisor. Where one width divides the other, no value needs a multiplexer on its way in or out.
#ifndef SYSTOLIC_GEARBOX_H
#define SYSTOLIC_GEARBOX_H

#include "constant.h"
#include "counter.h"
#include "word.h"

// ``hungry``: it holds less than OUT units, so that
// it may take a word; ``enough``: it would hold OUT units with a word more. Both are registers: each is found for what may
// happen in a cycle, all at once, and then one is chosen, so that no cycle waits for a sum and then for a comparison.
template <class T, int IN, int OUT, int UNIT>
struct gearbox {
    static constexpr int POWERS = bits_of<OUT - 1>::value;  // of two, of which a place in the register is the sum
    T held[IN + OUT - 1][UNIT];
    number<IN + OUT> units;
    bool hungry, enough;

    gearbox() {
#pragma HLS ARRAY_PARTITION variable = held complete dim = 0
        for (int u = 0; u < IN + OUT - 1; ++u) {
#pragma HLS UNROLL
            for (int l = 0; l < UNIT; ++l) {
#pragma HLS UNROLL
                held[u][l] = 0;
            }
        }
        clear();
    }

    void clear() {
#pragma HLS INLINE
        units = 0;
        hungry = true;
        enough = IN >= OUT;
    }

    // The word behind what is held: moved there by powers of two, and by none where OUT is 1.
    void put(const word<T, IN * UNIT> &value) {
#pragma HLS INLINE
        T moved[IN + OUT - 1][UNIT];
#pragma HLS ARRAY_PARTITION variable = moved complete dim = 0
        for (int u = 0; u < IN + OUT - 1; ++u) {
#pragma HLS UNROLL
            for (int l = 0; l < UNIT; ++l) {
#pragma HLS UNROLL
                moved[u][l] = u < IN ? value.lane[smaller(u, IN - 1) * UNIT + l] : T(0);
            }
        }
        for (int by = 0; by < POWERS; ++by) {
#pragma HLS UNROLL
            for (int u = IN + OUT - 2; u >= 0; --u) {
#pragma HLS UNROLL
                const int from = u - (1 << by);
                for (int l = 0; l < UNIT; ++l) {
#pragma HLS UNROLL
                    if (OUT > 1 && from >= 0 && ((units >> by) & 1)) moved[u][l] = moved[larger(from, 0)][l];
                }
            }
        }
        for (int u = 0; u < IN + OUT - 1; ++u) {
#pragma HLS UNROLL
            for (int l = 0; l < UNIT; ++l) {
#pragma HLS UNROLL
                if (OUT == 1 || units <= u) held[u][l] = moved[u][l];
            }
        }
    }

    // The first OUT units; zeros for those that are missing. more: with a word that ``put`` has just brought.
    word<T, OUT * UNIT> get(bool more) {
#pragma HLS INLINE
        word<T, OUT * UNIT> value;
        for (int u = 0; u < OUT; ++u) {
#pragma HLS UNROLL
            const bool there = units > u || (more && (u < IN || units > u - IN));
            for (int l = 0; l < UNIT; ++l) {
#pragma HLS UNROLL
                value.lane[u * UNIT + l] = there ? held[u][l] : T(0);
            }
        }
        for (int u = 0; u < IN - 1; ++u) {
#pragma HLS UNROLL
            for (int l = 0; l < UNIT; ++l) {
#pragma HLS UNROLL
                held[u][l] = held[u + OUT][l];
            }
        }
        return value;
    }

    // Counts what happened in a cycle: a word that came, a word that left.
    void count(bool more, bool less) {
#pragma HLS INLINE
        const bool empties = less && (more ? !enough : hungry);
        const bool few[4] = {units < OUT, units + IN < OUT, units < 2 * OUT, units + IN < 2 * OUT};
        const bool most[4] = {units + IN >= OUT, units + 2 * IN >= OUT, units + IN >= 2 * OUT,
                              units + 2 * IN >= 2 * OUT};
        const number<IN + OUT> counts[4] = {units, number<IN + OUT>(units + IN), number<IN + OUT>(units - OUT),
                                            number<IN + OUT>(units + (IN - OUT))};
        hungry = empties || (less ? (more ? few[3] : few[2]) : (more ? few[1] : few[0]));
        enough = empties ? IN >= OUT : (less ? (more ? most[3] : most[2]) : (more ? most[1] : most[0]));
        units =
            empties ? number<IN + OUT>(0) : (less ? (more ? counts[3] : counts[2]) : (more ? counts[1] : counts[0]));
    }
};

#endif  // SYSTOLIC_GEARBOX_H
