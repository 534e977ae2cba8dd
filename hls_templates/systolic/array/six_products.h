// Six products of 4 bits in a DSP48E2: three weights of neighbouring columns by two activations of neighbouring
// positions.
//
//   (w2 · 2^14 + w1 · 2^7 + w0) · (a1 · 2^21 + a0) + 64 · (1 + 2^7 + … + 2^35)
//
// A product of −7…7 and −8…7 is in −56…56. With 64 added to each, a field of 7 bits is in 8…120, so that no field
// borrows from the field above. The product is the field minus 64, which inverts the field's uppermost bit. A field has
// no room for a sum of two products, so that nothing is accumulated in the DSPs. The lanes are summed by adders of
// three operands, which take one LUT per bit (UG574).
//
// The HLS tool maps this expression to one DSP because of its form (UG1399, "DSP Multi-Operation Matching"): a signed
// product of 18 × 26 bits, a sum of 48 bits that is its only reader, types of exactly these widths, and no BIND_OP,
// which would separate the two. The 64 in each field are then the constant at the DSP's C port.
#ifndef SYSTOLIC_SIX_PRODUCTS_H
#define SYSTOLIC_SIX_PRODUCTS_H

#include "types.h"

static const bool SIX_PRODUCTS = PACK_COLUMNS == 3;
static const int SIX_COLUMNS = 3, SIX_POSITIONS = 2, SIX_FIELDS = SIX_COLUMNS * SIX_POSITIONS;

#if SYSTOLIC_PACKED
static const int SIX_SHIFT = 7;
typedef ap_int<(SIX_COLUMNS - 1) * SIX_SHIFT + 4> six_weights_t;  // the DSP's B port
// One bit more than the fields: −8 · 2^21 − 8 < −2^24.
typedef ap_int<(SIX_FIELDS - SIX_COLUMNS) * SIX_SHIFT + 5> six_values_t;
typedef ap_int<SIX_SHIFT> six_product_t;
typedef ap_int<48> six_sum_t;  // the DSP's P register
// 64, and 64 in each field.
static const int SIX_OFFSET = 1 << (SIX_SHIFT - 1);
static const int64_t SIX_OFFSETS =
    SIX_OFFSET * (((int64_t(1) << (SIX_FIELDS * SIX_SHIFT)) - 1) / ((1 << SIX_SHIFT) - 1));

// Return the weights of a step as the rows of PEs pass them on. Of three weights that share a DSP, the second and the
// third are reduced by 1 if the weight below, after its own reduction, is negative. This is the 1 that its sign borrows
// from the field above. So each row can concatenate the weights for the DSP's port without an adder. The results are in
// −8…7 and still have 4 bits.
inline weights_t subtract_borrows(const weights_t &weights) {
#pragma HLS INLINE
    if (!SIX_PRODUCTS) return weights;
    weights_t out;
    for (int i = 0; i < LANES * COLUMNS; ++i) {
#pragma HLS UNROLL
        out.value[i] = i % SIX_COLUMNS > 0 && out.value[i - 1] < 0 ? value_t(weights.value[i] - 1) : weights.value[i];
    }
    return out;
}

// Compute products[f] = w[f mod 3] · a[f / 3] from weights of ``subtract_borrows``.
inline void six_products(const value_t w[SIX_COLUMNS], const value_t a[SIX_POSITIONS],
                         six_product_t products[SIX_FIELDS]) {
#pragma HLS INLINE
    const six_weights_t weights = (ap_int<4>(w[2]), ap_int<SIX_SHIFT>(w[1]), ap_int<SIX_SHIFT>(w[0]));
    const ap_int<5> upper = ap_int<5>(a[1]) - ap_int<5>(a[0] < 0 ? 1 : 0);
    const six_values_t values = (upper, ap_int<SIX_COLUMNS * SIX_SHIFT>(a[0]));
    const six_sum_t fields = weights * values + six_sum_t(SIX_OFFSETS);
    for (int f = 0; f < SIX_FIELDS; ++f) {
#pragma HLS UNROLL
        const ap_uint<SIX_SHIFT> field = fields.range((f + 1) * SIX_SHIFT - 1, f * SIX_SHIFT);
        products[f] = six_product_t(ap_uint<SIX_SHIFT>(field ^ ap_uint<SIX_SHIFT>(SIX_OFFSET)));
    }
}

// Sum COUNT numbers of BITS bits in a tree of adders with three operands.
template <int COUNT, int BITS>
struct ternary_tree_t {
    static sum_t sum(const ap_int<BITS> numbers[COUNT]) {
#pragma HLS INLINE
        static const int SUMS = (COUNT + 2) / 3;
        ap_int<BITS + 2> ternary_sums[SUMS];
#pragma HLS ARRAY_PARTITION variable = ternary_sums complete
        for (int i = 0; i < SUMS; ++i) {
#pragma HLS UNROLL
            ap_int<BITS + 2> ternary_sum = numbers[3 * i];
            if (3 * i + 1 < COUNT) ternary_sum += numbers[3 * i + 1];
            if (3 * i + 2 < COUNT) ternary_sum += numbers[3 * i + 2];
            ternary_sums[i] = ternary_sum;
        }
        return ternary_tree_t<SUMS, BITS + 2>::sum(ternary_sums);
    }
};
template <int BITS>
struct ternary_tree_t<1, BITS> {
    static sum_t sum(const ap_int<BITS> numbers[1]) {
#pragma HLS INLINE
        return sum_t(numbers[0]);
    }
};

// Compute total[p][c] = Σ over lanes of weight · activation for columns n, n + 1 and n + 2. Even and odd lanes are
// summed separately, because the odd lanes of a pixel are its high nibbles (load.h) and have weight 16.
template <int SHARING>
void six_sums(const row_activations_t &words, const weights_t &weights, int n, bool nibbles, sum_t (*total)[SHARING]) {
#pragma HLS INLINE
    six_product_t products[SIX_FIELDS][2][LANES / 2];
#pragma HLS ARRAY_PARTITION variable = products complete dim = 0
    for (int l = 0; l < LANES; ++l) {
#pragma HLS UNROLL
        value_t w[SIX_COLUMNS], a[SIX_POSITIONS];
        six_product_t six[SIX_FIELDS];
#pragma HLS ARRAY_PARTITION variable = w complete
#pragma HLS ARRAY_PARTITION variable = a complete
#pragma HLS ARRAY_PARTITION variable = six complete
        for (int c = 0; c < SIX_COLUMNS; ++c) {
#pragma HLS UNROLL
            w[c] = weights.value[l * COLUMNS + n + c];
        }
        for (int p = 0; p < SIX_POSITIONS; ++p) {
#pragma HLS UNROLL
            a[p] = words.position[p].lane[l];
        }
        six_products(w, a, six);
        for (int f = 0; f < SIX_FIELDS; ++f) {
#pragma HLS UNROLL
            products[f][l % 2][l / 2] = six[f];
        }
    }
    for (int f = 0; f < SIX_FIELDS; ++f) {
#pragma HLS UNROLL
        const sum_t even = ternary_tree_t<LANES / 2, SIX_SHIFT>::sum(products[f][0]);
        const sum_t odd = ternary_tree_t<LANES / 2, SIX_SHIFT>::sum(products[f][1]);
        total[f / SIX_COLUMNS][f % SIX_COLUMNS] = even + (nibbles ? sum_t(odd * 16) : odd);
    }
}
#else
inline weights_t subtract_borrows(const weights_t &weights) {
    return weights;
}  // the fast simulation multiplies unpacked weights, which need no borrows
#endif

#endif  // SYSTOLIC_SIX_PRODUCTS_H
