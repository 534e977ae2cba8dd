// The shift register of a width converter, between words of IN units and words of OUT units. A unit has UNIT values,
// the greatest common divisor of both widths in lanes.
//
// A block calls the functions of a cycle in this order: ``put`` if it reads a word, ``get`` if it writes a word, and
// then ``count``. If one width divides the other, no value passes a multiplexer.
#ifndef SYSTOLIC_GEARBOX_H
#define SYSTOLIC_GEARBOX_H

#include "constant.h"
#include "counter.h"
#include "word.h"

// The number of stored units is kept in unary (thermometer) code: full[u] is set if more than u units are stored. A
// cycle then only selects bits, and does not wait for an addition and then for a comparison.
template <class T, int IN, int OUT, int UNIT>
struct gearbox {
    static constexpr int ROOM = IN + OUT - 1;               // the most units: a word may follow OUT − 1 stored units
    static constexpr int POWERS = bits_of<OUT - 1>::value;  // binary digits of a number of units below OUT
    T units[ROOM][UNIT];                                    // the stored values, the oldest unit first
    bool full[ROOM];

    gearbox() {
#pragma HLS ARRAY_PARTITION variable = units complete dim = 0
#pragma HLS ARRAY_PARTITION variable = full complete
        for (int u = 0; u < ROOM; ++u) {
#pragma HLS UNROLL
            for (int l = 0; l < UNIT; ++l) {
#pragma HLS UNROLL
                units[u][l] = 0;
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

    // Return whether fewer than OUT units are stored, so that there is room for a word.
    bool has_room() const {
#pragma HLS INLINE
        return !full[OUT - 1];
    }

    // Return whether one more word would make at least OUT units.
    bool fills_word() const {
#pragma HLS INLINE
        return IN >= OUT || full[larger(OUT - IN - 1, 0)];
    }

    // Converts the number of stored units, less than OUT, from unary to binary digits. From the greatest power of two
    // on, each digit that is set is subtracted by a shift of the unary code.
    void binary_count(bool (&digits)[POWERS]) const {
#pragma HLS INLINE
        bool rest[POWERS + 1][ROOM];
#pragma HLS ARRAY_PARTITION variable = rest complete dim = 0
        for (int u = 0; u < ROOM; ++u) {
#pragma HLS UNROLL
            rest[POWERS][u] = full[u];
        }
        for (int power = POWERS - 1; power >= 0; --power) {
#pragma HLS UNROLL
            const int by = 1 << power;
            digits[power] = rest[power + 1][smaller(by, ROOM) - 1];
            for (int u = 0; u < ROOM; ++u) {
#pragma HLS UNROLL
                const bool same = rest[power + 1][u], less = rest[power + 1][smaller(u + by, ROOM - 1)];
                rest[power][u] = (digits[power] & (u + by < ROOM) & less) | (!digits[power] & same);
            }
        }
    }

    // Appends a word to the stored units. A barrel shifter moves the word to its place, one power of two per stage. If
    // one width divides the other, no stage is built: either all of a word's units are equal (IN = 1), or the register
    // is empty when a word arrives (OUT = 1).
    void put(const word<T, IN * UNIT> &value) {
#pragma HLS INLINE
        T moved[ROOM][UNIT];
        bool digits[POWERS];
#pragma HLS ARRAY_PARTITION variable = moved complete dim = 0
#pragma HLS ARRAY_PARTITION variable = digits complete
        binary_count(digits);
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
                    if (IN > 1 && OUT > 1 && from >= 0 && digits[power]) moved[u][l] = moved[larger(from, 0)][l];
                }
            }
        }
        for (int u = 0; u < ROOM; ++u) {
#pragma HLS UNROLL
            for (int l = 0; l < UNIT; ++l) {
#pragma HLS UNROLL
                if (OUT == 1 || !full[u]) units[u][l] = moved[u][l];
            }
        }
    }

    // Removes and returns the first OUT units, with zeros for missing ones. ``more`` says that ``put`` has appended a
    // word in this cycle, which ``full`` does not include yet.
    word<T, OUT * UNIT> get(bool more) {
#pragma HLS INLINE
        word<T, OUT * UNIT> value;
        for (int u = 0; u < OUT; ++u) {
#pragma HLS UNROLL
            const bool present = full[u] || (more && (u < IN || full[larger(u - IN, 0)]));
            for (int l = 0; l < UNIT; ++l) {
#pragma HLS UNROLL
                value.lane[u * UNIT + l] = present ? units[u][l] : T(0);
            }
        }
        for (int u = 0; u < IN - 1; ++u) {
#pragma HLS UNROLL
            for (int l = 0; l < UNIT; ++l) {
#pragma HLS UNROLL
                units[u][l] = units[u + OUT][l];
            }
        }
        return value;
    }

    // Updates the number of stored units after a cycle: ``more`` if a word was appended, ``less`` if a word was
    // removed. If fewer than OUT units were stored, none remain after a removal.
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
