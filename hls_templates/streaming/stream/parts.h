// The channels of a pixel in parts, part after part: what concat and split have in common.
#ifndef SYSTOLIC_PARTS_H
#define SYSTOLIC_PARTS_H

#include "counter.h"

// Whether LANES divides every one of CHANNELS.
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
constexpr int most_of() {
    return LAST;
}
template <int FIRST, int SECOND, int... OTHERS>
constexpr int most_of() {
    return FIRST > most_of<SECOND, OTHERS...>() ? FIRST : most_of<SECOND, OTHERS...>();
}

// Where a block stands in a pixel whose parts have CHANNELS channels, in words of LANES channels.
template <int LANES, int... CHANNELS>
struct parts_t {
    static_assert(divides_all<LANES, CHANNELS...>(), "LANES divides the channels of every part");
    static constexpr int PARTS = sizeof...(CHANNELS);
    counter_t<PARTS> part;
    number<most_of<CHANNELS...>() / LANES> left;  // words of the part behind this one
    bool last;                                    // whether there are none

    parts_t() { begin(0); }

    void begin(int number_of) {
#pragma HLS INLINE
        const int words[PARTS] = {CHANNELS / LANES...};
        left = words[number_of] - 1;
        last = words[number_of] == 1;
    }

    // True after the pixel's last word.
    bool advance() {
#pragma HLS INLINE
        const bool ends = last && part.last;
        if (last) {
            for (int p = 0; p < PARTS; ++p) {
#pragma HLS UNROLL
                if (part.value == p) begin((p + 1) % PARTS);
            }
            part.next();
        } else {
            last = left == 1;
            --left;
        }
        return ends;
    }
};

#endif  // SYSTOLIC_PARTS_H
