// Several exact products in one DSP. A factor holds two operands in separate bit fields, and the fields of the product
// hold the products of the operands.
//
//   two weights     (w0 + w1·2^f) · a                  two PEs share an activation
//   two pixels      w · (a0 + a1·2^f)                  two pixels share a weight
//   four products   (w0 + w1·2^2f) · (a0 + a1·2^f)     two PEs × two pixels
//
// A chain of such products is added up before the fields are separated. The sum of every field has to fit f bits:
// low · terms ≥ −2^(f−1) and high · terms < 2^(f−1), where low and high are the least and the greatest product. Then
// every field is exact: its value is its bits, sign-extended. A negative field has borrowed from the next field, and
// extract_field gives this back.
//
// The field width f is the widest for which the factors fit the ports: 27 × 18 bits on a DSP48E2, 25 × 18 bits on a
// DSP48E1, and 48 bits for the sum. scheduler/streaming/area/packing.py computes the same values in Python.
#ifndef SYSTOLIC_PACKING_H
#define SYSTOLIC_PACKING_H

#include "datatype.h"

// The values of MULTIPLIER: logic, or a DSP, given by the bits of its wider multiplier port.
constexpr int LUT = 0, DSP48E1 = 25, DSP48E2 = 27;
constexpr int NARROW_PORT = 18;   // bits of the narrower multiplier port of either DSP
constexpr int WIDEST_FIELD = 23;  // bits; two fields and a borrow fit the 48 bits of the sum

constexpr int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }

// Return whether every value of low … high fits ``port`` signed bits.
constexpr bool single_fits(int64_t low, int64_t high, int port) {
    return low >= -(int64_t(1) << (port - 1)) && high < (int64_t(1) << (port - 1));
}
// Return whether every a + b · 2^shift, with a and b of low … high, fits ``port`` signed bits.
constexpr bool pair_fits(int64_t low, int64_t high, int shift, int port) {
    return single_fits(low * (int64_t(1) << shift) + low, high * (int64_t(1) << shift) + high, port);
}

// The most products of an A and a B whose sum always fits a field of ``field`` bits; 0 if not even one product fits.
template <class A, class B>
constexpr int terms_of(int field) {
    const int64_t low = lesser(lesser(A::low * B::high, A::high * B::low), A::low * B::low);
    const int64_t high = greater(greater(A::high * B::high, A::low * B::low), A::high * B::low);
    const int64_t half = field > 0 ? int64_t(1) << (field - 1) : 0;
    return half == 0 ? 0 : int(lesser((half - 1) / greater(high, 1), half / greater(-low, 1)));
}

// The widest field, in bits, for two values of PAIR on the wide port and one of SINGLE on the narrow one; 0 if none
// fits.
template <class PAIR, class SINGLE>
constexpr int two_field(int port) {
    int widest = 0;
    for (int field = 1; field <= WIDEST_FIELD; ++field) {
        if (pair_fits(PAIR::low, PAIR::high, field, port)) widest = field;
    }
    return single_fits(SINGLE::low, SINGLE::high, NARROW_PORT) ? widest : 0;
}

// The widest field f, in bits, for two weights 2f bits apart on the wide port and two activations f bits apart on the
// narrow port; 0 if none fits.
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

// The packings of WEIGHT and VALUE that are exact in a DSP of kind MULTIPLIER. A packing that does not fit has 0 bits
// and 0 terms.
//   dsp              whether DSPs multiply; products with an operand of one bit are additions or subtractions in logic
//   port             bits of the wider port
//   weights_field    bits of a field, if two PEs share an activation
//   pixels_field     bits of a field, if two pixels share a weight
//   products_field   bits of a field, if a DSP multiplies two PEs' weights by two pixels' activations
//   …_terms          the most products in a chain of the packing of the same name
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
typedef ap_int<48> chain_t;  // the sum of a chain of products, in the DSP's P register

// Removes the lowest field from the chain and returns the sum in this field. Subtracting the signed field before the
// shift gives back what a negative field borrowed from the next one.
template <int FIELD>
inline ap_int<FIELD> extract_field(chain_t &chain) {
#pragma HLS INLINE
    const ap_int<FIELD> low = chain;
    chain = (chain - low) >> FIELD;
    return low;
}

// Returns a + b · 2^SHIFT, one factor that holds both operands.
template <int PORT, int SHIFT, class T>
inline ap_int<PORT> pack_pair(T a, T b) {
#pragma HLS INLINE
    ap_int<PORT> both = b;
    both <<= SHIFT;
    both += a;
    return both;
}

// Returns wide · narrow with the bits of the sum. The tool recognises sign-extended operands and builds a multiplier of
// their original width. Under g++ this product is forty times as fast as ap_int's own product of more than 32 bits.
template <class WIDE, class NARROW>
inline chain_t product_in_chain(const WIDE &wide, const NARROW &narrow) {
#pragma HLS INLINE
    chain_t product = wide;
    product *= narrow;
    return product;
}
#endif

#endif  // SYSTOLIC_PACKING_H
