// What the streams of a dataflow accelerator carry: ``LANES`` values of one pixel (or of several, pixel by pixel),
// the least channel in lane 0. Synthesis and SYSTOLIC_AP_INT take the vendor's ap_int of exactly BITS bits, the fast
// simulation the native integer that holds them; both give the same values.
#ifndef SYSTOLIC_WORD_H
#define SYSTOLIC_WORD_H

#include <cstdint>
#include <type_traits>

#if defined(__SYNTHESIS__) || defined(SYSTOLIC_AP_INT)
#include <ap_int.h>
#define SYSTOLIC_PACKED 1  // multiply as the DSP does, several products at once
template <int BITS, bool SIGNED>
using integer = typename std::conditional<SIGNED, ap_int<BITS>, ap_uint<BITS>>::type;
#else
#define SYSTOLIC_PACKED 0
template <int BITS, bool SIGNED>
using integer = typename std::conditional<
    (BITS <= 8), typename std::conditional<SIGNED, int8_t, uint8_t>::type,
    typename std::conditional<(BITS <= 16), typename std::conditional<SIGNED, int16_t, uint16_t>::type,
                              typename std::conditional<(BITS <= 32), typename std::conditional<SIGNED, int32_t, uint32_t>::type,
                                                        typename std::conditional<SIGNED, int64_t, uint64_t>::type>::type>::type>::type;
#endif

// A constant as its array holds it: for synthesis of exactly BITS bits; otherwise the native integer, for a program that
// constructs every weight as an ap_int takes a compiler very long.
#if defined(__SYNTHESIS__)
template <int BITS, bool SIGNED>
using constant = integer<BITS, SIGNED>;
#else
template <int BITS, bool SIGNED>
using constant = typename std::conditional<
    (BITS <= 8), typename std::conditional<SIGNED, int8_t, uint8_t>::type, typename std::conditional<SIGNED, int16_t, uint16_t>::type>::type;
#endif

template <class T, int LANES>
struct word {
    T lane[LANES];
};

template <class W>
inline W zeros() {
#pragma HLS INLINE
    W value;
    for (unsigned l = 0; l < sizeof(value.lane) / sizeof(value.lane[0]); ++l) {
#pragma HLS UNROLL
        value.lane[l] = 0;
    }
    return value;
}

#endif  // SYSTOLIC_WORD_H
