// Several exact products in one DSP: operands lie side by side in one factor, products side by side in its product.
//
//   two weights     (w0 + w1·2^f) · a                  two PEs share an activation
//   two pixels      w · (a0 + a1·2^f)                  two pixels share a weight
//   four products   (w0 + w1·2^2f) · (a0 + a1·2^f)     two PEs × two pixels
//
// A chain of such products is summed before the fields are taken apart: as many terms as leave the sum of every field
// within f bits, low · terms ≥ −2^(f−1) and high · terms < 2^(f−1), over the corners of the operands' ranges. Then
// every field is exact: it is sign-extended, and what it borrowed is given back to the next field. f is the widest that
// the ports take: 27 × 18 bits on a DSP48E2, 25 × 18 on a DSP48E1, 48 for the sum. scheduler/streaming/area/packing.py
// is the same in Python.
#ifndef SYSTOLIC_PACKING_H
#define SYSTOLIC_PACKING_H

#include "datatype.h"

// What multiplies: logic, or a DSP by the width of its wider port.
constexpr int LUT = 0, DSP48E1 = 25, DSP48E2 = 27;
constexpr int NARROW_PORT = 18;   // bits of the narrower port, of either DSP
constexpr int WIDEST_FIELD = 23;  // two fields and their borrow in 48 bits

constexpr int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }

// Whether all of low … high, or every pair of such values ``shift`` bits apart, are signed numbers of ``port`` bits.
constexpr bool single_fits(int64_t low, int64_t high, int port) {
    return low >= -(int64_t(1) << (port - 1)) && high < (int64_t(1) << (port - 1));
}
constexpr bool pair_fits(int64_t low, int64_t high, int shift, int port) {
    return single_fits(low * (int64_t(1) << shift) + low, high * (int64_t(1) << shift) + high, port);
}

// How many products of A and B a field of `field` bits holds; 0 where it holds none.
template <class A, class B>
constexpr int terms_of(int field) {
    const int64_t low = lesser(lesser(A::low * B::high, A::high * B::low), A::low * B::low);
    const int64_t high = greater(greater(A::high * B::high, A::low * B::low), A::high * B::low);
    const int64_t half = field > 0 ? int64_t(1) << (field - 1) : 0;
    return half == 0 ? 0 : int(lesser((half - 1) / greater(high, 1), half / greater(-low, 1)));
}

// The widest field for two values of PAIR on the wide port and one of SINGLE on the narrow one; 0 where none fits.
template <class PAIR, class SINGLE>
constexpr int two_field(int port) {
    int widest = 0;
    for (int field = 1; field <= WIDEST_FIELD; ++field) {
        if (pair_fits(PAIR::low, PAIR::high, field, port)) widest = field;
    }
    return single_fits(SINGLE::low, SINGLE::high, NARROW_PORT) ? widest : 0;
}

// The widest field f for two weights 2f bits apart on the wide port and two activations f bits apart on the narrow one.
template <class WEIGHT, class VALUE>
constexpr int four_field(int port) {
    int widest = 0;
    for (int field = 1; field <= WIDEST_FIELD / 2; ++field) {
        if (pair_fits(WEIGHT::low, WEIGHT::high, 2 * field, port) &&
            pair_fits(VALUE::low, VALUE::high, field, NARROW_PORT)) {
            widest = field;
        }
    }
    return widest;
}

// The packings of these operands in a DSP of kind MULTIPLIER: bits of a field and terms of a chain, 0 where the packing
// does not fit. Operands of one bit are added and subtracted, without a DSP.
template <class WEIGHT, class VALUE, int MULTIPLIER>
struct packing_t {
    static constexpr bool dsp = MULTIPLIER != LUT && WEIGHT::bits > 1 && VALUE::bits > 1;
    static constexpr int port = dsp ? MULTIPLIER : NARROW_PORT;
    static constexpr int weights_field = dsp ? two_field<WEIGHT, VALUE>(port) : 0;
    static constexpr int pixels_field = dsp ? two_field<VALUE, WEIGHT>(port) : 0;
    static constexpr int products_field = dsp ? four_field<WEIGHT, VALUE>(port) : 0;
    static constexpr int weights_terms = terms_of<WEIGHT, VALUE>(weights_field);
    static constexpr int pixels_terms = terms_of<WEIGHT, VALUE>(pixels_field);
    static constexpr int products_terms = terms_of<WEIGHT, VALUE>(products_field);
};

#if SYSTOLIC_PACKED
typedef ap_int<48> chain_t;  // the DSP's P register

// Takes the lowest field off the chain, and gives its sum.
template <int FIELD>
inline ap_int<FIELD> take_field(chain_t &chain) {
#pragma HLS INLINE
    const ap_int<FIELD> low = chain;
    chain = (chain - low) >> FIELD;
    return low;
}

// a + b · 2^SHIFT: both as one factor.
template <int PORT, int SHIFT, class T>
inline ap_int<PORT> beside(T a, T b) {
#pragma HLS INLINE
    ap_int<PORT> both = b;
    both <<= SHIFT;
    both += a;
    return both;
}

// wide · narrow in the width of the sum. The tool sees sign-extended operands and makes the multiplier as wide as they
// are; under g++ this is forty times as fast as ap_int's own product of more than 32 bits.
template <class WIDE, class NARROW>
inline chain_t product_in_chain(const WIDE &wide, const NARROW &narrow) {
#pragma HLS INLINE
    chain_t product = wide;
    product *= narrow;
    return product;
}
#endif

#endif  // SYSTOLIC_PACKING_H
