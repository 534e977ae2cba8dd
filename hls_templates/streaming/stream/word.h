// The words that streams transfer, and the integer types of their values.
//
// A word has LANES values, of one pixel or of several neighbouring pixels of a row. The values of a pixel are in
// adjacent lanes, its lowest channel first. A value is the vendor's ap_int of exactly BITS bits in synthesis and with
// SYSTOLIC_AP_INT, and a native integer in the fast simulation. Both give the same results.
#ifndef SYSTOLIC_WORD_H
#define SYSTOLIC_WORD_H

#include <cstdint>
#include <type_traits>

// The smallest native integer that holds BITS bits.
template <bool CONDITION, class YES, class NO>
using choice = typename std::conditional<CONDITION, YES, NO>::type;
template <int BITS>
using native_signed =
    choice<(BITS <= 8), int8_t, choice<(BITS <= 16), int16_t, choice<(BITS <= 32), int32_t, int64_t>>>;
template <int BITS, bool SIGNED>
using native_integer = choice<SIGNED, native_signed<BITS>, typename std::make_unsigned<native_signed<BITS>>::type>;

#if defined(__SYNTHESIS__) || defined(SYSTOLIC_AP_INT)
#include <ap_int.h>
#define SYSTOLIC_PACKED 1  // multiply in the same way as the DSPs, with several products per DSP (packing.h)
template <int BITS, bool SIGNED>
using integer = typename std::conditional<SIGNED, ap_int<BITS>, ap_uint<BITS>>::type;
#else
#define SYSTOLIC_PACKED 0
template <int BITS, bool SIGNED>
using integer = native_integer<BITS, SIGNED>;
#endif

// The type of an element of a constant array: exactly BITS bits in synthesis. In every other build it is a native
// integer, because a compiler takes very long to construct every weight as an ap_int.
#if defined(__SYNTHESIS__)
template <int BITS, bool SIGNED>
using constant = integer<BITS, SIGNED>;
#else
template <int BITS, bool SIGNED>
using constant = native_integer<BITS, SIGNED>;
#endif

// The unit of transfer of a stream: LANES values of type T, one per lane. A block reads or writes at most one word per
// stream and cycle.
template <class T, int LANES>
struct word {
    T lane[LANES];
};

// A word whose values are all 0.
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
