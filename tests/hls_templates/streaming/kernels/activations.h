// Constants of an activation from the flat arrays of a test, field by field.
#ifndef ACTIVATIONS_H
#define ACTIVATIONS_H

#include "activation.h"
#include "compute.h"

template <int BITS>
void fill(identity_t<BITS> &, values_t &) {}
template <int BITS, bool SIGNED, int PE, int NF, bool NARROW>
void fill(requantise_t<BITS, SIGNED, PE, NF, NARROW> &by, values_t &from) {
    fill(by.bias, from);
    fill(by.multiplier, from);
    fill(by.negative_multiplier, from);
    fill(by.shift, from);
}
template <int BITS, bool SIGNED, int LOW, int LEVELS, int COPIES>
void fill(table_t<BITS, SIGNED, LOW, LEVELS, COPIES> &by, values_t &from) {
    fill(by.value, from);
}
template <int BITS, bool SIGNED, int LOW, int FRACTION, int SLOPE_BITS, int COPIES>
void fill(pieces_t<BITS, SIGNED, LOW, FRACTION, SLOPE_BITS, COPIES> &by, values_t &from) {
    fill(by.value, from);
    fill(by.slope, from);
}
template <int BITS, bool SIGNED, int PE, int NF, bool NARROW>
void fill(multiply_shift_t<BITS, SIGNED, PE, NF, NARROW> &by, values_t &from) {
    fill(by.multiplier, from);
    fill(by.bias, from);
    fill(by.shift, from);
}
template <int BITS, bool SIGNED, int LOW, int LEVELS, int THRESHOLD_BITS, int PE, int NF>
void fill(thresholds_t<BITS, SIGNED, LOW, LEVELS, THRESHOLD_BITS, PE, NF> &by, values_t &from) {
    fill(by.threshold, from);
    fill(by.flip, from);
}

#endif  // ACTIVATIONS_H
