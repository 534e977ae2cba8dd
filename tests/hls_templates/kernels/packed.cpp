// packed_chain of include/packed.h over many chains in one call.
#include "packed.h"

// w is [count][PACK_COLUMNS][PACK_CHAIN], a [count][POSITIONS][PACK_CHAIN], sums [count][POSITIONS][PACK_COLUMNS].
// Returns the chain length it was compiled for.
extern "C" int packed_chains(long count, const int16_t *w, const int16_t *a, int32_t *sums) {
    for (long i = 0; i < count; ++i) {
        value_t weights[PACK_COLUMNS][PACK_CHAIN], values[POSITIONS][PACK_CHAIN];
        for (int l = 0; l < PACK_CHAIN; ++l) {
            for (int c = 0; c < PACK_COLUMNS; ++c) weights[c][l] = *(w + (i * PACK_COLUMNS + c) * PACK_CHAIN + l);
            for (int r = 0; r < POSITIONS; ++r) values[r][l] = *(a + (i * POSITIONS + r) * PACK_CHAIN + l);
        }
        sum_t part[POSITIONS][PACK_COLUMNS];
        packed_chain(weights, values, part);
        for (int f = 0; f < FIELDS; ++f) sums[i * FIELDS + f] = int(part[f / PACK_COLUMNS][f % PACK_COLUMNS]);
    }
    return PACK_CHAIN;
}
