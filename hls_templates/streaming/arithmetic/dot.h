// The arithmetic of the matrix-vector units: dot products of SIMD weights and values, for PE channels × PIXELS pixels
// in one cycle.
//
// MULTIPLIER (packing.h) selects DSPs or logic. Builds for synthesis and builds with ap_int multiply as the hardware
// does:
//   DSPs    several products per DSP
//   logic   XNOR and popcount for bipolar × bipolar, a change of sign for bipolar × another type, and a small
//           multiplier for every other product
//
// The fast simulation uses ordinary products, in an order that a compiler can vectorise. All builds give the same sums.
#ifndef SYSTOLIC_DOT_H
#define SYSTOLIC_DOT_H

#include "counter.h"
#include "datatype.h"
#include "packing.h"

#if SYSTOLIC_PACKED

// The functions below are also instantiated for packings of 0 terms. Nothing calls these instances, but their constants
// must be legal: a field or chain of 0 would not compile.
constexpr int at_least_one(int value) { return value > 1 ? value : 1; }
// The number of products in a chain: at most ``max_terms``, the longest exact chain, and at most ``simd``, because
// every step of the unrolled chain becomes hardware.
constexpr int chain_terms(int max_terms, int simd) { return at_least_one(max_terms < simd ? max_terms : simd); }

// Returns weight · value. DSP selects a DSP for this one product; otherwise it is built in logic.
template <class WEIGHT, class VALUE, bool DSP>
inline ap_int<WEIGHT::bits + VALUE::bits + 1> product_of(typename WEIGHT::carrier weight,
                                                         typename VALUE::carrier value) {
#pragma HLS INLINE
    typedef ap_int<WEIGHT::bits + VALUE::bits + 1> product_t;
    const product_t w = WEIGHT::value(weight), v = VALUE::value(value);
    if (WEIGHT::bipolar) return weight != 0 ? v : product_t(-v);
    if (VALUE::bipolar) return value != 0 ? w : product_t(-w);
    if (DSP) {
        const product_t product = WEIGHT::value(weight) * VALUE::value(value);
#pragma HLS BIND_OP variable = product op = mul impl = dsp
        return product;
    }
    const product_t product = WEIGHT::value(weight) * VALUE::value(value);
#pragma HLS BIND_OP variable = product op = mul impl = fabric
    return product;
}

// The greatest absolute value of a datatype.
template <class VALUE>
constexpr long max_magnitude() {
    return VALUE::high > -VALUE::low ? VALUE::high : -VALUE::low;
}

// The type of a sum of SIMD products, wide enough for the greatest one. The products of a cycle are added up in this
// separate variable, and then added to the accumulator at once. A tool that added each product to the accumulator would
// build a loop-carried path of SIMD additions.
template <class WEIGHT, class VALUE, int SIMD>
using tile_sum_t = ap_int<bits_of<SIMD * max_magnitude<WEIGHT>() * max_magnitude<VALUE>()>::value + 1>;

// sum += Σ_s weight[pe][s] · value[x · SIMD + s], with one product per multiplier.
template <class WEIGHT, class VALUE, int MULTIPLIER, int PE, int SIMD, int PIXELS, class SUM>
inline void add_products(const typename WEIGHT::carrier weight[PE][SIMD],
                         const typename VALUE::carrier value[PIXELS * SIMD], int pe, int x, SUM &sum) {
#pragma HLS INLINE
    tile_sum_t<WEIGHT, VALUE, SIMD> total = 0;
    for (int s = 0; s < SIMD; ++s) {
#pragma HLS UNROLL
        if (WEIGHT::bipolar && VALUE::bipolar) {
            total += weight[pe][s] == value[x * SIMD + s] ? 1 : 0;  // XNOR and popcount
        } else {
            total += product_of<WEIGHT, VALUE, packing_t<WEIGHT, VALUE, MULTIPLIER>::dsp>(weight[pe][s],
                                                                                          value[x * SIMD + s]);
        }
    }
    // If both are bipolar, ``total`` of the SIMD products are +1 and the others are −1.
    sum += WEIGHT::bipolar && VALUE::bipolar ? SUM(2 * total - SIMD) : SUM(total);
}

