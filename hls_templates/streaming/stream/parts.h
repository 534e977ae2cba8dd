// The position of a block in a pixel whose channels consist of several parts, one after the other. concat (concat.h)
// and split (split.h) share it.
#ifndef SYSTOLIC_PARTS_H
#define SYSTOLIC_PARTS_H

#include "counter.h"

// Return whether LANES divides each of the numbers that follow it.
template <int LANES>
constexpr bool divides_all() {
    return true;
}
template <int LANES, int FIRST, int... OTHERS>
constexpr bool divides_all() {
    return FIRST % LANES == 0 && divides_all<LANES, OTHERS...>();
}

// The greatest of the numbers.
template <int LAST>
constexpr int max_of() {
    return LAST;
}
template <int FIRST, int SECOND, int... OTHERS>
constexpr int max_of() {
    return FIRST > max_of<SECOND, OTHERS...>() ? FIRST : max_of<SECOND, OTHERS...>();
}

// The part and the word of the part that a block processes next. Part p has the p-th of CHANNELS channels, in words of
// LANES channels.
template <int LANES, int... CHANNELS>
struct parts_t {
    static_assert(divides_all<LANES, CHANNELS...>(), "LANES must divide the channels of every part");
    static constexpr int PARTS = sizeof...(CHANNELS);
    counter_t<PARTS> part;                            // the number of the part
    number<max_of<CHANNELS...>() / LANES> remaining;  // words of the part that follow the next word
    bool last;                                        // whether remaining is 0

    parts_t() { begin(0); }

    // Moves to the first word of a part.
    void begin(int part_number) {
#pragma HLS INLINE
        const int words[PARTS] = {CHANNELS / LANES...};
        remaining = words[part_number] - 1;
        last = words[part_number] == 1;
    }

    // Moves to the next word. Returns whether the previous word was the pixel's last.
    bool advance() {
#pragma HLS INLINE
        const bool ends = last && part.last;
        if (last) {
            // The loop makes every argument of begin a constant, so that no table is indexed by a run-time value.
            for (int p = 0; p < PARTS; ++p) {
#pragma HLS UNROLL
                if (part.value == p) begin((p + 1) % PARTS);
            }
            part.next();
        } else {
            last = remaining == 1;
            --remaining;
        }
        return ends;
    }
};

#endif  // SYSTOLIC_PARTS_H
