// Several exact products a DSP: operands side by side in one factor, products side by side in its product.
//
//   two weights     (w0 + w1·2^f) · a                  two PEs share an activation
//   two pixels      w · (a0 + a1·2^f)                  two pixels share a weight
//   four products   (w0 + w1·2^2f) · (a0 + a1·2^f)     two PEs × two pixels
//
// A chain of such products is summed before it is taken apart, as many as leave every field's sum within f bits:
// low · terms ≥ −2^(f−1) and high · terms < 2^(f−1) over the corners of the operands' ranges. A field is then exact: its
// own sign extended, its borrow given back to the next one. f is the widest that the ports take: 27 × 18 bits of a
// DSP48E2, 25 × 18 of a DSP48E1, 48 of the sum. scheduler/streaming/area/packing.py says the same in Python.
#ifndef SYSTOLIC_PACKING_H
#define SYSTOLIC_PACKING_H

#include "datatype.h"

// What multiplies: logic, or a DSP by the width of its wider port.
constexpr int LUT = 0, DSP48E1 = 25, DSP48E2 = 27;
constexpr int NARROW_PORT = 18;   // the other one
constexpr int WIDEST_FIELD = 23;  // two fields and their borrow in 48 bits

constexpr int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }

// Whether low … high is a signed number of `port` bits, and whether a pair of them `shift` bits apart is.
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

// The widest field for two of PAIR on the wide port and one of SINGLE on the narrow one; 0 where there is none.
template <class PAIR, class SINGLE>
constexpr int two_field(int port) {
    int widest = 0;
    for (int field = 1; field <= WIDEST_FIELD; ++field) {
        if (pair_fits(PAIR::low, PAIR::high, field, port)) widest = field;
    }
    return single_fits(SINGLE::low, SINGLE::high, NARROW_PORT) ? widest : 0;
}

// The widest field for two weights 2f apart on the wide port and two activations f apart on the narrow one.
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

// What a DSP of MULTIPLIER does for these operands: a field of 0 bits is a packing that there is not. Operands of one
// bit are added and subtracted; no DSP is asked for them.
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

// The lowest field's sum; the chain is left with the others.
template <int FIELD>
inline ap_int<FIELD> take_field(chain_t &chain) {
#pragma HLS INLINE
    const ap_int<FIELD> low = chain;
    chain = (chain - low) >> FIELD;
    return low;
}

// (a, b) as one factor, b `SHIFT` bits above a.
template <int PORT, int SHIFT, class T>
inline ap_int<PORT> beside(T a, T b) {
#pragma HLS INLINE
    ap_int<PORT> both = b;
    both <<= SHIFT;
    both += a;
    return both;
}

// In the width of the sum: operands are extended, so that the multiplier is as wide as they are and no wider. Under g++
// this is forty times as fast as ap_int's own product of more than 32 bits.
template <class WIDE, class NARROW>
inline chain_t product_in_chain(const WIDE &wide, const NARROW &narrow) {
#pragma HLS INLINE
    chain_t product = wide;
    product *= narrow;
    return product;
}
#endif

#endif  // SYSTOLIC_PACKING_H
