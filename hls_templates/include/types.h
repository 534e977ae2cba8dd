// The engine's number and word types. Synthesis and SYSTOLIC_AP_INT use the vendor's ap_int, the fast
// simulation the native integer of the same width; both give the same bits.
#ifndef SYSTOLIC_TYPES_H
#define SYSTOLIC_TYPES_H

#include <cstdint>

#include "parameters.h"

#if defined(__SYNTHESIS__) || defined(SYSTOLIC_AP_INT)
#include <ap_int.h>
#define SYSTOLIC_PACKED 1  // multiply two weights by one activation in one DSP, as the hardware does
typedef ap_int<VALUE_BITS> value_t;
typedef ap_int<32> sum_t;
typedef ap_int<64> product_t;
typedef ap_int<16> result_t;
#else
#define SYSTOLIC_PACKED 0
typedef int8_t value_t;
typedef int32_t sum_t;
typedef int64_t product_t;
typedef int16_t result_t;
#endif

// One word of a map or of a weight image: the values of one position, one a lane.
struct lanes_t {
    value_t lane[LANES];
};

// What the array takes a cycle from the left: one word a row.
struct activations_t {
    lanes_t row[ROWS];
};

// What the array takes a cycle from above: a weight for every lane of every column, [lane][column].
struct weights_t {
    value_t value[LANES * COLUMNS];
};

// What one row of PEs gives when a position is done: an exact sum a column.
struct sums_t {
    sum_t column[COLUMNS];
};

// What the Saver works on a cycle: SAVE_ROWS rows of one position.
struct group_t {
    sums_t row[SAVE_ROWS];
};
struct results_t {
    result_t value[SAVE_ROWS][COLUMNS];
};

// The requantiser of one output channel, one 128-bit word in DDR (the arithmetic is in requantise.h).
struct requantiser_t {
    int32_t bias;
    uint16_t multiplier;
    uint16_t negative;
    uint32_t shift;
    uint32_t reserved;
};

#endif  // SYSTOLIC_TYPES_H
