// six_products of include/six_products.h over many operands in one call.
#include "six_products.h"

// w is [count][3], a [count][2], products [count][6]; the weights go as a row of PEs takes them, with their borrows.
extern "C" void six(long count, const int8_t *w, const int8_t *a, int8_t *products) {
    for (long i = 0; i < count; ++i) {
        weights_t weights = {};
        value_t values[SIX_POSITIONS], three[SIX_COLUMNS];
        for (int c = 0; c < SIX_COLUMNS; ++c) weights.value[COLUMNS + c] = *(w + i * SIX_COLUMNS + c);
        for (int p = 0; p < SIX_POSITIONS; ++p) values[p] = *(a + i * SIX_POSITIONS + p);
        const weights_t handed = subtract_borrows(weights);
        for (int c = 0; c < SIX_COLUMNS; ++c) three[c] = handed.value[COLUMNS + c];
        six_product_t out[SIX_FIELDS];
        six_products(three, values, out);
        for (int f = 0; f < SIX_FIELDS; ++f) products[i * SIX_FIELDS + f] = int8_t(out[f]);
    }
}
