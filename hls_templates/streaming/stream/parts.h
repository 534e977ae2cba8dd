// The channels of a pixel in parts, part after part: what concat and split have in common.
#ifndef SYSTOLIC_PARTS_H
#define SYSTOLIC_PARTS_H

// Whether LANES divides every one of CHANNELS.
template <int LANES>
constexpr bool divides_all() {
    return true;
}
template <int LANES, int FIRST, int... OTHERS>
constexpr bool divides_all() {
    return FIRST % LANES == 0 && divides_all<LANES, OTHERS...>();
}

// Where a block stands in a pixel whose parts have CHANNELS channels, in words of LANES channels.
template <int LANES, int... CHANNELS>
struct parts_t {
    static_assert(divides_all<LANES, CHANNELS...>(), "LANES divides the channels of every part");
    int part, word;

    // True after the pixel's last word.
    bool advance() {
#pragma HLS INLINE
        const int words[] = {CHANNELS / LANES...};
        if (++word < words[part]) return false;
        word = 0;
        if (++part < int(sizeof...(CHANNELS))) return false;
        part = 0;
        return true;
    }
};

#endif  // SYSTOLIC_PARTS_H
