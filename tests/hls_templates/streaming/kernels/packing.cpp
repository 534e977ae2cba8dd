// multiply_accumulate over many squares in one call, and the bounds that packing.h computes.
#include "dot.h"

// weights [count][PE][SIMD], values [count][PIXELS · SIMD], sums [count][PIXELS][PE], all carriers.
template <class WEIGHT, class VALUE, int MULTIPLIER, int PE, int SIMD, int PIXELS>
void squares(long count, const int32_t *weights, const int32_t *values, int32_t *sums) {
    for (long i = 0; i < count; ++i) {
        typename WEIGHT::carrier weight[PE][SIMD];
        typename VALUE::carrier value[PIXELS * SIMD];
        exact_t<32> sum[PIXELS][PE];
        for (auto &row : weight) {
            for (auto &one : row) one = *weights++;
        }
        for (auto &one : value) one = *values++;
        for (auto &row : sum) {
            for (auto &one : row) one = 0;
        }
        multiply_accumulate<WEIGHT, VALUE, MULTIPLIER, PE, SIMD, PIXELS>(weight, value, sum);
        for (auto &row : sum) {
            for (auto &one : row) *sums++ = int(one);
        }
    }
}

template <class WEIGHT, class VALUE, int MULTIPLIER>
void bounds(int32_t *to) {
    typedef packing_t<WEIGHT, VALUE, MULTIPLIER> packing;
    const int found[] = {packing::weights_field, packing::weights_terms,  packing::pixels_field,
                         packing::pixels_terms,  packing::products_field, packing::products_terms};
    for (int i = 0; i < 6; ++i) to[i] = found[i];
}
