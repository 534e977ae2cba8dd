// Datatypes of the values in streams and of weights.
//
//   int_t<BITS>, uint_t<BITS>   two's complement and unsigned integers of at most 32 bits
//   narrow_t<BITS>              signed integers without the least value (−127 … 127 for 8 bits); narrow_t<2> is TERNARY
//   bipolar_t                   −1 and +1, stored as 0 and 1
//
// Every datatype has:
//   carrier          the type that streams and memories store
//   value_t          the type of the integer that a carrier represents
//   bits             bits of a carrier
//   bipolar          whether the datatype is bipolar_t; its carrier is not its value
//   low, high        the least and the greatest value
//   value(carried)   the integer that the carrier represents
#ifndef SYSTOLIC_DATATYPE_H
#define SYSTOLIC_DATATYPE_H

#include "word.h"

// An integer of BITS bits. NARROW excludes the least signed value.
template <int BITS, bool SIGNED, bool NARROW>
struct whole_t {
    typedef integer<BITS, SIGNED> carrier;
    typedef integer<BITS, SIGNED> value_t;
    static constexpr int bits = BITS;
    static constexpr bool bipolar = false;
    static constexpr int64_t low = SIGNED ? (NARROW ? 1 : 0) - (int64_t(1) << (BITS - 1)) : 0;
    static constexpr int64_t high = (int64_t(1) << (BITS - (SIGNED ? 1 : 0))) - 1;
    static value_t value(carrier carried) {
#pragma HLS INLINE
        return carried;
    }
};

template <int BITS>
using int_t = whole_t<BITS, true, false>;
template <int BITS>
using uint_t = whole_t<BITS, false, false>;
template <int BITS>
using narrow_t = whole_t<BITS, true, true>;

struct bipolar_t {
    typedef integer<1, false> carrier;
    typedef integer<2, true> value_t;
    static constexpr int bits = 1;
    static constexpr bool bipolar = true;
    static constexpr int64_t low = -1;
    static constexpr int64_t high = 1;
    static value_t value(carrier carried) {
#pragma HLS INLINE
        return carried != 0 ? value_t(1) : value_t(-1);
    }
};

// The type of a sum that BITS signed bits hold exactly. The fast simulation always uses 32 bits, because arithmetic on
// narrower types is slower on a CPU.
#if SYSTOLIC_PACKED
template <int BITS>
using exact_t = ap_int<BITS>;
#else
template <int BITS>
using exact_t = int32_t;
#endif

#endif  // SYSTOLIC_DATATYPE_H