// The same sums for PEs pe and pe + 1 of pixel x. Each DSP computes two products that share a value.
template <class WEIGHT, class VALUE, int MULTIPLIER, int PE, int SIMD, int PIXELS, class SUM>
inline void add_two_weights(const typename WEIGHT::carrier weight[PE][SIMD],
                            const typename VALUE::carrier value[PIXELS * SIMD], int pe, int x, SUM &sum0, SUM &sum1) {
#pragma HLS INLINE
    typedef packing_t<WEIGHT, VALUE, MULTIPLIER> packing;
    constexpr int FIELD = at_least_one(packing::weights_field);
    constexpr int TERMS = chain_terms(packing::weights_terms, SIMD);
    tile_sum_t<WEIGHT, VALUE, SIMD> total0 = 0, total1 = 0;
    for (int begin = 0; begin < SIMD; begin += TERMS) {
#pragma HLS UNROLL
        chain_t chain = 0;
        for (int t = 0; t < TERMS; ++t) {
#pragma HLS UNROLL
            const int s = begin + t;
            if (s < SIMD) {
                chain += product_in_chain(
                    pack_pair<packing::port, FIELD>(WEIGHT::value(weight[pe][s]), WEIGHT::value(weight[pe + 1][s])),
                    VALUE::value(value[x * SIMD + s]));
            }
        }
        total0 += extract_field<FIELD>(chain);
        total1 += tile_sum_t<WEIGHT, VALUE, SIMD>(chain);
    }
    sum0 += SUM(total0);
    sum1 += SUM(total1);
}

// The same sums for pixels x and x + 1 of PE pe. Each DSP computes two products that share a weight.
template <class WEIGHT, class VALUE, int MULTIPLIER, int PE, int SIMD, int PIXELS, class SUM>
inline void add_two_pixels(const typename WEIGHT::carrier weight[PE][SIMD],
                           const typename VALUE::carrier value[PIXELS * SIMD], int pe, int x, SUM &sum0, SUM &sum1) {
#pragma HLS INLINE
    typedef packing_t<WEIGHT, VALUE, MULTIPLIER> packing;
    constexpr int FIELD = at_least_one(packing::pixels_field);
    constexpr int TERMS = chain_terms(packing::pixels_terms, SIMD);
    tile_sum_t<WEIGHT, VALUE, SIMD> total0 = 0, total1 = 0;
    for (int begin = 0; begin < SIMD; begin += TERMS) {
#pragma HLS UNROLL
        chain_t chain = 0;
        for (int t = 0; t < TERMS; ++t) {
#pragma HLS UNROLL
            const int s = begin + t;
            if (s < SIMD) {
                chain += product_in_chain(pack_pair<packing::port, FIELD>(VALUE::value(value[x * SIMD + s]),
                                                                          VALUE::value(value[(x + 1) * SIMD + s])),
                                          WEIGHT::value(weight[pe][s]));
            }
        }
        total0 += extract_field<FIELD>(chain);
        total1 += tile_sum_t<WEIGHT, VALUE, SIMD>(chain);
    }
    sum0 += SUM(total0);
    sum1 += SUM(total1);
}

// The same sums for PEs pe and pe + 1 of pixels x and x + 1. Each DSP computes four products.
template <class WEIGHT, class VALUE, int MULTIPLIER, int PE, int SIMD, int PIXELS, class SUM>
inline void add_four_products(const typename WEIGHT::carrier weight[PE][SIMD],
                              const typename VALUE::carrier value[PIXELS * SIMD], int pe, int x, SUM sum[PIXELS][PE]) {
#pragma HLS INLINE
    typedef packing_t<WEIGHT, VALUE, MULTIPLIER> packing;
    constexpr int FIELD = at_least_one(packing::products_field);
    constexpr int TERMS = chain_terms(packing::products_terms, SIMD);
    tile_sum_t<WEIGHT, VALUE, SIMD> total[4] = {0, 0, 0, 0};  // at 2 · (0 or 1 for the PE) + (0 or 1 for the pixel)
#pragma HLS ARRAY_PARTITION variable = total complete
    for (int begin = 0; begin < SIMD; begin += TERMS) {
#pragma HLS UNROLL
        chain_t chain = 0;
        for (int t = 0; t < TERMS; ++t) {
#pragma HLS UNROLL
            const int s = begin + t;
            if (s < SIMD) {
                chain += product_in_chain(
                    pack_pair<packing::port, 2 * FIELD>(WEIGHT::value(weight[pe][s]), WEIGHT::value(weight[pe + 1][s])),
                    pack_pair<NARROW_PORT, FIELD>(VALUE::value(value[x * SIMD + s]),
                                                  VALUE::value(value[(x + 1) * SIMD + s])));
            }
        }
        for (int k = 0; k < 3; ++k) {
#pragma HLS UNROLL
            total[k] += extract_field<FIELD>(chain);
        }
        total[3] += tile_sum_t<WEIGHT, VALUE, SIMD>(chain);
    }
    for (int k = 0; k < 4; ++k) {
#pragma HLS UNROLL
        sum[x + k % 2][pe + k / 2] += SUM(total[k]);
    }
}

