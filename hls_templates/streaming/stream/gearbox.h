// Between words of IN units and words of OUT units: a shift register of IN + OUT − 1 units at most, each of UNIT values,
// the widths' common divisor. Where one width divides the other, no value needs a multiplexer on its way in or out.
#ifndef SYSTOLIC_GEARBOX_H
#define SYSTOLIC_GEARBOX_H

#include "constant.h"
#include "counter.h"
#include "word.h"

// How many units it holds is counted in ones, ``full[u]`` where there are more than u: what a cycle makes of them is a
// choice of bits, and no cycle waits for a sum and then for a comparison.
template <class T, int IN, int OUT, int UNIT>
struct gearbox {
    static constexpr int ROOM = IN + OUT - 1;
    static constexpr int POWERS = bits_of<OUT - 1>::value;  // of two, of which a place in the register is the sum
    T held[ROOM][UNIT];
    bool full[ROOM];

    gearbox() {
#pragma HLS ARRAY_PARTITION variable = held complete dim = 0
#pragma HLS ARRAY_PARTITION variable = full complete
        for (int u = 0; u < ROOM; ++u) {
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
        for (int u = 0; u < ROOM; ++u) {
#pragma HLS UNROLL
            full[u] = false;
        }
    }

    // Whether it holds less than OUT units, so that it may take a word.
    bool hungry() const {
#pragma HLS INLINE
        return !full[OUT - 1];
    }

    // Whether it would hold OUT units with a word more.
    bool enough() const {
#pragma HLS INLINE
        return IN >= OUT || full[larger(OUT - IN - 1, 0)];
    }

    // The powers of two that what is held, less than OUT units, is the sum of: from the greatest on, each looks at what
    // those before have left.
    void take_powers(bool (&powers)[POWERS]) const {
#pragma HLS INLINE
        bool left[POWERS + 1][ROOM];
#pragma HLS ARRAY_PARTITION variable = left complete dim = 0
        for (int u = 0; u < ROOM; ++u) {
#pragma HLS UNROLL
            left[POWERS][u] = full[u];
        }
        for (int power = POWERS - 1; power >= 0; --power) {
#pragma HLS UNROLL
            const int by = 1 << power;
            powers[power] = left[power + 1][smaller(by, ROOM) - 1];
            for (int u = 0; u < ROOM; ++u) {
#pragma HLS UNROLL
                const bool same = left[power + 1][u], less = left[power + 1][smaller(u + by, ROOM - 1)];
                left[power][u] = (powers[power] & (u + by < ROOM) & less) | (!powers[power] & same);
            }
        }
    }

    // The word behind what is held: moved there by powers of two, and by none where one width divides the other.
    void put(const word<T, IN * UNIT> &value) {
#pragma HLS INLINE
        T moved[ROOM][UNIT];
        bool powers[POWERS];
#pragma HLS ARRAY_PARTITION variable = moved complete dim = 0
#pragma HLS ARRAY_PARTITION variable = powers complete
        take_powers(powers);
        for (int u = 0; u < ROOM; ++u) {
#pragma HLS UNROLL
            for (int l = 0; l < UNIT; ++l) {
#pragma HLS UNROLL
                moved[u][l] = u < IN || IN == 1 ? value.lane[smaller(u, IN - 1) * UNIT + l] : T(0);
            }
        }
        for (int power = 0; power < POWERS; ++power) {
#pragma HLS UNROLL
            for (int u = ROOM - 1; u >= 0; --u) {
#pragma HLS UNROLL
                const int from = u - (1 << power);
                for (int l = 0; l < UNIT; ++l) {
#pragma HLS UNROLL
                    if (IN > 1 && OUT > 1 && from >= 0 && powers[power]) moved[u][l] = moved[larger(from, 0)][l];
                }
            }
        }
        for (int u = 0; u < ROOM; ++u) {
#pragma HLS UNROLL
            for (int l = 0; l < UNIT; ++l) {
#pragma HLS UNROLL
                if (OUT == 1 || !full[u]) held[u][l] = moved[u][l];
            }
        }
    }

    // The first OUT units; zeros for those that are missing. more: with a word that ``put`` has just brought.
    word<T, OUT * UNIT> get(bool more) {
#pragma HLS INLINE
        word<T, OUT * UNIT> value;
        for (int u = 0; u < OUT; ++u) {
#pragma HLS UNROLL
            const bool there = full[u] || (more && (u < IN || full[larger(u - IN, 0)]));
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

    // Counts what happened in a cycle: a word that came, a word that left. With less than a word it is empty then.
    void count(bool more, bool less) {
#pragma HLS INLINE
        for (int u = ROOM - 1; u >= 0; --u) {
#pragma HLS UNROLL
            const bool before = full[u], after = u < IN || full[larger(u - IN, 0)];
            full[u] = more ? after : before;
        }
        for (int u = 0; u < ROOM; ++u) {
#pragma HLS UNROLL
            const bool before = full[u], after = u + OUT < ROOM && full[smaller(u + OUT, ROOM - 1)];
            full[u] = less ? after : before;
        }
    }
};

#endif  // SYSTOLIC_GEARBOX_H
