// packed_chain of include/packed.h against plain products, over many chains in one call.
#include "packed.h"

// Every argument is [count][PACK_CHAIN]; sums are [count][2]. Returns the chain length it was compiled for.
extern "C" int packed_chains(long count, const int8_t *w0, const int8_t *w1, const int8_t *a, int32_t *sums) {
    for (long i = 0; i < count; ++i) {
        value_t first[PACK_CHAIN], second[PACK_CHAIN], by[PACK_CHAIN];
        for (int l = 0; l < PACK_CHAIN; ++l) {
            first[l] = w0[i * PACK_CHAIN + l];
            second[l] = w1[i * PACK_CHAIN + l];
            by[l] = a[i * PACK_CHAIN + l];
        }
        sum_t sum0 = sums[2 * i], sum1 = sums[2 * i + 1];
        packed_chain(first, second, by, sum0, sum1);
        sums[2 * i] = int(sum0);
        sums[2 * i + 1] = int(sum1);
    }
    return PACK_CHAIN;
}