// The same sums for PEs pe and pe + 1 of pixels x and x + 1, as far as these PEs and pixels exist. Uses the packing
// with the most products per DSP that is exact and whose operands exist.
template <class WEIGHT, class VALUE, int MULTIPLIER, int PE, int SIMD, int PIXELS, class SUM>
inline void add_two_by_two(const typename WEIGHT::carrier weight[PE][SIMD],
                           const typename VALUE::carrier value[PIXELS * SIMD], int pe, int x, SUM sum[PIXELS][PE]) {
#pragma HLS INLINE
    typedef packing_t<WEIGHT, VALUE, MULTIPLIER> packing;
    const bool pair_pe = pe + 1 < PE, pair_x = x + 1 < PIXELS;
    if (packing::products_terms > 0 && pair_pe && pair_x) {
        add_four_products<WEIGHT, VALUE, MULTIPLIER, PE, SIMD, PIXELS>(weight, value, pe, x, sum);
        return;
    }
    for (int i = 0; i < 2; ++i) {
#pragma HLS UNROLL
        if (packing::weights_terms > 0 && pair_pe) {
            if (x + i < PIXELS) {
                add_two_weights<WEIGHT, VALUE, MULTIPLIER, PE, SIMD, PIXELS>(weight, value, pe, x + i, sum[x + i][pe],
                                                                             sum[x + i][pe + 1]);
            }
        } else if (packing::pixels_terms > 0 && pair_x) {
            if (pe + i < PE) {
                add_two_pixels<WEIGHT, VALUE, MULTIPLIER, PE, SIMD, PIXELS>(weight, value, pe + i, x, sum[x][pe + i],
                                                                            sum[x + 1][pe + i]);
            }
        } else if (x + i < PIXELS) {
            for (int j = 0; j < 2; ++j) {
#pragma HLS UNROLL
                if (pe + j < PE) {
                    add_products<WEIGHT, VALUE, MULTIPLIER, PE, SIMD, PIXELS>(weight, value, pe + j, x + i,
                                                                              sum[x + i][pe + j]);
                }
            }
        }
    }
}

#endif

// sum[x][pe] += Σ_s weight[pe][s] · value[x · SIMD + s], for every PE and pixel. Callers unroll this into one cycle.
template <class WEIGHT, class VALUE, int MULTIPLIER, int PE, int SIMD, int PIXELS, class SUM>
inline void multiply_accumulate(const typename WEIGHT::carrier weight[PE][SIMD],
                                const typename VALUE::carrier value[PIXELS * SIMD], SUM sum[PIXELS][PE]) {
#pragma HLS INLINE
#if SYSTOLIC_PACKED
    for (int pe = 0; pe < PE; pe += 2) {
#pragma HLS UNROLL
        for (int x = 0; x < PIXELS; x += 2) {
#pragma HLS UNROLL
            add_two_by_two<WEIGHT, VALUE, MULTIPLIER, PE, SIMD, PIXELS>(weight, value, pe, x, sum);
        }
    }
#else
    for (int pe = 0; pe < PE; ++pe) {
        for (int x = 0; x < PIXELS; ++x) {
            SUM total = 0;
            for (int s = 0; s < SIMD; ++s) {
                total += WEIGHT::value(weight[pe][s]) * VALUE::value(value[x * SIMD + s]);
            }
            sum[x][pe] += total;
        }
    }
#endif
}

#endif  // SYSTOLIC_DOT_H
